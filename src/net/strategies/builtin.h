// The entries of the built-in strategies.
#pragma once

#include "net/packets/strategy.h"

namespace sterna::net {

extern const StrategyEntry kDirectStrategy;
extern const StrategyEntry kAggregateStrategy;
extern const StrategyEntry kAutoStrategy;
extern const StrategyEntry kSplitStrategy;
extern const StrategyEntry kUrgentStrategy;
extern const StrategyEntry kAdaptiveStrategy;

}  // namespace sterna::net
