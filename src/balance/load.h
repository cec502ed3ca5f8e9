// What a balancer knows: the measured load of each rank and the capacity of each node.
#pragma once

#include <cstdint>
#include <vector>

namespace sterna::balance {

/// One rank since the last balancing. `cpu_ns` is the processor time it used.
struct RankLoad {
  std::uint32_t rank;
  std::uint32_t node;
  std::uint64_t cpu_ns;
  std::uint64_t messages;  // Sent and received.
  std::uint64_t bytes;     // Of its image: what a move costs.
  bool movable;            // False: it has a reason to stay (migration/refusal.h).
};

/// `speed` is relative: the number of processors the node runs its ranks on. A node that shares its
/// processors with another one counts its share.
struct NodeCapacity {
  double speed;
  std::uint32_t host = 0;  // Nodes of one host have the same number.
};

/// Who is slower does not answer: nobody goes there.
inline constexpr double kSpeedMin = 1e-3;

/// Ranks in the order of their numbers; every RankLoad::node is an index of `nodes`.
struct Measures {
  std::vector<RankLoad> ranks;
  std::vector<NodeCapacity> nodes;
};

/// Load of the most loaded node over the average: 1 is perfect. 1 for a job without load.
[[nodiscard]] double imbalance(const Measures& measures) noexcept;

/// Time each node needs for its ranks: sum of cpu_ns over speed.
[[nodiscard]] std::vector<double> node_times_ns(const Measures& measures);

}  // namespace sterna::balance
