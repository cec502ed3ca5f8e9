// Whether the one caller of a process waits as soon as it has started its long messages, or
// computes first, and for how long: by what it did the last times. Only who waits at once may just
// as well send them itself, in packets, of which the receiver reads one while it fills another:
// that is faster than a copy by the receiver alone, or by who sends in the place of its program,
// which leave the sender free to compute.
//
// Not thread-safe: the one caller's, or theirs who poll in its place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "progress/wait_habits.h"

namespace sterna::net {

class WaitHabit {
 public:
  /// A message was started that the receiver could read while its sender computes.
  void started(std::uint64_t now_ns) noexcept {
    left_ns_ = now_ns;
    back_ns_ = 0;
    is_open_ = has_started_ = true;
  }
  /// Since then: when it left that call, or a later one that did not wait, and began the next one.
  /// Between the two it computes, and the longest of such times counts; what the calls themselves
  /// do counts for nothing.
  void was_away(std::uint64_t left_ns, std::uint64_t back_ns) noexcept {
    if (back_ns_ == 0 || back_ns - left_ns > back_ns_ - left_ns_) {
      left_ns_ = left_ns;
      back_ns_ = back_ns;
    }
  }
  /// Nothing that was started is open any more.
  void ended() noexcept { has_started_ = false; }
  /// Something was started, may be open still, and is about to be waited for, or is already.
  [[nodiscard]] bool is_about_to_wait() const noexcept { return has_started_ && waits_at_once(); }
  /// Something was started since nothing was.
  [[nodiscard]] bool has_started() const noexcept { return has_started_; }
  /// Whether waits() would learn something.
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  /// The caller waits, for whatever. Of several messages the last one counts.
  void waits(std::uint64_t now_ns) noexcept {
    is_open_ = false;
    const std::uint64_t back_ns = back_ns_ != 0 ? back_ns_ : now_ns;
    const std::uint64_t away_ns = back_ns - std::min(left_ns_, back_ns);
    times_ = away_ns <= kSoonNs ? std::min(times_ + 1, kTimes) : 0;
    computes_ns_ = std::min(away_ns, last_ns_);
    last_ns_ = away_ns;
  }

  [[nodiscard]] bool waits_at_once() const noexcept { return times_ == kTimes; }
  /// For so long it is likely to compute before it waits; 0: not known.
  [[nodiscard]] std::uint64_t computes_ns() const noexcept { return computes_ns_; }

 private:
  // As of each of several callers.
  static constexpr std::uint64_t kSoonNs = progress::WaitHabits::kSoonNs;
  static constexpr std::uint32_t kTimes = progress::WaitHabits::kTimes;

  std::uint64_t left_ns_ = 0;
  std::uint64_t back_ns_ = 0;  // 0: it has not left since.
  std::uint64_t last_ns_ = 0;      // Between its last start and its wait.
  std::uint64_t computes_ns_ = 0;  // The shorter one of the last two.
  std::uint32_t times_ = 0;
  bool is_open_ = false;
  bool has_started_ = false;
};

}  // namespace sterna::net
