// A counting semaphore.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/sync/wait_list.h"

namespace sterna::threads {

class Semaphore {
 public:
  constexpr explicit Semaphore(std::uint32_t count = 0) noexcept
      : word_{std::uint64_t{count} * kUnit} {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  /// Takes one unit; waits while there is none. A unit that is released while somebody waits goes
  /// to the one that waits longest; but who has just come may look for one for a microsecond before
  /// it waits. Switches.
  void acquire() noexcept {
    if (!try_acquire()) {
      (void)acquire_slow(kNever);
    }
  }
  [[nodiscard]] bool try_acquire() noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while (word >= kUnit) {
      // A: acquires what release() released.
      if (word_.compare_exchange_weak(word, word - kUnit, std::memory_order_acquire,
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
  /// From anywhere, also a kernel thread outside the team. Does not switch. To those who wait a
  /// unit each; what is left then at once, however many.
  void release(std::uint32_t count = 1) noexcept {
    while (count > 0) {
      std::uint64_t word = word_.load(std::memory_order_relaxed);
      while ((word & kWaiters) == 0) {
        // A: releases what came before to the one that takes the unit.
        if (word_.compare_exchange_weak(word, word + count * kUnit, std::memory_order_release,
                                        std::memory_order_relaxed)) {
          return;
        }
      }
      count -= release_slow() ? 1 : 0;
    }
  }

 private:
  static constexpr std::uint64_t kWaiters = 1;
  static constexpr std::uint64_t kUnit = 2;

  /// Looks for a while at the unit of somebody on another worker, if there is nothing better to do.
  bool await_unit(const Thread& me) noexcept;
  bool acquire_slow(std::uint64_t deadline_ns) noexcept;
  /// False: nobody waits, and nothing was released.
  bool release_slow() noexcept;

  // Units, and whether somebody waits; then there are no units. kWaiters changes under lock_ only.
  std::atomic<std::uint64_t> word_;
  SpinLock lock_;
  WaitList waiters_;  // Guard: lock_. May be empty though kWaiters is set (a wait that timed out).
  // Of the one that waits alone, and waits for nothing else: its worker, so that who wakes it needs
  // no line of its descriptor. Null: ask that. Guard: lock_.
  Worker* lone_home_ = nullptr;
};

}  // namespace sterna::threads
