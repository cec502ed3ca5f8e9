// Virtual topologies: what MPI_Cart_create, MPI_Graph_create and MPI_Dist_graph_create attach.
#pragma once

#include <mpi.h>

#include "mpi/rank_state.h"

namespace sterna::mpi {

enum class TopologyKind : std::uint8_t { cartesian, graph, distributed_graph };

/// Constant after creation; owned by one communicator.
struct Topology {
  TopologyKind kind = TopologyKind::cartesian;
  // Cartesian: dimension_count entries each.
  int dimension_count = 0;
  int* dimensions = nullptr;
  int* periods = nullptr;
  int* coordinates = nullptr;  // Of this rank.
  // Graph: node_count ends of the lists in `edges`, as the program gave them.
  int node_count = 0;
  int* ends = nullptr;
  int* edges = nullptr;
  // Distributed graph: the neighbours of this rank.
  int source_count = 0;
  int target_count = 0;
  int* sources = nullptr;
  int* targets = nullptr;
  int* source_weights = nullptr;  // Null: not weighted.
  int* target_weights = nullptr;
  bool is_weighted = false;
};

struct Comm;

void destroy_topology(RankState& state, Topology* topology) noexcept;
/// Null: no memory.
[[nodiscard]] Topology* create_cartesian(RankState& state, int count, const int* dimensions,
                                         const int* periods, int rank) noexcept;
[[nodiscard]] Topology* copy_topology(RankState& state, const Comm& comm) noexcept;
[[nodiscard]] int* copy_numbers(RankState& state, const int* from, int count) noexcept;

/// Row-major: the last dimension varies fastest.
void coordinates_of(const Topology& t, int rank, int* coordinates) noexcept;
/// MPI_PROC_NULL: outside of a dimension that is not periodic.
[[nodiscard]] int rank_of(const Topology& t, const int* coordinates) noexcept;

/// The neighbours of this rank in the order of MPI-5.0 §8.6: those it receives from, those it sends
/// to. Cartesian ones may be MPI_PROC_NULL.
[[nodiscard]] int source_count(const Comm& comm) noexcept;
[[nodiscard]] int target_count(const Comm& comm) noexcept;
[[nodiscard]] int source_at(const Comm& comm, int index) noexcept;
[[nodiscard]] int target_at(const Comm& comm, int index) noexcept;

}  // namespace sterna::mpi
