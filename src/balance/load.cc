// Sums over measures.
#include "balance/load.h"

#include <algorithm>

namespace sterna::balance {

std::vector<double> node_times_ns(const Measures& measures) {
  std::vector<double> times(measures.nodes.size(), 0.0);
  for (const RankLoad& rank : measures.ranks) {
    times[rank.node] += static_cast<double>(rank.cpu_ns) / measures.nodes[rank.node].speed;
  }
  return times;
}

double imbalance(const Measures& measures) noexcept {
  double total = 0.0;
  double speed = 0.0;
  for (const RankLoad& rank : measures.ranks) {
    total += static_cast<double>(rank.cpu_ns);
  }
  for (const NodeCapacity& node : measures.nodes) {
    speed += node.speed;
  }
  if (total == 0.0 || speed == 0.0) {
    return 1.0;
  }
  return std::ranges::max(node_times_ns(measures)) / (total / speed);
}

}  // namespace sterna::balance
