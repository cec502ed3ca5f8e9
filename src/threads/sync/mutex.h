// Mutual exclusion between user threads and kernel threads alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotate.h"
#include "threads/sync/wait_list.h"

namespace sterna::threads {

/// Uncontended: one compare-and-swap each way. A waiter that lost the race for a free mutex twice
/// gets it handed over. Not recursive. The holder may differ in worker between lock and unlock.
class STERNA_LOCK_TYPE Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// Switches.
  void lock() noexcept STERNA_ACQUIRES() {
    std::uint32_t expected = 0;
    // A: acquires what the last unlock released.
    if (!word_.compare_exchange_strong(expected, kLocked, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]] {
      (void)lock_slow(kNever);
    }
  }
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t expected = word_.load(std::memory_order_relaxed);
    return (expected & kLocked) == 0 &&
           word_.compare_exchange_strong(expected, expected | kLocked, std::memory_order_acquire,
                                         std::memory_order_relaxed);  // A
  }
  /// False: the deadline came first. Switches.
  [[nodiscard]] bool try_lock_until(std::uint64_t deadline_ns) noexcept {
    return try_lock() || lock_slow(deadline_ns);
  }
  /// For who drops the mutex: locks it if nobody holds it or waits for it; then nobody touches it
  /// any more for an unlock of before.
  [[nodiscard]] bool try_lock_unused() noexcept {
    const SpinGuard guard{lock_};  // To give this back is the last access of an unlock.
    return waiters_.empty() && try_lock();
  }
  void unlock() noexcept STERNA_RELEASES() {
    std::uint32_t expected = kLocked;
    if (!word_.compare_exchange_strong(expected, 0, std::memory_order_release,
                                       std::memory_order_relaxed)) [[unlikely]] {  // A
      unlock_slow();
    }
  }

 private:
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kWaiters = 2;  // The list is not empty: unlock takes the slow way.

  bool lock_slow(std::uint64_t deadline_ns) noexcept;
  void unlock_slow() noexcept;

  std::atomic<std::uint32_t> word_{0};
  SpinLock lock_;
  WaitList waiters_;  // Guard: lock_.
};

class STERNA_SCOPED_LOCK MutexGuard {
 public:
  explicit MutexGuard(Mutex& mutex) noexcept STERNA_ACQUIRES(mutex) : mutex_{mutex} {
    mutex_.lock();
  }
  ~MutexGuard() STERNA_RELEASES() { mutex_.unlock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace sterna::threads
