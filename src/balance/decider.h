// The thread of node 0 that decides, and what it waits for.
#pragma once

#include <atomic>
#include <cstdint>

#include "balance/actor.h"

namespace sterna::balance {

struct Actor::Decider {
  threads::Thread* thread = nullptr;  // Written by start(), read after it.
  std::atomic<bool> is_stopping{false};
  std::atomic<std::uint32_t> at_point{0};  // Ranks that wait at the point under way.
  std::atomic<std::uint32_t> ended{0};     // Ranks that will not come any more.
  std::map<std::uint32_t, double>
      average_ns;  // Load a rank and interval. Guard: the thread itself.
  // Relaxed: figures for a report.
  std::atomic<std::uint64_t> rounds{0}, moves_ordered{0};
  std::atomic<double> imbalance_first{0.0}, imbalance_last{0.0};
};

}  // namespace sterna::balance
