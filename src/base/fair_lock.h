// A spin lock whose holders come in the order in which they asked: for sections of a few hundred
// nanoseconds that some threads may enter again and again, while another one wants in once. It
// costs more than a SpinLock where many wait: the next one may not be running, so who waits long
// gives its processor away.
#pragma once

#include <atomic>
#include <cstdint>

#include <sys/syscall.h>

#include "base/annotate.h"
#include "base/cpu.h"
#include "base/syscall.h"

namespace sterna {

class STERNA_LOCK_TYPE FairLock {
 public:
  void lock() noexcept STERNA_ACQUIRES() {
    // Relaxed: the number orders nothing, the look at `served_` does.
    const std::uint32_t mine = asked_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t turn = 1; served_.load(std::memory_order_acquire) != mine; ++turn) {  // A
      if (turn % kTurns != 0) {
        cpu_pause();
      } else {
        raw_system_call(SYS_sched_yield);
      }
    }
  }
  void unlock() noexcept STERNA_RELEASES() {
    served_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // A
  }
  /// For tests: how many hold it or wait. Old when it is read.
  [[nodiscard]] std::uint32_t asker_count() const noexcept {
    return asked_.load(std::memory_order_relaxed) - served_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kTurns = 64;
  std::atomic<std::uint32_t> asked_{0};   // Numbers given out.
  std::atomic<std::uint32_t> served_{0};  // Whose turn it is. Written by the holder.
};

class STERNA_SCOPED_LOCK FairGuard {
 public:
  explicit FairGuard(FairLock& lock) noexcept STERNA_ACQUIRES(lock) : lock_{lock} { lock_.lock(); }
  ~FairGuard() STERNA_RELEASES() { lock_.unlock(); }
  FairGuard(const FairGuard&) = delete;
  FairGuard& operator=(const FairGuard&) = delete;

 private:
  FairLock& lock_;
};

}  // namespace sterna
