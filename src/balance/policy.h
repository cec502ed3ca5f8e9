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
#include "base/result.h"

namespace sterna::balance {

/// A decision as data. `from` differs from `to`, and the rank is movable.
struct Move {
  std::uint32_t rank;
  std::uint32_t from;
  std::uint32_t to;

  bool operator==(const Move&) const = default;
};

using Plan = std::vector<Move>;

// A plan must make the slowest node faster by this part, or nobody moves.
inline constexpr double kGainMin = 0.05;

struct PolicyEntry {
  std::string_view name;     // As written after --balance.
  std::string_view summary;  // One line, for sterna info.
  // `arguments`: what stands in brackets after the name, verified; empty: nothing does.
  Result<Plan> (*plan)(const Measures& measures, std::string_view arguments);
  // Why what stands in brackets is refused. Null: nothing may stand there.
  Result<> (*verify)(std::string_view arguments) = nullptr;
};

/// A policy as it is written: "refine", "places(burst,block=4)".
struct Choice {
  const PolicyEntry* entry = nullptr;
  std::string_view arguments = {};  // Of the text.

  [[nodiscard]] Result<Plan> plan(const Measures& measures) const {
    return entry->plan(measures, arguments);
  }
};

/// INVALID_ARGUMENT says what is wrong with `text`, which outlives the choice.
[[nodiscard]] Result<Choice> choose_policy(std::string_view text);

/// All policies of this build; see balance/policies/builtin.cc to add one.
[[nodiscard]] std::span<const PolicyEntry* const> builtin_policies() noexcept;

/// Null when there is none of that name.
[[nodiscard]] const PolicyEntry* find_policy(std::string_view name) noexcept;

/// `measures` after `plan`: for tests, and for the report.
[[nodiscard]] Measures apply(Measures measures, const Plan& plan);
/// The plan that makes `after` of `before`: the same ranks, some of them on other nodes.
[[nodiscard]] Plan difference(const Measures& before, const Measures& after);

}  // namespace sterna::balance
