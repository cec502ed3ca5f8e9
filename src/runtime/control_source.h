// The launcher's socket as something to poll.
#pragma once

#include "base/clock.h"
#include "progress/source.h"
#include "runtime/control.h"

namespace sterna::runtime {

class ControlSource final : public progress::Source {
 public:
  /// Both outlive the source.
  ControlSource(ControlClient& control, ControlEvents& events) noexcept
      : control_{control}, events_{events} {}

  /// The launcher speaks rarely and a read is a system call, and the clock costs as much as a
  /// round: looks at every kRounds-th round if it is time, and at every one that follows a sleep.
  std::uint32_t poll() noexcept override {
    if (--rounds_left_ != 0) {
      return 0;
    }
    rounds_left_ = kRounds;
    const std::uint64_t now = now_ns();
    if (now < next_ns_) {
      return 0;
    }
    next_ns_ = now + kPauseNs;
    return control_.poll(events_);
  }
  [[nodiscard]] int fd() noexcept override { return control_.fd(); }
  void end_sleep() noexcept override { look_next(); }
  bool hear() noexcept override {
    look_next();
    return true;
  }

 private:
  // Of programs that poll now and then, as by MPI_Test, too: who waits for a rank that is lost is
  // to hear of it soon.
  static constexpr std::uint32_t kRounds = 32;
  static constexpr std::uint64_t kPauseNs = 100'000;

  void look_next() noexcept {
    rounds_left_ = 1;
    next_ns_ = 0;
  }

  ControlClient& control_;
  ControlEvents& events_;
  std::uint32_t rounds_left_ = kRounds;  // Guard of both: the poller.
  std::uint64_t next_ns_ = 0;
};

}  // namespace sterna::runtime
