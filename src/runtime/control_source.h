// The launcher's socket as something to poll.
#pragma once

#include "progress/source.h"
#include "runtime/control.h"

namespace sterna::runtime {

class ControlSource final : public progress::Source {
 public:
  /// Both outlive the source.
  ControlSource(ControlClient& control, ControlEvents& events) noexcept
      : control_{control}, events_{events} {}

  /// The launcher speaks rarely and a read is a system call: looks at every kPollInterval-th round,
  /// and at every one that follows a sleep.
  std::uint32_t poll() noexcept override {
    if (--rounds_left_ != 0) {
      return 0;
    }
    rounds_left_ = kPollInterval;
    return control_.poll(events_);
  }
  [[nodiscard]] int fd() noexcept override { return control_.fd(); }
  void end_sleep() noexcept override { rounds_left_ = 1; }
  bool hear() noexcept override {
    rounds_left_ = 1;
    return true;
  }

 private:
  static constexpr std::uint32_t kPollInterval = 1024;

  ControlClient& control_;
  ControlEvents& events_;
  std::uint32_t rounds_left_ = kPollInterval;  // Guard: the poller.
};

}  // namespace sterna::runtime
