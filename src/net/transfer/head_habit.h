// Whether the next announced message shall have a head: where receives come late heads are dropped,
// and each such one halves how often they are sent.
//
// Any thread; all relaxed: guesses that may be old ones. Two that ask at once may count as one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sterna::net {

class HeadHabit {
 public:
  [[nodiscard]] bool takes_one() noexcept {
    const std::uint32_t left = headless_left_.load(std::memory_order_relaxed);
    if (left != 0) {
      headless_left_.store(left - 1, std::memory_order_relaxed);
    }
    return left == 0;
  }
  /// One was received, or dropped.
  void ended(bool was_taken) noexcept {
    constexpr std::uint32_t kHeadlessMax = 127;
    const std::uint32_t next =
        was_taken ? 0 : std::min(2 * headless_.load(std::memory_order_relaxed) + 1, kHeadlessMax);
    headless_.store(next, std::memory_order_relaxed);
    headless_left_.store(next, std::memory_order_relaxed);
    const std::uint32_t taken = taken_.load(std::memory_order_relaxed);
    taken_.store(was_taken ? std::min(taken + 1, kUntilSure) : 0, std::memory_order_relaxed);
  }
  /// So many in a row were taken that the whole message may be one.
  [[nodiscard]] bool are_sure() const noexcept {
    return taken_.load(std::memory_order_relaxed) == kUntilSure;
  }

  /// Asked where are_sure(): of messages that could go whole one of some is announced all the same:
  /// only of those it is heard whether their receives had been posted.
  [[nodiscard]] bool goes_unannounced() noexcept {
    const std::uint32_t left = unannounced_left_.load(std::memory_order_relaxed);
    unannounced_left_.store(left != 0 ? left - 1 : kUnannounced, std::memory_order_relaxed);
    return left != 0;
  }

 private:
  static constexpr std::uint32_t kUntilSure = 8;
  static constexpr std::uint32_t kUnannounced = 7;  // In a row.

  std::atomic<std::uint32_t> headless_{0};       // Messages without a head after one was dropped.
  std::atomic<std::uint32_t> headless_left_{0};  // Of them, still to come.
  std::atomic<std::uint32_t> taken_{0};          // In a row, up to kUntilSure.
  std::atomic<std::uint32_t> unannounced_left_{0};
};

}  // namespace sterna::net
