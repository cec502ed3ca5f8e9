// The registry is a table: its order is visible, and nothing runs before main(). To add a policy:
// declare its entry in builtin.h, list it here, and the suite of policy_test.cc runs on it.
#include "balance/policies/builtin.h"

#include <array>
#include <string>

namespace sterna::balance {

std::span<const PolicyEntry* const> builtin_policies() noexcept {
  static constexpr std::array kPolicies{&kNonePolicy, &kGreedyPolicy, &kRefinePolicy,
                                        &kPlacesPolicy};
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

Result<Choice> choose_policy(std::string_view text) {
  const std::size_t bracket = text.find('(');
  const std::string_view name = text.substr(0, bracket);
  const PolicyEntry* const entry = find_policy(name);
  if (entry == nullptr) {
    std::string names;
    for (const PolicyEntry* const known : builtin_policies()) {
      names += (names.empty() ? "" : ", ") + std::string{known->name};
    }
    return Error{Errc::invalid_argument,
                 "there is no balancer \"" + std::string{name} + "\", it is one of " + names};
  }
  if (bracket == std::string_view::npos) {
    return Choice{entry, {}};
  }
  const std::string_view inner = text.substr(bracket + 1);
  if (entry->verify == nullptr || !inner.ends_with(')')) {
    return Error{Errc::invalid_argument,
                 entry->verify == nullptr
                     ? "balancer " + std::string{name} + " takes nothing in brackets"
                     : "the brackets of \"" + std::string{text} + "\" do not match"};
  }
  const std::string_view arguments = inner.substr(0, inner.size() - 1);
  if (Result<> verified = entry->verify(arguments); !verified) {
    return verified.error();
  }
  return Choice{entry, arguments};
}

Plan difference(const Measures& before, const Measures& after) {
  Plan plan;
  for (std::size_t i = 0; i < before.ranks.size(); ++i) {
    const RankLoad& rank = before.ranks[i];
    if (rank.node != after.ranks[i].node) {
      plan.push_back({.rank = rank.rank, .from = rank.node, .to = after.ranks[i].node});
    }
  }
  return plan;
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
