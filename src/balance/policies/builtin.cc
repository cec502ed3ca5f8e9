// The registry is a table: its order is visible, and nothing runs before main(). To add a policy:
// declare its entry in builtin.h, list it here, and the suite of policy_test.cc runs on it.
#include "balance/policies/builtin.h"

#include <array>

namespace sterna::balance {

std::span<const PolicyEntry* const> builtin_policies() noexcept {
  static constexpr std::array kPolicies{&kNonePolicy, &kGreedyPolicy, &kRefinePolicy};
  return kPolicies;
}

const PolicyEntry* find_policy(std::string_view name) noexcept {
  for (const PolicyEntry* entry : builtin_policies()) {
    if (entry->name == name) {
      return entry;
    }
  }
  return nullptr;
}

Measures apply(Measures measures, const Plan& plan) {
  for (const Move& move : plan) {
    for (RankLoad& rank : measures.ranks) {
      if (rank.rank == move.rank) {
        rank.node = move.to;
      }
    }
  }
  return measures;
}

}  // namespace sterna::balance
