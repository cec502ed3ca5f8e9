// A source of events that wants to be polled: a driver, a control channel, the timers of a
// protocol.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace sterna::progress {

/// A program that comes and goes is not away for longer between two of its calls.
inline constexpr std::uint64_t kMomentOfAbsenceNs = 15'000;

/// Upcalls of Progress. All but fd() come from one poller at a time (whichever thread that is: a
/// worker, a user thread at a switch, a kernel thread that waits), without locks of Progress that a
/// source could need. They must not switch or block; they may complete Completions and unpark
/// threads. fd() is asked once, in add().
class Source {
 public:
  /// Handles what has arrived, a bounded part at a time; returns how many events.
  virtual std::uint32_t poll() noexcept = 0;

  /// Readable when poll() has something to do; -1: this source has none. Constant. Several: an
  /// epoll descriptor.
  [[nodiscard]] virtual int fd() noexcept { return -1; }

  /// The poller wants to sleep. False: do not, poll again. True: from now on, until end_sleep(), an
  /// event makes fd() readable (or calls Progress::wake()), also one that came between the last
  /// poll() and this call.
  virtual bool prepare_sleep() noexcept { return true; }
  /// After every prepare_sleep() that returned true, slept or not.
  virtual void end_sleep() noexcept {}
  /// Somebody waits for fd() without prepare_sleep(), and polls next: that poll looks everywhere.
  /// True: after it fd() becomes readable whenever there is something to do; else it may not.
  virtual bool hear() noexcept { return false; }

  /// After end_sleep(): when somebody rang for the sleep that has ended (monotonic clock); 0:
  /// nobody did, or it is not known.
  [[nodiscard]] virtual std::uint64_t rung_ns() noexcept { return 0; }

  /// By the poller: whether there is something for poll(), looked for up to `looks` times more than
  /// once, with a pause between two. False: nothing, or it cannot tell without poll().
  virtual bool sight(std::uint32_t /*looks*/) noexcept { return false; }

  /// The poller waits for an answer that does not come at once: who could give it may be asleep.
  /// Whether somebody was woken. `is_long`: the poller has waited for longer than who only comes
  /// and goes stays away, or will ask no more.
  virtual bool wake_absent(bool /*is_long*/) noexcept { return false; }

  /// When poll() must run again although nothing arrives (retransmission, simulated delay). Asked
  /// before a sleep.
  [[nodiscard]] virtual std::uint64_t next_deadline_ns() noexcept { return kNever; }

 protected:
  ~Source() = default;
};

}  // namespace sterna::progress
