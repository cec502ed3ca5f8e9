// Graph topologies: MPI_Graph_create and MPI_Dist_graph_create with their questions (MPI-5.0 §8.5).
#include <algorithm>

#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/create.h"
#include "mpi/info/info.h"
#include "mpi/p2p/message.h"
#include "mpi/topo/graph.h"
#include "mpi/topo/topology.h"

namespace sterna::mpi {
namespace {

/// A call on a communicator with a graph of one kind.
struct GraphCall : Call {
  GraphCall(const char* name, MPI_Comm handle, TopologyKind kind) noexcept
      : Call{state_of_caller(name), name} {
    error = check_comm(*this, handle);
    if (error == MPI_SUCCESS) {
      topology = comm->topology;
      if (topology == nullptr || topology->kind != kind) {
        error = fail(MPI_ERR_TOPOLOGY, kind == TopologyKind::graph
                                           ? "the communicator has no graph topology"
                                           : "the communicator has no distributed graph topology");
      }
    }
  }
  const Topology* topology = nullptr;
  int error;
};

int check_old(Call& call, MPI_Comm handle) noexcept {
  if (const int error = check_comm(call, handle)) {
    return error;
  }
  return call.comm->is_inter() ? call.fail(MPI_ERR_COMM, "not for an intercommunicator")
                               : MPI_SUCCESS;
}

int check_info(const Call& call, MPI_Info info) noexcept {
  return info == MPI_INFO_NULL || find_info(info) != nullptr
             ? MPI_SUCCESS
             : call.fail(MPI_ERR_INFO, "the info object is not one");
}

int check_graph(const Call& call, int count, const int* ends, const int* edges) noexcept {
  if (count < 0 || count > static_cast<int>(call.comm->size)) {
    return call.fail(MPI_ERR_ARG, "%d nodes for %u ranks", count, call.comm->size);
  }
  int begin = 0;
  for (int i = 0; i < count; ++i) {
    if (ends[i] < begin) {
      return call.fail(MPI_ERR_ARG, "the index of node %d is %d, less than %d before it", i,
                       ends[i], begin);
    }
    begin = ends[i];
  }
  for (int i = 0; i < begin; ++i) {
    if (edges[i] < 0 || edges[i] >= count) {
      return call.fail(MPI_ERR_ARG, "edge %d leads to %d of %d nodes", i, edges[i], count);
    }
  }
  return MPI_SUCCESS;
}

bool has_weights(const int* weights) noexcept {
  return weights != MPI_UNWEIGHTED;
}

/// `weights` may be one of the two marks.
int check_neighbours(const Call& call, int count, const int* ranks, const int* weights) noexcept {
  if (count < 0) {
    return call.fail(MPI_ERR_ARG, "the number of neighbours is %d", count);
  }
  if (count > 0 && weights == MPI_WEIGHTS_EMPTY) {
    return call.fail(MPI_ERR_ARG, "MPI_WEIGHTS_EMPTY for %d neighbours", count);
  }
  for (int i = 0; i < count; ++i) {
    if (static_cast<std::uint32_t>(ranks[i]) >= call.comm->size) {
      return call.fail(MPI_ERR_RANK, "neighbour %d is %d of %u", i, ranks[i], call.comm->size);
    }
    if (has_weights(weights) && weights[i] < 0) {
      return call.fail(MPI_ERR_ARG, "weight %d is %d", i, weights[i]);
    }
  }
  return MPI_SUCCESS;
}

/// A communicator of all old ranks, or of those with `is_member`, with this topology.
int attach(Call& call, bool is_member, Topology* topology, MPI_Comm* result) noexcept {
  *result = MPI_COMM_NULL;
  if (topology == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  Comm* made = nullptr;
  const int error = split_comm(call, is_member ? 0 : MPI_UNDEFINED, call.comm->rank, &made);
  if (error != MPI_SUCCESS || made == nullptr) {
    destroy_topology(call.state, topology);
    return error;
  }
  made->topology = topology;
  *result = handle_of(call.state, made);
  return MPI_SUCCESS;
}

void copy_some(int* into, const int* from, int count, int room) noexcept {
  std::copy_n(from, std::max(0, std::min(count, room)), into);
}

int check_contribution(const Call& call, int count, const int* sources, const int* degrees,
                       const int* targets, const int* weights, int* edge_count) noexcept {
  if (const int error = check_neighbours(call, count, sources, MPI_UNWEIGHTED)) {
    return error;
  }
  *edge_count = 0;
  for (int i = 0; i < count; ++i) {
    if (degrees[i] < 0) {
      return call.fail(MPI_ERR_ARG, "degree %d is %d", i, degrees[i]);
    }
    if (__builtin_add_overflow(*edge_count, degrees[i], edge_count)) {
      return call.fail(MPI_ERR_ARG, "the degrees up to %d sum to more edges than an int holds", i);
    }
  }
  return check_neighbours(call, *edge_count, targets, weights);
}

}  // namespace

extern "C" {

int PMPI_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int,
                      MPI_Comm* comm_graph) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Graph_create"), "MPI_Graph_create"};
  if (const int error = check_old(call, comm_old)) {
    return error;
  }
  if (const int error = check_graph(call, nnodes, indx, edges)) {
    return error;
  }
  // Ranks move to where they communicate least: their numbers need no reordering.
  return attach(call, static_cast<int>(call.comm->rank) < nnodes,
                create_graph(call.state, nnodes, indx, edges), comm_graph);
}

int PMPI_Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) {
  const CallScope scope;
  const GraphCall call{"MPI_Graphdims_get", comm, TopologyKind::graph};
  if (call.error == MPI_SUCCESS) {
    *nnodes = call.topology->node_count;
    *nedges = edge_count(*call.topology);
  }
  return call.error;
}

int PMPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]) {
  const CallScope scope;
  const GraphCall call{"MPI_Graph_get", comm, TopologyKind::graph};
  if (call.error == MPI_SUCCESS) {
    copy_some(indx, call.topology->ends, call.topology->node_count, maxindex);
    copy_some(edges, call.topology->edges, edge_count(*call.topology), maxedges);
  }
  return call.error;
}

int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) {
  const CallScope scope;
  const GraphCall call{"MPI_Graph_neighbors_count", comm, TopologyKind::graph};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (rank < 0 || rank >= call.topology->node_count) {
    return call.fail(MPI_ERR_RANK, "the rank is %d of %d", rank, call.topology->node_count);
  }
  *nneighbors = static_cast<int>(neighbours_in_graph(*call.topology, rank).size());
  return MPI_SUCCESS;
}

int PMPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
  const CallScope scope;
  const GraphCall call{"MPI_Graph_neighbors", comm, TopologyKind::graph};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (rank < 0 || rank >= call.topology->node_count) {
    return call.fail(MPI_ERR_RANK, "the rank is %d of %d", rank, call.topology->node_count);
  }
  const auto list = neighbours_in_graph(*call.topology, rank);
  copy_some(neighbors, list.data(), static_cast<int>(list.size()), maxneighbors);
  return MPI_SUCCESS;
}

int PMPI_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Graph_map"), "MPI_Graph_map"};
  if (const int error = check_old(call, comm)) {
    return error;
  }
  if (const int error = check_graph(call, nnodes, indx, edges)) {
    return error;
  }
  const auto rank = static_cast<int>(call.comm->rank);
  *newrank = rank < nnodes ? rank : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                    const int* sourceweights, int outdegree,
                                    const int destinations[], const int* destweights, MPI_Info info,
                                    int, MPI_Comm* comm_dist_graph) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Dist_graph_create_adjacent"), "MPI_Dist_graph_create_adjacent"};
  if (const int error = check_old(call, comm_old)) {
    return error;
  }
  if (const int error = check_info(call, info)) {
    return error;
  }
  if (const int error = check_neighbours(call, indegree, sources, sourceweights)) {
    return error;
  }
  if (const int error = check_neighbours(call, outdegree, destinations, destweights)) {
    return error;
  }
  if (has_weights(sourceweights) != has_weights(destweights)) {
    return call.fail(MPI_ERR_ARG, "weights for one direction only");
  }
  Topology* const topology =
      create_distributed(call.state, {sources, sourceweights, indegree},
                         {destinations, destweights, outdegree}, has_weights(sourceweights));
  return attach(call, true, topology, comm_dist_graph);
}

int PMPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                           const int destinations[], const int* weights, MPI_Info info, int,
                           MPI_Comm* comm_dist_graph) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Dist_graph_create"), "MPI_Dist_graph_create"};
  if (const int error = check_old(call, comm_old)) {
    return error;
  }
  if (const int error = check_info(call, info)) {
    return error;
  }
  int count = 0;
  if (const int error =
          check_contribution(call, n, sources, degrees, destinations, weights, &count)) {
    return error;
  }
  auto* edges = call.state.allocate_array<Edge>(static_cast<std::size_t>(count));
  if (edges == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  for (int i = 0, at = 0; i < n; ++i) {
    for (int k = 0; k < degrees[i]; ++k, ++at) {
      edges[at] = {sources[i], destinations[at], has_weights(weights) ? weights[at] : 1};
    }
  }
  Topology* topology = nullptr;
  const int error = gather_distributed(call, {edges, static_cast<std::size_t>(count)},
                                       has_weights(weights), &topology);
  call.state.deallocate(edges);
  return error != MPI_SUCCESS ? error : attach(call, true, topology, comm_dist_graph);
}

int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) {
  const CallScope scope;
  const GraphCall call{"MPI_Dist_graph_neighbors_count", comm, TopologyKind::distributed_graph};
  if (call.error == MPI_SUCCESS) {
    *indegree = call.topology->source_count;
    *outdegree = call.topology->target_count;
    *weighted = call.topology->is_weighted ? 1 : 0;
  }
  return call.error;
}

int PMPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int* sourceweights,
                              int maxoutdegree, int destinations[], int* destweights) {
  const CallScope scope;
  const GraphCall call{"MPI_Dist_graph_neighbors", comm, TopologyKind::distributed_graph};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  const Topology& t = *call.topology;
  copy_some(sources, t.sources, t.source_count, maxindegree);
  copy_some(destinations, t.targets, t.target_count, maxoutdegree);
  if (t.is_weighted && sourceweights != MPI_UNWEIGHTED && sourceweights != MPI_WEIGHTS_EMPTY) {
    copy_some(sourceweights, t.source_weights, t.source_count, maxindegree);
  }
  if (t.is_weighted && destweights != MPI_UNWEIGHTED && destweights != MPI_WEIGHTS_EMPTY) {
    copy_some(destweights, t.target_weights, t.target_count, maxoutdegree);
  }
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace sterna::mpi
