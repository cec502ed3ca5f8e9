// Virtual topologies: coordinates and neighbours.
#include "mpi/topo/topology.h"

#include <cstring>

#include "mpi/comm/comm.h"

namespace sterna::mpi {

void destroy_topology(RankState& state, Topology* t) noexcept {
  if (t == nullptr) {
    return;
  }
  for (int* list : {t->dimensions, t->periods, t->coordinates, t->ends, t->edges, t->sources,
                    t->targets, t->source_weights, t->target_weights}) {
    state.deallocate(list);
  }
  state.destroy(t);
}

int* copy_numbers(RankState& state, const int* from, int count) noexcept {
  auto* copy = state.allocate_array<int>(static_cast<std::size_t>(count));
  if (copy != nullptr && count > 0) {
    std::memcpy(copy, from, static_cast<std::size_t>(count) * sizeof(int));
  }
  return copy;
}

Topology* create_cartesian(RankState& state, int count, const int* dimensions, const int* periods,
                           int rank) noexcept {
  Topology* t = state.create<Topology>();
  if (t == nullptr) {
    return nullptr;
  }
  t->dimension_count = count;
  t->dimensions = copy_numbers(state, dimensions, count);
  t->periods = copy_numbers(state, periods, count);
  t->coordinates = copy_numbers(state, dimensions, count);
  if (t->dimensions == nullptr || t->periods == nullptr || t->coordinates == nullptr) {
    destroy_topology(state, t);
    return nullptr;
  }
  for (int i = 0; i < count; ++i) {
    t->periods[i] = periods[i] != 0 ? 1 : 0;
  }
  coordinates_of(*t, rank, t->coordinates);
  return t;
}

Topology* copy_topology(RankState& state, const Comm& comm) noexcept {
  const Topology& from = *comm.topology;
  Topology* t = state.create<Topology>(from);
  if (t == nullptr) {
    return nullptr;
  }
  const int edge_count = from.node_count > 0 ? from.ends[from.node_count - 1] : 0;
  const struct {
    int* Topology::*list;
    int count;
  } lists[] = {{&Topology::dimensions, from.dimension_count},
               {&Topology::periods, from.dimension_count},
               {&Topology::coordinates, from.dimension_count},
               {&Topology::ends, from.node_count},
               {&Topology::edges, edge_count},
               {&Topology::sources, from.source_count},
               {&Topology::targets, from.target_count},
               {&Topology::source_weights, from.source_count},
               {&Topology::target_weights, from.target_count}};
  bool has_all = true;
  for (const auto& entry : lists) {
    if (from.*entry.list != nullptr) {
      t->*entry.list = copy_numbers(state, from.*entry.list, entry.count);
      has_all = has_all && t->*entry.list != nullptr;
    }
  }
  if (!has_all) {
    destroy_topology(state, t);
    return nullptr;
  }
  return t;
}

void coordinates_of(const Topology& t, int rank, int* coordinates) noexcept {
  for (int i = t.dimension_count - 1; i >= 0; --i) {
    coordinates[i] = rank % t.dimensions[i];
    rank /= t.dimensions[i];
  }
}

int rank_of(const Topology& t, const int* coordinates) noexcept {
  int rank = 0;
  for (int i = 0; i < t.dimension_count; ++i) {
    int c = coordinates[i];
    if (c < 0 || c >= t.dimensions[i]) {
      if (t.periods[i] == 0) {
        return MPI_PROC_NULL;
      }
      c %= t.dimensions[i];
      c += c < 0 ? t.dimensions[i] : 0;
    }
    rank = rank * t.dimensions[i] + c;
  }
  return rank;
}

namespace {

int graph_first(const Topology& t, int rank) noexcept {
  return rank == 0 ? 0 : t.ends[rank - 1];
}

// Neighbour 2i is the one before in dimension i, 2i + 1 the one after.
int cartesian_neighbour(const Topology& t, int index) noexcept {
  const int dimension = index / 2;
  const int old = t.coordinates[dimension];
  const int now = old + (index % 2 == 0 ? -1 : 1);
  int stride = 1;
  for (int i = dimension + 1; i < t.dimension_count; ++i) {
    stride *= t.dimensions[i];
  }
  const int size = t.dimensions[dimension];
  if ((now < 0 || now >= size) && t.periods[dimension] == 0) {
    return MPI_PROC_NULL;
  }
  return rank_of(t, t.coordinates) + ((now + size) % size - old) * stride;
}

int degree(const Comm& comm) noexcept {
  const Topology& t = *comm.topology;
  return t.kind == TopologyKind::cartesian ? 2 * t.dimension_count
                                           : t.ends[comm.rank] - graph_first(t, comm.rank);
}

int neighbour(const Comm& comm, int index) noexcept {
  const Topology& t = *comm.topology;
  return t.kind == TopologyKind::cartesian ? cartesian_neighbour(t, index)
                                           : t.edges[graph_first(t, comm.rank) + index];
}

}  // namespace

int source_count(const Comm& comm) noexcept {
  const Topology& t = *comm.topology;
  return t.kind == TopologyKind::distributed_graph ? t.source_count : degree(comm);
}

int target_count(const Comm& comm) noexcept {
  const Topology& t = *comm.topology;
  return t.kind == TopologyKind::distributed_graph ? t.target_count : degree(comm);
}

int source_at(const Comm& comm, int index) noexcept {
  const Topology& t = *comm.topology;
  return t.kind == TopologyKind::distributed_graph ? t.sources[index] : neighbour(comm, index);
}

int target_at(const Comm& comm, int index) noexcept {
  const Topology& t = *comm.topology;
  return t.kind == TopologyKind::distributed_graph ? t.targets[index] : neighbour(comm, index);
}

}  // namespace sterna::mpi
