// What the one caller of a process does after it has left long messages under way, of either
// direction: those it has started to send, and those that had come, or been announced, before it
// asked for them. The two are learned apart: a program may receive beside its computation, and wait
// for what it sends.
//
// Not thread-safe: the one caller's, or theirs who poll in its place.
#pragma once

#include <cstdint>

#include "net/transfer/wait_habit.h"

namespace sterna::net {

class CallerHabits {
 public:
  /// A message was started that the receiver could read while its sender computes.
  void has_sent(std::uint64_t now_ns) noexcept {
    sends_.started(now_ns);
    sends_follow_ = sends_follow_ || has_found_;
    has_found_ = false;
  }
  /// A call that does not wait posts a receive, and finds what has been announced for it. True: by
  /// its habit the caller starts to send before it waits, so that this had better be read later.
  [[nodiscard]] bool finds_announced() noexcept {
    has_found_ = true;
    return sends_follow_;
  }
  /// A receive is left under way. The first since the last wait, or since nothing was, counts,
  /// where nothing is under way that was sent.
  void has_left_receive(std::uint64_t now_ns) noexcept {
    if (!sends_.has_started() && !(receives_.is_open() && receives_.has_started())) {
      receives_.started(now_ns);
    }
  }
  /// See WaitHabit, for the next two.
  void was_away(std::uint64_t left_ns, std::uint64_t back_ns) noexcept {
    sends_.was_away(left_ns, back_ns);
    receives_.was_away(left_ns, back_ns);
  }
  void ended() noexcept {
    sends_.ended();
    receives_.ended();
  }
  /// Whether waits() would learn something.
  [[nodiscard]] bool is_open() const noexcept { return measures_absence() || has_found_; }
  /// Whether was_away() would tell something: what was found, and read at once, asks only whether
  /// something is sent before the wait.
  [[nodiscard]] bool measures_absence() const noexcept {
    return sends_.is_open() || receives_.is_open();
  }
  void waits(std::uint64_t now_ns) noexcept {
    sends_follow_ = sends_follow_ && !has_found_;
    has_found_ = false;
    if (sends_.is_open()) {
      sends_.waits(now_ns);
    }
    if (receives_.is_open()) {
      receives_.waits(now_ns);
    }
  }
  /// Something was left, may be under way still, and is about to be waited for, or is already.
  [[nodiscard]] bool is_about_to_wait() const noexcept {
    return sends_.has_started() ? sends_.is_about_to_wait() : receives_.is_about_to_wait();
  }

  [[nodiscard]] const WaitHabit& of_sends() const noexcept { return sends_; }

 private:
  WaitHabit sends_;
  WaitHabit receives_;
  bool has_found_ = false;     // finds_announced(), and nothing has been sent or waited for since.
  bool sends_follow_ = false;  // The last time.
};

}  // namespace sterna::net
