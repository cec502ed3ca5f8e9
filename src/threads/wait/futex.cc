// Futex calls, and the waits of kernel threads that are built on them.
#include "threads/wait/futex.h"

#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "threads/waiter.h"

namespace sterna::threads {
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
  // Both are read or computed before the addition: the waiter may be gone right after it.
  IdleHook* const hook = waiter.hook;
  const std::atomic<std::uint32_t>* const word = &waiter.word;
  // A: the waiter sees what was done before.
  const std::uint32_t before =
      waiter.word.fetch_add(KernelWaiter::kSignal, std::memory_order_acq_rel);
  switch (before & KernelWaiter::kStates) {
    case KernelWaiter::kOnFutex:
      futex_wake(word, 1);
      break;
    case KernelWaiter::kInHook:
      hook->wake();
      break;
    default:
      break;
  }
}

bool try_take_signal(KernelWaiter& waiter) noexcept {
  std::uint32_t word = waiter.word.load(std::memory_order_relaxed);
  while (word >= KernelWaiter::kSignal) {
    if (waiter.word.compare_exchange_weak(
            word, (word - KernelWaiter::kSignal) & ~KernelWaiter::kStates,
            std::memory_order_acquire, std::memory_order_relaxed)) {  // A
      return true;
    }
  }
  return false;
}

bool try_enter_sleep(KernelWaiter& waiter, std::uint32_t state) noexcept {
  std::uint32_t word = waiter.word.load(std::memory_order_relaxed);
  while (word < KernelWaiter::kSignal) {
    if (waiter.word.compare_exchange_weak(word, state, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void leave_sleep(KernelWaiter& waiter) noexcept {
  waiter.word.fetch_and(~KernelWaiter::kStates, std::memory_order_acq_rel);
}

Wake await_signal(KernelWaiter& waiter, const WaitOptions& options) noexcept {
  while (!try_take_signal(waiter)) {
    if (options.deadline_ns != kNever && now_ns() >= options.deadline_ns) {
      leave_sleep(waiter);
      return Wake::timed_out;
    }
    if (try_enter_sleep(waiter, KernelWaiter::kOnFutex)) {
      futex_wait(waiter.word, KernelWaiter::kOnFutex, options.deadline_ns);
    }
  }
  return Wake::signalled;
}

}  // namespace sterna::threads
