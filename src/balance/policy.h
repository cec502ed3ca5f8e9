// What a balancing policy provides, and the list of the built-in ones.
//
// A policy is a pure function from measures to moves: it sends nothing, knows no clock, and gives
// the same plan for the same measures. balance/actor.h measures and carries plans out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "balance/load.h"

namespace sterna::balance {

/// A decision as data. `from` differs from `to`, and the rank is movable.
struct Move {
  std::uint32_t rank;
  std::uint32_t from;
  std::uint32_t to;

  bool operator==(const Move&) const = default;
};

using Plan = std::vector<Move>;

struct PolicyEntry {
  std::string_view name;     // As written after --balance.
  std::string_view summary;  // One line, for sterna info.
  Plan (*plan)(const Measures& measures);
};

/// All policies of this build; see balance/policies/builtin.cc to add one.
[[nodiscard]] std::span<const PolicyEntry* const> builtin_policies() noexcept;

/// Null when there is none of that name.
[[nodiscard]] const PolicyEntry* find_policy(std::string_view name) noexcept;

/// `measures` after `plan`: for tests, and for the report.
[[nodiscard]] Measures apply(Measures measures, const Plan& plan);

}  // namespace sterna::balance
