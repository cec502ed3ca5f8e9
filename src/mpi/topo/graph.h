// Topologies that are graphs: given whole to every rank, or in parts by any rank.
#pragma once

#include <span>

#include <mpi.h>

#include "mpi/errors/error.h"
#include "mpi/topo/topology.h"

namespace sterna::mpi {

/// `ends` and `edges` as MPI_Graph_create has them. Null: no memory.
[[nodiscard]] Topology* create_graph(RankState& state, int node_count, const int* ends,
                                     const int* edges) noexcept;
[[nodiscard]] int edge_count(const Topology& graph) noexcept;
/// Of any rank: every rank knows the whole graph.
[[nodiscard]] std::span<const int> neighbours_in_graph(const Topology& graph, int rank) noexcept;

/// The neighbours on one side. `weights` may be MPI_UNWEIGHTED or MPI_WEIGHTS_EMPTY.
struct Neighbours {
  const int* ranks = nullptr;
  const int* weights = nullptr;
  int count = 0;
};
/// Null: no memory.
[[nodiscard]] Topology* create_distributed(RankState& state, const Neighbours& sources,
                                           const Neighbours& targets, bool is_weighted) noexcept;

struct Edge {
  int from;
  int to;
  int weight;
};
/// Collective over call.comm: each rank gives some edges, whoever's they are, and gets the topology
/// of its own. Edges between two ranks are listed by the rank that gave them, then as it gave them,
/// at both ends: the k-th message between neighbours finds the k-th place.
int gather_distributed(Call& call, std::span<const Edge> edges, bool is_weighted,
                       Topology** topology) noexcept;

}  // namespace sterna::mpi
