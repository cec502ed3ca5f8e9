// Waiting for a condition that a mutex guards.
#pragma once

#include <cstdint>

#include "threads/sync/mutex.h"

namespace sterna::threads {

/// As POSIX: signal wakes one, broadcast all; a wait may also end without a reason, so test the
/// condition again.
class Condition {
 public:
  constexpr Condition() noexcept = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  /// The caller holds `mutex`, and holds it again afterwards. Switches.
  void wait(Mutex& mutex) noexcept STERNA_REQUIRES(mutex) { (void)wait_until(mutex, kNever); }
  /// False: the deadline came first. Switches.
  // Not checked inside: it gives the mutex back on another stack, after the switch.
  bool wait_until(Mutex& mutex, std::uint64_t deadline_ns) noexcept
      STERNA_REQUIRES(mutex) STERNA_LOCKS_UNCHECKED;
  /// wait() of `me`, which calls and is not cancellable: for who knows that from its own frame.
  void wait_as(Thread& me, Mutex& mutex) noexcept STERNA_REQUIRES(mutex) STERNA_LOCKS_UNCHECKED;
  void signal() noexcept;
  void broadcast() noexcept;

 private:
  /// Lists `node`, of `me` (null: of a kernel thread).
  void publish(const Thread* me, WaitNode& node) noexcept;
  /// Under lock_, which all writers hold: no locked instruction, of which a wait and its signal
  /// would cost 5 ns each. Relaxed: who signals under the mutex sees it by way of the mutex.
  void add_waiters(std::int32_t by) noexcept {
    waiter_count_.store(
        waiter_count_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(by),
        std::memory_order_relaxed);
  }

  // Whether the list has elements, so that signal() without waiters takes no lock. Written under
  // lock_.
  std::atomic<std::uint32_t> waiter_count_{0};
  SpinLock lock_;
  WaitList waiters_;  // Guard: lock_.
  // Of the one that waits alone, and waits for nothing else: its worker, so that who wakes it needs
  // no line of its descriptor. Null: ask that. Guard: lock_.
  Worker* lone_home_ = nullptr;
};

}  // namespace sterna::threads
