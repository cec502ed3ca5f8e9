// The waiters of a condition. A waiter is in the list before it gives the mutex back, so no signal
// that is sent under the mutex can miss it.
#include "threads/sync/condition.h"

#include <utility>

#include "threads/control/cancel.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

// For another one, who holds it: clang's analysis sees one function at a time.
void unlock_after_switch(Thread&, void* mutex) STERNA_LOCKS_UNCHECKED {
  static_cast<Mutex*>(mutex)->unlock();
}

}  // namespace

inline void Condition::publish(const Thread* me, WaitNode& node) noexcept {
  const SpinGuard guard{lock_};
  lone_home_ = me != nullptr && waiters_.empty() ? lasting_home(*me) : nullptr;
  waiters_.push_back(node);
  add_waiters(1);
}

void Condition::wait_as(Thread& me, Mutex& mutex) noexcept {
  WaitNode node;
  node.waiter = Waiter::suspended(me);
  PostFunction post = unlock_after_switch;
  const auto publish_and_unlock = [&]() noexcept {
    publish(&me, node);
    if (mutex.try_unlock_biased(me)) [[likely]] {
      post = nullptr;  // Who takes the mutex now finds us listed, and cannot run us before.
    }
    return true;
  };
  (void)suspend(me, publish_and_unlock, post, &mutex);
  if (!mutex.try_lock_as(me)) [[unlikely]] {
    mutex.lock();
  }
}

bool Condition::wait_until(Mutex& mutex, std::uint64_t deadline_ns) noexcept {
  Thread* const me = self();
  if (me != nullptr && deadline_ns == kNever && !me->is_cancellable) {
    wait_as(*me, mutex);
    return true;
  }
  WaitNode node;
  node.waiter = me != nullptr ? Waiter{*me} : Waiter{node.kernel};
  publish(me, node);
  mutex.unlock();
  const auto await = [&](const WaitOptions& options) noexcept {
    return me != nullptr ? await_signal(options) : await_signal(node.kernel, options);
  };
  Wake wake = await({.deadline_ns = deadline_ns, .is_cancellable = true});
  if (wake != Wake::signalled) {
    bool is_taken = false;
    {
      const SpinGuard guard{lock_};
      is_taken = !node.is_linked;
      if (!is_taken) {
        waiters_.erase(node);
        add_waiters(-1);
      }
    }
    if (is_taken) {
      wake = await({});
    }
  }
  mutex.lock();
  if (wake == Wake::cancelled) [[unlikely]] {
    end_cancelled(*me);  // Its cleanups hold the mutex, as in POSIX.
  }
  return wake != Wake::timed_out;
}

void Condition::signal() noexcept {
  if (waiter_count_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  Waiter waiter;
  Worker* home = nullptr;
  {
    const SpinGuard guard{lock_};
    waiter = waiters_.pop_waiter();
    home = std::exchange(lone_home_, nullptr);
    if (waiter) {
      add_waiters(-1);
    }
  }
  if (Thread* const thread = waiter.suspended_thread(); thread != nullptr && home != nullptr) {
    make_runnable_at(*home, *thread);
  } else if (waiter) {
    waiter.signal();
  }
}

void Condition::broadcast() noexcept {
  if (waiter_count_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  WaitNode* all = nullptr;
  {
    const SpinGuard guard{lock_};
    all = waiters_.take_all();
    lone_home_ = nullptr;
    waiter_count_.store(0, std::memory_order_relaxed);
  }
  signal_chain(all);
}

}  // namespace sterna::threads
