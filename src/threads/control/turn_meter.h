// How the turns of accounted threads are charged to them. Of a worker; internal to threads/.
//
// A turn is charged with its length, by a time stamp at each switch. Only where threads hand over
// to each other directly (direct.h), some tens of nanoseconds a turn, the stamp would be a seventh
// of all: there, after kShortMin short turns, rows of turns go untimed. The row has a random
// length, as often even as odd; the turn after it is timed, and is charged for the row too, as if
// all of the row were as long as it: whose turn that is, and how long it is, is chance, so that
// each thread pays its share in the long run. What all of them pay is made to agree with the time
// of the rows.
//
// Chance is good for many short turns, not for few long ones. A row that took too long to be made
// of short turns, or that ends in another way, is charged to whom it ends with: a guess. After each
// guess all turns are timed, for kExactRatio times as long as what was guessed. So at most one part
// in kExactRatio of the time of a worker is charged to the wrong thread by a guess, whatever the
// threads do. Who looks at a thread in an untimed turn ends the row (look()): a long turn is
// charged to who has it. tests: turn_meter_test.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

/// All of it by its worker, but for look() and untimed_since(). Times are cycles.
class TurnMeter {
 public:
  static constexpr std::uint64_t kShortNs = 1000;
  static constexpr std::uint32_t kShortMin = 8;
  static constexpr std::uint32_t kRowMax = 64;
  static constexpr std::uint64_t kExactRatio = 64;

  /// Turns of up to `short_cycles` are short. Before the first switch.
  void open(std::uint64_t short_cycles) noexcept { short_cycles_ = short_cycles; }

  /// A thread hands over to another one directly. False: pass() it.
  [[nodiscard, gnu::always_inline]] bool skips() noexcept {
    const std::uint32_t left = left_.load(std::memory_order_relaxed);
    if (left == 0) [[unlikely]] {
      return false;
    }
    left_.store(left - 1, std::memory_order_relaxed);
    return true;
  }
  /// `direct_left` switches after this one will be direct too, as far as the caller knows.
  void pass(Thread& from, Thread& to, std::uint64_t now, std::uint32_t direct_left) noexcept;

  /// Any other switch; need not be told where neither of the two is accounted.
  void change(Thread& from, Thread& to, std::uint64_t now) noexcept;
  /// The turn of `thread`, which is accounted, ends.
  void end(Thread& thread, std::uint64_t now) noexcept;

  /// The next switch is timed. From anywhere; a hint, which may get lost while the worker switches.
  void look() noexcept { left_.store(0, std::memory_order_relaxed); }
  /// Since when nothing was charged, 0: all is. From anywhere, a hint.
  [[nodiscard]] std::uint64_t untimed_since() const noexcept {
    return row_begin_.load(std::memory_order_relaxed);
  }
  /// A row of short turns is over after so long.
  [[nodiscard]] std::uint64_t row_cycles_max() const noexcept { return kRowMax * short_cycles_; }

 private:
  void forget_row() noexcept;
  void guess(Thread& thread, std::uint64_t cycles, std::uint64_t now) noexcept;
  void charge_row(Thread& thread, std::uint64_t cycles) noexcept;
  void begin_row(std::uint64_t now, std::uint32_t length_max) noexcept;
  void end_row(Thread& thread, std::uint64_t now) noexcept;
  void charge_turn(Thread& thread, std::uint64_t cycles, std::uint64_t now) noexcept;

  std::atomic<std::uint32_t> left_{0};       // Switches to come without a stamp.
  std::atomic<std::uint64_t> row_begin_{0};  // While turns go untimed; else 0.
  std::uint32_t row_length_ = 0;             // Of the last row.
  std::uint64_t row_cycles_ = 0;             // It ended, and is charged with the turn under way.
  std::uint32_t short_count_ = 0;            // In succession, up to kShortMin.
  std::uint64_t short_cycles_ = 0;           // 0: no rows.
  std::uint64_t exact_until_ = 0;            // No rows before that.
  std::uint64_t random_ = 0x9e37'79b9'7f4a'7c15;
  // Of the last rows, fading: how long they took, and how long they would have as charged.
  std::uint64_t true_cycles_ = 0;
  std::uint64_t estimated_cycles_ = 0;
};

}  // namespace sterna::threads
