// The policy greedy: the heaviest rank first, each to the node that would finish it earliest.
//
// Longest processing time first (Graham 1969): at most 4/3 of the best possible time, whatever the
// placement was before. It forgets where ranks are, so it moves many: for the first balancing of a
// badly placed job, and only when the result is better than what is there. Ranks that may not move
// are placed first, where they are.
#include <algorithm>

#include "balance/policies/builtin.h"

namespace sterna::balance {
namespace {

/// The node that would be done first with `cpu_ns` more; `home` when it is as good as any other.
std::uint32_t earliest(const std::vector<double>& times, const Measures& measures,
                       const RankLoad& rank) noexcept {
  const auto end_on = [&](std::uint32_t node) {
    return times[node] + static_cast<double>(rank.cpu_ns) / measures.nodes[node].speed;
  };
  std::uint32_t best = rank.node;
  for (std::uint32_t node = 0; node < times.size(); ++node) {
    if (end_on(node) < end_on(best)) {
      best = node;
    }
  }
  return best;
}

Result<Plan> plan_greedy(const Measures& measures, std::string_view) {
  if (measures.nodes.empty()) {
    return Plan{};
  }
  std::vector<double> times(measures.nodes.size(), 0.0);
  std::vector<const RankLoad*> heaviest_first;
  for (const RankLoad& rank : measures.ranks) {
    if (rank.movable) {
      heaviest_first.push_back(&rank);
    } else {
      times[rank.node] += static_cast<double>(rank.cpu_ns) / measures.nodes[rank.node].speed;
    }
  }
  std::ranges::stable_sort(heaviest_first, std::ranges::greater{}, &RankLoad::cpu_ns);
  Plan plan;
  for (const RankLoad* rank : heaviest_first) {
    const std::uint32_t to = earliest(times, measures, *rank);
    times[to] += static_cast<double>(rank->cpu_ns) / measures.nodes[to].speed;
    if (to != rank->node) {
      plan.push_back({.rank = rank->rank, .from = rank->node, .to = to});
    }
  }
  const double before = std::ranges::max(node_times_ns(measures));
  return std::ranges::max(times) < before ? plan : Plan{};
}

}  // namespace

constinit const PolicyEntry kGreedyPolicy{
    .name = "greedy",
    .summary = "heaviest rank first to the node that ends it earliest; moves many ranks",
    .plan = plan_greedy,
};

}  // namespace sterna::balance
