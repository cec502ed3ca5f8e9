// A counting semaphore.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/sync/wait_list.h"

namespace sterna::threads {

class Semaphore {
 public:
  constexpr explicit Semaphore(std::int64_t count = 0) noexcept : count_{count} {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Takes one; waits while there is none. First come, first served. Switches.
  void acquire() noexcept {
    if (!try_acquire()) {
      (void)acquire_slow(kNever);
    }
  }
  [[nodiscard]] bool try_acquire() noexcept {
    std::int64_t count = count_.load(std::memory_order_relaxed);
    while (count > 0) {
      // A: acquires what release() released.
      if (count_.compare_exchange_weak(count, count - 1, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  /// False: the deadline came first. Switches.
  [[nodiscard]] bool try_acquire_until(std::uint64_t deadline_ns) noexcept {
    return try_acquire() || acquire_slow(deadline_ns);
  }
  /// From anywhere, also a kernel thread outside the team. The semaphore may go when the last
  /// acquire returned.
  void release(std::uint32_t count = 1) noexcept;

 private:
  bool acquire_slow(std::uint64_t deadline_ns) noexcept;

  // Units that may be taken; below 0: minus the number of waiters. Changed below 1 under lock_
  // only.
  std::atomic<std::int64_t> count_;
  SpinLock lock_;
  WaitList waiters_;  // Guard: lock_.
};

}  // namespace sterna::threads
