// The timers of the threads that wait with a deadline: a binary heap per worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/spin_lock.h"
#include "threads/thread.h"

namespace sterna::threads {

class Timers {
 public:
  /// `thread` is about to wait; its wait ends at `deadline_ns` at the latest.
  void arm(Thread& thread, std::uint64_t deadline_ns) noexcept;

  /// When it returns the timer of `thread` is not armed, and nobody touches the thread for it.
  void disarm(Thread& thread) noexcept;

  /// Ends the waits whose deadline has come. Any worker of the team may do it.
  void fire(std::uint64_t now_ns) noexcept;

  /// kNever: none. A hint without the lock; arm() by the worker itself is always seen.
  [[nodiscard]] std::uint64_t next_ns() const noexcept {
    return next_ns_.load(std::memory_order_relaxed);
  }

 private:
  void move_up(std::size_t index) noexcept;
  void move_down(std::size_t index) noexcept;
  void place(std::size_t index, Thread* thread) noexcept;
  void erase(Thread& thread) noexcept;
  void update_next() noexcept;

  SpinLock lock_;
  std::vector<Thread*> heap_;  // Guard: lock_. Thread::timer_index is the place + 1.
  std::atomic<std::uint64_t> next_ns_{kNever};  // Written under lock_.
};

}  // namespace sterna::threads
