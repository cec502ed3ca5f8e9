/* Graph topologies, whole and distributed, and neighbourhood collectives on them. */
#include "check.h"

#define MOST 64

/* A ring, given whole: rank r has r-1 and r+1. */
static void whole_graph(void) {
  int ends[MOST], edges[2 * MOST], found[2 * MOST], count, edge_count, kind, rank;
  MPI_Comm ring, none, copy;
  for (int i = 0; i < world_size; ++i) {
    ends[i] = 2 * i + 2;
    edges[2 * i] = (i + world_size - 1) % world_size;
    edges[2 * i + 1] = (i + 1) % world_size;
  }
  MPI_Graph_create(MPI_COMM_WORLD, world_size, ends, edges, 0, &ring);
  MPI_Topo_test(ring, &kind);
  CHECK(kind == MPI_GRAPH);
  MPI_Graphdims_get(ring, &count, &edge_count);
  CHECK(count == world_size && edge_count == 2 * world_size);
  MPI_Graph_get(ring, world_size, 2 * world_size, found, edges);
  CHECK(memcmp(found, ends, (size_t)world_size * sizeof(int)) == 0);
  MPI_Graph_map(MPI_COMM_WORLD, world_size, ends, edges, &rank);
  CHECK(rank == world_rank);
  MPI_Comm_dup(ring, &copy);
  for (int other = 0; other < world_size; ++other) {
    MPI_Graph_neighbors_count(copy, other, &count);
    CHECK(count == 2);
    found[0] = found[1] = found[2] = -7;
    MPI_Graph_neighbors(copy, other, 2, found);
    CHECK(found[0] == (other + world_size - 1) % world_size &&
          found[1] == (other + 1) % world_size);
    CHECK(found[2] == -7);
  }
  MPI_Neighbor_allgather(&world_rank, 1, MPI_INT, found, 1, MPI_INT, copy);
  CHECK(found[0] == (world_rank + world_size - 1) % world_size);
  CHECK(found[1] == (world_rank + 1) % world_size);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&ring);

  ends[0] = 1;
  edges[0] = 0;
  MPI_Graph_create(MPI_COMM_WORLD, 1, ends, edges, 1, &none);
  CHECK((none == MPI_COMM_NULL) == (world_rank != 0));
  if (none != MPI_COMM_NULL) {
    MPI_Neighbor_allgather(&world_rank, 1, MPI_INT, found, 1, MPI_INT, none);
    CHECK(found[0] == 0);
    MPI_Comm_free(&none);
  }
  MPI_Graph_create(MPI_COMM_WORLD, 0, ends, edges, 0, &none);
  CHECK(none == MPI_COMM_NULL);
}

/* Each rank sends to the ranks at distance 1 and 2, receives from those before. */
static void check_messages(MPI_Comm graph) {
  int in, out, weighted, sources[MOST], targets[MOST], given[MOST], got[MOST];
  MPI_Request request;
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  MPI_Dist_graph_neighbors(graph, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED);
  for (int i = 0; i < out; ++i) {
    given[i] = 1000 * world_rank + targets[i];
  }
  MPI_Neighbor_alltoall(given, 1, MPI_INT, got, 1, MPI_INT, graph);
  for (int i = 0; i < in; ++i) {
    CHECK(got[i] == 1000 * sources[i] + world_rank);
  }
  memset(got, 0, sizeof got);
  MPI_Ineighbor_alltoall(given, 1, MPI_INT, got, 1, MPI_INT, graph, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < in; ++i) {
    CHECK(got[i] == 1000 * sources[i] + world_rank);
  }
  MPI_Neighbor_allgather(&world_rank, 1, MPI_INT, got, 1, MPI_INT, graph);
  for (int i = 0; i < in; ++i) {
    CHECK(got[i] == sources[i]);
  }
}

static void adjacent(void) {
  int sources[2], targets[2], weights[2] = {7, 9}, kind, in, out, weighted, found[4], values[4];
  MPI_Comm graph, copy;
  for (int i = 0; i < 2; ++i) {
    sources[i] = (world_rank + 2 * world_size - 1 - i) % world_size;
    targets[i] = (world_rank + 1 + i) % world_size;
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, targets, weights,
                                 MPI_INFO_NULL, 0, &graph);
  MPI_Topo_test(graph, &kind);
  CHECK(kind == MPI_DIST_GRAPH);
  MPI_Comm_dup(graph, &copy);
  MPI_Dist_graph_neighbors_count(copy, &in, &out, &weighted);
  CHECK(in == 2 && out == 2 && weighted);
  MPI_Dist_graph_neighbors(copy, 2, found, values, 2, found + 2, values + 2);
  CHECK(memcmp(found, sources, sizeof sources) == 0 &&
        memcmp(found + 2, targets, sizeof targets) == 0);
  CHECK(values[0] == 7 && values[1] == 9 && values[2] == 7 && values[3] == 9);
  check_messages(copy);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&graph);
}

/* Rank 0 gives the edges of all; the same graph in slices by neighbours; and edges that are
 * doubled. */
static void distributed(void) {
  int sources[MOST], degrees[MOST], targets[2 * MOST], weights[2 * MOST];
  int in, out, weighted, found[MOST], values[MOST], there[MOST], others[MOST], sum;
  MPI_Comm graph;
  for (int by = 0; by < 2; ++by) {
    int count = by == 0 ? (world_rank == 0 ? world_size : 0) : 1;
    for (int i = 0; i < count; ++i) {
      const int from = by == 0 ? i : (world_rank + 1) % world_size;
      sources[i] = from;
      degrees[i] = 2;
      for (int k = 0; k < 2; ++k) {
        targets[2 * i + k] = (from + 1 + k) % world_size;
        weights[2 * i + k] = 10 * from + k;
      }
    }
    MPI_Dist_graph_create(MPI_COMM_WORLD, count, sources, degrees, targets,
                          count == 0 ? MPI_WEIGHTS_EMPTY : weights, MPI_INFO_NULL, 0, &graph);
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
    CHECK(in == 2 && out == 2 && weighted);
    MPI_Dist_graph_neighbors(graph, in, found, values, out, there, others);
    CHECK(there[0] == (world_rank + 1) % world_size && there[1] == (world_rank + 2) % world_size);
    CHECK(others[0] == 10 * world_rank && others[1] == 10 * world_rank + 1);
    sum = 0;
    for (int i = 0; i < 2; ++i) {
      sum += (world_rank - values[i] / 10 - 1 - values[i] % 10) % world_size;
      CHECK(values[i] / 10 == found[i]);
    }
    CHECK(sum == 0);
    if (world_size > 2) {
      check_messages(graph);
    }
    MPI_Comm_free(&graph);
  }
  /* Three edges from each rank to the next, unweighted: messages arrive in their order. */
  for (int i = 0; i < 3; ++i) {
    targets[i] = (world_rank + 1) % world_size;
  }
  sources[0] = world_rank;
  degrees[0] = 3;
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, sources, degrees, targets, MPI_UNWEIGHTED, MPI_INFO_NULL,
                        1, &graph);
  MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted);
  CHECK(in == 3 && out == 3 && !weighted);
  for (int i = 0; i < 3; ++i) {
    values[i] = 10 * world_rank + i;
  }
  MPI_Neighbor_alltoall(values, 1, MPI_INT, found, 1, MPI_INT, graph);
  for (int i = 0; i < 3; ++i) {
    CHECK(found[i] == 10 * ((world_rank + world_size - 1) % world_size) + i);
  }
  MPI_Comm_free(&graph);
}

/* One edge: who sends nothing, or gets nothing, has no buffer for it. */
static void one_edge(void) {
  const int has_edge = world_size > 1;
  int source = 0, target = 1, number = 77, got = -1;
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, has_edge && world_rank == 1, &source,
                                 MPI_UNWEIGHTED, has_edge && world_rank == 0, &target,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  const int* const out = has_edge && world_rank == 0 ? &number : NULL;
  int* const in = has_edge && world_rank == 1 ? &got : NULL;
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, graph);
  CHECK(in == NULL || got == 77);
  got = -1;
  MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, graph);
  CHECK(in == NULL || got == 77);
  MPI_Comm_free(&graph);
}

static void wrong_arguments(void) {
  int ends[2] = {1, 0}, edges[2] = {0, 0}, outside = world_size, zero = 0, one = 1, bad = -1;
  MPI_Comm graph;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, world_size + 1, ends, edges, 0, &graph));
  FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, -1, ends, edges, 0, &graph));
  if (world_size > 1) {
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 2, ends, edges, 0, &graph));
  }
  FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, &one, &outside, 0, &graph));
  FAILS(MPI_ERR_RANK,
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &outside, MPI_UNWEIGHTED, 0, &zero,
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
  FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &zero, &bad, 0, &zero,
                                                    MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0, &graph));
  FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &zero, &bad, &zero, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &graph));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(MPI_COMM_WORLD, 0, &zero));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(MPI_COMM_WORLD, &zero, &zero, &zero));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  whole_graph();
  adjacent();
  distributed();
  one_edge();
  wrong_arguments();
  return end();
}
