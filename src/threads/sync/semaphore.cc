// The waiting half of the semaphore.
#include "threads/sync/semaphore.h"

#include "threads/cancel.h"
#include "threads/this_thread.h"

namespace sterna::threads {

bool Semaphore::acquire_slow(std::uint64_t deadline_ns) noexcept {
  WaitNode node;
  const auto must_wait = [&]() noexcept {
    // Under lock_. Either there is a unit after all, or every later release() comes to the list.
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      const bool has_unit = word >= kUnit;
      if (word_.compare_exchange_weak(word, has_unit ? word - kUnit : word | kWaiters,
                                      std::memory_order_acquire,
                                      std::memory_order_relaxed)) {  // A
        return !has_unit;
      }
    }
  };
  const Wake wake = wait_in(waiters_, lock_, node, must_wait, deadline_ns, true);
  if (wake == Wake::cancelled) [[unlikely]] {
    end_cancelled(*self());
  }
  return wake != Wake::timed_out;
}

bool Semaphore::release_slow() noexcept {
  Waiter waiter;
  {
    const SpinGuard guard{lock_};
    if (const WaitNode* const first = waiters_.pop_front(); first != nullptr) {
      waiter = first->waiter;
      if (waiters_.empty()) {
        // A plain store: somebody was listed, so the word was kWaiters and nothing else since
        // before lock_ was taken, and then only its holder writes it. What was released before
        // kWaiters was set is passed on: who set it acquired that (A), and lock_ brought it here.
        word_.store(0, std::memory_order_release);
      }
    } else {
      // The unit is given outside: whoever takes it may drop the semaphore, and we have its lock.
      word_.fetch_and(~kWaiters, std::memory_order_relaxed);
      return false;
    }
  }
  waiter.signal();
  return true;
}

}  // namespace sterna::threads
