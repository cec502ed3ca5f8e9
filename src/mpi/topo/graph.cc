// Makes graphs. The parts of a distributed one are sent to the two ranks that each edge joins, so
// that no rank ever holds more than what it gave and what is its own.
#include "mpi/topo/graph.h"

#include <algorithm>

#include "mpi/coll/enter.h"
#include "mpi/comm/comm.h"

namespace sterna::mpi {
namespace {

/// Edges of this rank's memory.
struct EdgeList {
  Edge* edges = nullptr;
  std::size_t count = 0;
};

/// Counts and places in bytes, by rank: for MPI's v form.
struct Shares {
  MPI_Count* counts = nullptr;
  MPI_Count* places = nullptr;

  [[nodiscard]] Parts parts(void* buffer) const noexcept {
    return Parts::of(buffer, counts, places, MPI_BYTE);
  }
  /// Returns the sum.
  MPI_Count set_places(std::uint32_t size) const noexcept {
    MPI_Count sum = 0;
    for (std::uint32_t i = 0; i < size; ++i) {
      places[i] = sum;
      sum += counts[i];
    }
    return sum;
  }
};

/// Four arrays in one block: what is sent, what is received.
bool allocate_shares(RankState& state, std::uint32_t size, Shares& out, Shares& in) noexcept {
  auto* block = state.allocate_array<MPI_Count>(std::size_t{4} * size);
  if (block == nullptr) {
    return false;
  }
  std::fill_n(block, std::size_t{4} * size, 0);
  out = {block, block + size};
  in = {block + 2 * size, block + 3 * size};
  return true;
}

/// The edges ordered by the rank that `end` names, otherwise as they were.
Edge* sort_by(RankState& state, std::span<const Edge> edges, int Edge::*end, const Shares& out,
              std::uint32_t size) noexcept {
  auto* sorted = state.allocate_array<Edge>(edges.size());
  if (sorted == nullptr) {
    return nullptr;
  }
  for (const Edge& edge : edges) {
    out.counts[edge.*end] += static_cast<MPI_Count>(sizeof(Edge));
  }
  out.set_places(size);
  for (const Edge& edge : edges) {
    MPI_Count& place = out.places[edge.*end];
    sorted[static_cast<std::size_t>(place) / sizeof(Edge)] = edge;
    place += static_cast<MPI_Count>(sizeof(Edge));
  }
  out.set_places(size);
  return sorted;
}

int send_edges(Call& call, Edge* sorted, const Shares& out, const Shares& in,
               EdgeList& own) noexcept {
  constexpr auto kCountBytes = static_cast<MPI_Count>(sizeof(MPI_Count));
  if (const int error = run_collective(call, {call.function}, [&](Builder& b) {
        build_alltoall(b, Parts::equal({out.counts, kCountBytes, MPI_BYTE}),
                       Parts::equal({in.counts, kCountBytes, MPI_BYTE}));
      })) {
    return error;
  }
  own.count = static_cast<std::size_t>(in.set_places(call.comm->size)) / sizeof(Edge);
  own.edges = call.state.allocate_array<Edge>(own.count);
  if (own.edges == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  return run_collective(call, {call.function}, [&](Builder& b) {
    build_alltoall(b, out.parts(sorted), in.parts(own.edges));
  });
}

/// Sends each edge to the rank that `end` names; `own` gets those that name this one.
int exchange(Call& call, std::span<const Edge> edges, int Edge::*end, EdgeList& own) noexcept {
  RankState& state = call.state;
  Shares out;
  Shares in;
  if (!allocate_shares(state, call.comm->size, out, in)) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  Edge* const sorted = sort_by(state, edges, end, out, call.comm->size);
  const int error =
      sorted == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : send_edges(call, sorted, out, in, own);
  state.deallocate(sorted);
  state.deallocate(out.counts);
  return error;
}

/// One side of a topology, from the other ends of its edges. False: no memory.
bool list_ends(RankState& state, const EdgeList& own, int Edge::*end, bool is_weighted, int*& ranks,
               int*& weights) noexcept {
  ranks = state.allocate_array<int>(own.count);
  weights = is_weighted ? state.allocate_array<int>(own.count) : nullptr;
  if (ranks == nullptr || (is_weighted && weights == nullptr)) {
    return false;
  }
  for (std::size_t i = 0; i < own.count; ++i) {
    ranks[i] = own.edges[i].*end;
    if (is_weighted) {
      weights[i] = own.edges[i].weight;
    }
  }
  return true;
}

Topology* create_from_edges(RankState& state, const EdgeList& in, const EdgeList& out,
                            bool is_weighted) noexcept {
  Topology* t = state.create<Topology>();
  if (t == nullptr) {
    return nullptr;
  }
  t->kind = TopologyKind::distributed_graph;
  t->is_weighted = is_weighted;
  t->source_count = static_cast<int>(in.count);
  t->target_count = static_cast<int>(out.count);
  if (!list_ends(state, in, &Edge::from, is_weighted, t->sources, t->source_weights) ||
      !list_ends(state, out, &Edge::to, is_weighted, t->targets, t->target_weights)) {
    destroy_topology(state, t);
    return nullptr;
  }
  return t;
}

}  // namespace

Topology* create_graph(RankState& state, int node_count, const int* ends,
                       const int* edges) noexcept {
  Topology* t = state.create<Topology>();
  if (t == nullptr) {
    return nullptr;
  }
  t->kind = TopologyKind::graph;
  t->node_count = node_count;
  t->ends = copy_numbers(state, ends, node_count);
  t->edges = copy_numbers(state, edges, node_count > 0 ? ends[node_count - 1] : 0);
  if (t->ends == nullptr || t->edges == nullptr) {
    destroy_topology(state, t);
    return nullptr;
  }
  return t;
}

int edge_count(const Topology& graph) noexcept {
  return graph.node_count > 0 ? graph.ends[graph.node_count - 1] : 0;
}

std::span<const int> neighbours_in_graph(const Topology& graph, int rank) noexcept {
  const int begin = rank == 0 ? 0 : graph.ends[rank - 1];
  return {graph.edges + begin, static_cast<std::size_t>(graph.ends[rank] - begin)};
}

Topology* create_distributed(RankState& state, const Neighbours& sources, const Neighbours& targets,
                             bool is_weighted) noexcept {
  Topology* t = state.create<Topology>();
  if (t == nullptr) {
    return nullptr;
  }
  t->kind = TopologyKind::distributed_graph;
  t->is_weighted = is_weighted;
  t->source_count = sources.count;
  t->target_count = targets.count;
  t->sources = copy_numbers(state, sources.ranks, sources.count);
  t->targets = copy_numbers(state, targets.ranks, targets.count);
  if (is_weighted) {
    t->source_weights = copy_numbers(state, sources.weights, sources.count);
    t->target_weights = copy_numbers(state, targets.weights, targets.count);
  }
  if (t->sources == nullptr || t->targets == nullptr ||
      (is_weighted && (t->source_weights == nullptr || t->target_weights == nullptr))) {
    destroy_topology(state, t);
    return nullptr;
  }
  return t;
}

int gather_distributed(Call& call, std::span<const Edge> edges, bool is_weighted,
                       Topology** topology) noexcept {
  RankState& state = call.state;
  EdgeList in;
  EdgeList out;
  int error = exchange(call, edges, &Edge::to, in);
  if (error == MPI_SUCCESS) {
    error = exchange(call, edges, &Edge::from, out);
  }
  if (error == MPI_SUCCESS) {
    *topology = create_from_edges(state, in, out, is_weighted);
    error = *topology == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
  }
  state.deallocate(in.edges);
  state.deallocate(out.edges);
  return error;
}

}  // namespace sterna::mpi
