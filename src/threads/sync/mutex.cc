// The contended half of the mutex.
//
// An unlock frees the mutex and wakes the first waiter, which tries again: whoever comes first gets
// it, so no processor waits for a thread that is not running yet. A waiter that has lost that race
// waits at the front, and the next unlock hands the mutex over to it: nobody starves.
#include "threads/sync/mutex.h"

namespace sterna::threads {

bool Mutex::lock_slow(std::uint64_t deadline_ns) noexcept {
  WaitNode node;
  for (;;) {
    bool is_mine = false;
    const Wake wake = wait_in(
        waiters_, lock_, node,
        [&]() noexcept {
          // Under lock_. Either the mutex is free and ours now, or kWaiters makes its unlock come
          // here.
          std::uint32_t word = word_.load(std::memory_order_relaxed);
          for (;;) {
            is_mine = (word & kLocked) == 0;
            const std::uint32_t wanted = is_mine ? word | kLocked : word | kWaiters;
            if (word_.compare_exchange_weak(word, wanted, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {  // A
              return !is_mine;
            }
          }
        },
        deadline_ns);
    if (is_mine || node.is_granted) {
      return true;
    }
    if (wake == Wake::timed_out) {
      return false;
    }
    node.is_impatient = true;
  }
}

void Mutex::unlock_slow() noexcept {
  WaitNode* first = nullptr;
  Waiter waiter;
  {
    const SpinGuard guard{lock_};
    first = waiters_.pop_front();
    const std::uint32_t left = waiters_.empty() ? 0 : kWaiters;
    if (first != nullptr) {
      waiter = first->waiter;
      first->is_granted = first->is_impatient;
    }
    // A: releases the critical section, to a new holder or to the one it is handed to.
    word_.store(left | (first != nullptr && first->is_granted ? kLocked : 0),
                std::memory_order_release);
  }
  if (waiter) {
    waiter.signal();
  }
}

}  // namespace sterna::threads
