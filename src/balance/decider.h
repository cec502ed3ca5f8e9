// The thread of node 0 that decides, and what it waits for.
#pragma once

#include <atomic>
#include <cstdint>

#include "balance/actor.h"

namespace sterna::balance {

struct Actor::Decider {
  // Written by the thread itself when it begins, for ever: it is not detached, so that its
  // descriptor outlives it, and a message that comes late wakes nobody but harms nobody.
  std::atomic<threads::Thread*> thread{nullptr};
  std::atomic<bool> is_stopping{false};
  std::atomic<std::uint32_t> at_point{0};           // Ranks that wait at the point under way.
  std::atomic<std::uint32_t> ended{0};              // Ranks that will not come any more.
  std::map<std::uint32_t, double> average_ns;       // By rank, of an interval. Guard: the thread.
  std::map<std::uint32_t, std::uint64_t> messages;  // By rank, ever. Guard: the thread.
  // Relaxed: figures for a report.
  std::atomic<std::uint64_t> rounds{0}, moves_ordered{0};
  std::atomic<double> imbalance_first{0.0}, imbalance_last{0.0};
};

}  // namespace sterna::balance
