// Futex calls, and the waits of kernel threads that are built on them.
#include "threads/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <ctime>

#include "base/clock.h"
#include "base/syscall.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

// States of KernelWaiter::word.
constexpr std::uint32_t kAwake = 0;
constexpr std::uint32_t kOnFutex = 1;
constexpr std::uint32_t kInHook = 2;
constexpr std::uint32_t kSignalled = 4;

}  // namespace

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::uint64_t deadline_ns) noexcept {
  timespec deadline{.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000),
                    .tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000)};
  // The bit set form: its deadline is absolute, of CLOCK_MONOTONIC.
  raw_system_call(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_BITSET_PRIVATE, expected,
                  deadline_ns == kNever ? 0 : reinterpret_cast<long>(&deadline), 0,
                  static_cast<long>(FUTEX_BITSET_MATCH_ANY));
}

void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept {
  raw_system_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, count);
}

void signal_kernel(KernelWaiter& waiter) noexcept {
  // Both are read or computed before the exchange: the waiter may be gone right after it.
  IdleHook* const hook = waiter.hook;
  const std::atomic<std::uint32_t>* const word = &waiter.word;
  // A: the waiter sees what was done before. Acquire pairs with the store of kInHook, for `hook`.
  switch (waiter.word.exchange(kSignalled, std::memory_order_acq_rel)) {
    case kOnFutex:
      futex_wake(word, 1);
      break;
    case kInHook:
      hook->wake();
      break;
    default:
      break;
  }
}

Wake await_signal(KernelWaiter& waiter, const WaitOptions& options) noexcept {
  for (;;) {
    std::uint32_t word = waiter.word.load(std::memory_order_acquire);  // A
    if (word == kSignalled) {
      waiter.word.store(kAwake, std::memory_order_relaxed);
      return Wake::signalled;
    }
    if (options.deadline_ns != kNever && now_ns() >= options.deadline_ns) {
      word = kOnFutex;
      // Back to awake, unless the signal has come just now.
      if (waiter.word.compare_exchange_strong(word, kAwake, std::memory_order_acquire) ||
          word == kAwake) {
        return Wake::timed_out;
      }
      continue;
    }
    if (word == kAwake &&
        !waiter.word.compare_exchange_strong(word, kOnFutex, std::memory_order_acq_rel)) {
      continue;
    }
    futex_wait(waiter.word, kOnFutex, options.deadline_ns);
  }
}

}  // namespace sterna::threads
