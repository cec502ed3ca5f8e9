// The waiting half of the semaphore. tests: semaphore_model_test.cc.
#include "threads/sync/semaphore.h"

#include <utility>

#include "base/clock.h"
#include "threads/control/cancel.h"
#include "threads/scheduler.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

// For so long, a microsecond, a thread whose worker has nothing else to do looks at the word: a
// unit that comes from another processor costs one line then. To get ready what has left its
// processor costs two more.
constexpr std::uint64_t kLookNs = 1'200;
constexpr int kLooks = 32;

bool has_work_beside(const Thread& me) noexcept {
  const Worker& worker = *me.worker.load(std::memory_order_relaxed);
  return worker.queue.count() != 0 || !worker.inbox.looks_empty() || worker.seeds.count() > 0;
}

/// Nobody but `me` could run on its worker, and on another one somebody may be about to release.
bool is_alone_awake(const Thread& me) noexcept {
  const TeamState& team = me.worker.load(std::memory_order_relaxed)->team;
  return (me.flags & kSlowSwitchFlags) == 0 && team.spin_cycles != 0 &&
         team.sleeper_count.load(std::memory_order_relaxed) + 1 < team.workers.size() &&
         !has_work_beside(me);
}

/// The short way of wait_in(), inline: the calls around the switch that this spares, and that of
/// must_wait(), are a sixth of a semaphore's way from one thread to the next.
template <typename MustWait>
[[gnu::always_inline]] inline void wait_suspended(Thread& me, WaitList& list, SpinLock& lock,
                                                  WaitNode& node, MustWait& must_wait) noexcept {
  node.waiter = Waiter::suspended(me);
  (void)suspend(me, [&]() noexcept {
    const SpinGuard guard{lock};
    if (!must_wait()) {
      return false;
    }
    list.push_back(node);
    return true;
  });
}

}  // namespace

bool Semaphore::await_unit(const Thread& me) noexcept {
  if (!is_alone_awake(me)) {
    return false;
  }
  const std::uint64_t begin = cycles();
  const std::uint64_t length = me.worker.load(std::memory_order_relaxed)->team.to_cycles(kLookNs);
  do {
    for (int looks = 0; looks < kLooks; ++looks) {
      const std::uint64_t word = word_.load(std::memory_order_relaxed);
      if (word >= kUnit && try_acquire()) {
        return true;
      }
      if ((word & kWaiters) != 0) {
        return false;  // They were here before us.
      }
    }
  } while (cycles() - begin < length && !has_work_beside(me));
  return false;
}

bool Semaphore::acquire_slow(std::uint64_t deadline_ns) noexcept {
  Thread* const me = self();
  if (me != nullptr && await_unit(*me)) {
    return true;
  }
  WaitNode node;
  const auto must_wait = [&]() noexcept {
    lone_home_ = me != nullptr && waiters_.empty() ? lasting_home(*me) : nullptr;
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
  if (me != nullptr && deadline_ns == kNever && !me->is_cancellable) [[likely]] {
    wait_suspended(*me, waiters_, lock_, node, must_wait);
    return true;
  }
  const Wake wake = wait_in(waiters_, lock_, node, must_wait, deadline_ns, true);
  if (wake == Wake::cancelled) [[unlikely]] {
    end_cancelled(*self());
  }
  return wake != Wake::timed_out;
}

bool Semaphore::release_slow() noexcept {
  Waiter waiter;
  Worker* home = nullptr;
  {
    const SpinGuard guard{lock_};
    waiter = waiters_.pop_waiter();
    home = std::exchange(lone_home_, nullptr);
    if (waiter) {
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
  if (Thread* const thread = waiter.suspended_thread(); thread != nullptr && home != nullptr) {
    make_runnable_at(*home, *thread);
  } else {
    waiter.signal();
  }
  return true;
}

}  // namespace sterna::threads
