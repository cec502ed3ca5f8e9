// The thread of node 0 that decides, and what it waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "balance/actor.h"
#include "balance/report.h"
#include "base/annotate.h"
#include "base/spin_lock.h"

namespace sterna::balance {

struct Actor::Decider {
  Decider(std::uint32_t rank_count, std::uint32_t node_count)
      : ranks(rank_count), heard(node_count) {}

  enum class State : std::uint8_t { runs, at_point, ended };

  /// `node` tells.
  void note(const Arrived& arrived, std::uint32_t node) noexcept;
  /// The point under way is over. Returns what was heard of its ranks: of none that is at the next
  /// one, where nobody is before he was released here.
  [[nodiscard]] std::vector<std::uint64_t> end_point();

  // Written by the thread itself when it begins, for ever: it is not detached, so that its
  // descriptor outlives it, and a message that comes late wakes nobody but harms nobody.
  std::atomic<threads::Thread*> thread{nullptr};
  std::atomic<bool> is_stopping{false};
  SpinLock lock;
  std::vector<State> ranks STERNA_GUARDED_BY(lock);
  std::vector<std::uint64_t> heard STERNA_GUARDED_BY(lock);  // By node: the last number.
  std::uint32_t at_point STERNA_GUARDED_BY(lock) = 0;        // So many of the ranks.
  std::uint32_t ended STERNA_GUARDED_BY(lock) = 0;
  std::map<std::uint32_t, double> average_ns;       // By rank, of an interval. Guard: the thread.
  std::map<std::uint32_t, std::uint64_t> messages;  // By rank, ever. Guard: the thread.
  // Relaxed: figures for a report.
  std::atomic<std::uint64_t> rounds{0}, moves_ordered{0};
  std::atomic<double> imbalance_first{0.0}, imbalance_last{0.0};
};

}  // namespace sterna::balance
