// The word is read under the lock that wake() takes after the change: either the reader sees the
// change, or wake() sees the reader in the list.
#include "threads/sync/word_wait.h"

#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace sterna::threads {

Wake WordWait::wait(const std::atomic<std::uint64_t>& word, std::uint64_t mask, std::uint64_t value,
                    std::uint64_t deadline_ns, bool& has_waited) noexcept {
  WaitNode node;
  has_waited = true;
  const Wake wake = wait_in(
      waiters_, lock_, node,
      [&]() noexcept {
        has_waited = (word.load(std::memory_order_acquire) & mask) == value;
        return has_waited;
      },
      deadline_ns, true);
  if (wake == Wake::cancelled) [[unlikely]] {
    end_cancelled(*self());
  }
  return wake;
}

std::uint32_t WordWait::wake(std::uint32_t count) noexcept {
  WaitNode* first = nullptr;
  WaitNode** link = &first;
  std::uint32_t taken = 0;
  {
    const SpinGuard guard{lock_};
    for (; taken < count && !waiters_.empty(); ++taken) {
      WaitNode* const node = waiters_.pop_front();
      *link = node;
      link = &node->next;
    }
    *link = nullptr;
  }
  signal_chain(first);
  return taken;
}

}  // namespace sterna::threads
