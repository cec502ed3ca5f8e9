// From which length on direct copies are the faster way where something is other than for who sends
// (CostModel::direct_from_bytes).
//
// Any thread; relaxed: thresholds order nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/costs/cost.h"

namespace sterna::net {

class DirectThresholds {
 public:
  void publish(const CostModel& cost) noexcept {
    if_large_.store(cost.large_pages_from_bytes(), std::memory_order_relaxed);
    when_read_.store(cost.read_from_bytes(), std::memory_order_relaxed);
  }
  /// If the memory of the message lay in large pages.
  [[nodiscard]] std::uint64_t if_large() const noexcept {
    return if_large_.load(std::memory_order_relaxed);
  }
  /// For who reads a message of the peer, which could send the rest in packets.
  [[nodiscard]] std::uint64_t when_read() const noexcept {
    return when_read_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> if_large_{CostModel::kNever};
  std::atomic<std::uint64_t> when_read_{CostModel::kNever};
};

}  // namespace sterna::net
