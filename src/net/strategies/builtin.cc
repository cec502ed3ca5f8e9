// The table of strategies. A new one: write its file, declare it in builtin.h, add it here.
#include "net/strategies/builtin.h"

#include <string>

namespace sterna::net {
namespace {

constexpr const StrategyEntry* kStrategies[] = {&kAutoStrategy, &kAggregateStrategy,
                                                &kDirectStrategy};

}  // namespace

std::span<const StrategyEntry* const> builtin_strategies() noexcept {
  return kStrategies;
}

Result<const Strategy*> find_strategy(std::string_view name) {
  std::string known;
  for (const StrategyEntry* entry : kStrategies) {
    if (entry->name == name) {
      return entry->strategy;
    }
    known += known.empty() ? "" : ", ";
    known += entry->name;
  }
  return Error{Errc::invalid_argument, "there is no network strategy '" + std::string{name} +
                                           "'; STERNA_NET_STRATEGY is one of: " + known};
}

}  // namespace sterna::net
