// The strategies of this build, and those that are loaded.
#pragma once

#include <span>
#include <string_view>

#include <sterna/strategy.hpp>

#include "base/result.h"

namespace sterna::net {

struct StrategyEntry {
  std::string_view name;     // As written in STERNA_NET_STRATEGY.
  std::string_view summary;  // One line, for `sterna info`.
  const Strategy* strategy;  // One for all gates.
};

[[nodiscard]] std::span<const StrategyEntry* const> builtin_strategies() noexcept;

/// A name of the table, or the path of a library (with a '/'), which is loaded and stays so. Fails
/// with invalid_argument and what to do.
[[nodiscard]] Result<const Strategy*> find_strategy(std::string_view name);
/// The same without loading anything: for settings of programs that do not send.
[[nodiscard]] Result<> verify_strategy(std::string_view name);

}  // namespace sterna::net
