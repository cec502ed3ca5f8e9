// A spin lock for programs: who does not get it spins a little, then lets others of its worker run,
// so that a holder on the same worker can give it back. tests: once_model_test.cc.
#pragma once

#include <atomic>

#include "base/annotate.h"
#include "base/cpu.h"
#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace sterna::threads {

class STERNA_LOCK_TYPE YieldingLock {
 public:
  constexpr YieldingLock() noexcept = default;
  YieldingLock(const YieldingLock&) = delete;
  YieldingLock& operator=(const YieldingLock&) = delete;

  /// Switches if somebody holds it for long.
  void lock() noexcept STERNA_ACQUIRES() {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      for (int spins = 0; taken_.load(std::memory_order_relaxed); ++spins) {
        if (spins < kSpins) {
          cpu_pause();
        } else if (spins < kSpins + kYields) {
          yield();
        } else {
          wait_long();
        }
      }
    }
  }
  [[nodiscard]] bool try_lock() noexcept {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  /// False: nobody held it.
  bool unlock() noexcept STERNA_RELEASES() STERNA_LOCKS_UNCHECKED {
    const bool was_taken = taken_.load(std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
    return was_taken;
  }
  [[nodiscard]] bool is_locked() const noexcept { return taken_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kSpins = 64;
  static constexpr int kYields = 64;
  static constexpr std::uint64_t kSleepNs = 50'000;

  /// The holder may be less urgent than the caller, and wait for this very worker, which a yield
  /// does not give it.
  [[gnu::noinline, gnu::cold]] static void wait_long() noexcept {
    const Uncancellable uncancellable{self()};
    sleep_for(kSleepNs);
  }

  std::atomic<bool> taken_{false};
};

}  // namespace sterna::threads
