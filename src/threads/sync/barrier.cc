// The barrier: the last to arrive takes the whole list and wakes it without the lock.
#include "threads/sync/barrier.h"

#include "base/check.h"

namespace sterna::threads {

Barrier::Barrier(std::uint32_t count) noexcept : count_{count} {
  check(count > 0, "a barrier has at least 1 participant");
}

bool Barrier::arrive_and_wait() noexcept {
  WaitNode node;
  WaitNode* others = nullptr;
  bool is_last = false;
  (void)wait_in(waiters_, lock_, node, [&]() noexcept {
    // Under lock_. The next round may begin at once: those who wait are off the list.
    is_last = ++arrived_ == count_;
    if (is_last) {
      arrived_ = 0;
      others = waiters_.take_all();
    }
    return !is_last;
  });
  signal_chain(others);
  return is_last;
}

}  // namespace sterna::threads
