// Leaving and waking between two ranks of one worker, from a rank's own code: on the thread pointer
// of the rank, without a step into the runtime's (docs/rules/switching.md). What cannot be done
// without thread-local storage or system calls is refused, and the caller takes the usual way.
//
// A thread that left this way has its thread pointer in its descriptor (Thread::own_pointer) until
// it is loaded again: by whoever leaves this way for it or, after any other switch, by itself. So a
// switch from rank to rank writes the register once.
#pragma once

#include <cstdint>
#include <utility>

#include "base/probe.h"
#include "base/thread_pointer.h"
#include "threads/flags.h"
#include "threads/queues/owned_lock.h"
#include "threads/scheduler.h"

namespace sterna::threads {

/// Whether another thread waits to run on the worker of `me`, the current thread. A hint.
[[nodiscard]] inline bool is_another_ready(const Thread& me) noexcept {
  return me.worker.load(std::memory_order_relaxed)->queue.count() != 0;
}

/// Nothing else runs, or is about to, on the worker of `me`, the current thread. A hint.
[[nodiscard]] inline bool is_alone(const Thread& me) noexcept {
  const Worker& worker = *me.worker.load(std::memory_order_relaxed);
  return worker.queue.count() == 0 && worker.inbox.looks_empty();
}

/// The caller is a user thread, whose worker has nothing else to do while it waits. A hint.
[[nodiscard]] inline bool is_thread_alone() noexcept {
  const Thread* const me = self();
  return me != nullptr && is_alone(*me);
}

/// The same, or the caller is a kernel thread, whose processor has nothing else to do either. For
/// who waits next: not inside a poll, which may be of one that computes.
[[nodiscard]] inline bool is_caller_alone() noexcept {
  const Thread* const me = self();
  return me == nullptr || is_alone(*me);
}

/// Some instructions of the current user thread under the biased lock of its worker: nobody else
/// runs on that worker meanwhile, nor looks into its queue, and what the worker owns (owned_lock.h)
/// may be touched. Takes no lock inside, wakes nobody but by try_wake(), does not last.
class DirectSection {
 public:
  // A sanitizer's switch keeps its state in thread-local storage.
  static constexpr bool kIsPossible = !kSanitized;

  [[gnu::always_inline]] explicit DirectSection(Thread& me) noexcept
      : me_{me}, worker_{*me.worker.load(std::memory_order_relaxed)} {
    worker_.lock.lock();
  }
  [[gnu::always_inline]] ~DirectSection() {
    if (is_open_) {
      worker_.lock.unlock();
    }
  }
  DirectSection(const DirectSection&) = delete;
  DirectSection& operator=(const DirectSection&) = delete;

  [[nodiscard]] bool owns(const OwnedLock& lock) const noexcept {
    return lock.is_owned_by(worker_);
  }
  [[nodiscard]] Worker& worker() const noexcept { return worker_; }

  /// As make_runnable(thread), if it is at home here and no other worker has to be woken for it.
  /// False: nothing happened.
  [[nodiscard, gnu::always_inline]] bool try_wake(Thread& thread) noexcept {
    // Relaxed: see make_runnable().
    if (thread.worker.load(std::memory_order_relaxed) != &worker_ || (thread.flags & kUnfit) != 0 ||
        (worker_.queue.count() != 0 &&
         worker_.team.sleeper_count.load(std::memory_order_relaxed) != 0)) [[unlikely]] {
      return false;
    }
    STERNA_PROBE1(thread_wake, &thread);
    thread.activity.store(Activity::ready, std::memory_order_relaxed);
    worker_.queue.push_back(thread);
    return true;
  }

  /// Takes the next thread from the queue, if one can run here at once and nothing else (timers,
  /// the network, wakes from outside, a shared queue, priorities, threads that are held, a record
  /// of the switch) must be looked after; null: not so. Else the caller publishes itself as
  /// Waiter::suspended() where a waker finds it, and calls leave_for() in any case. A thread that
  /// can be cancelled does not wait this way.
  [[nodiscard, gnu::always_inline]] Thread* begin_leave() noexcept {
    if (worker_.countdown.load(std::memory_order_relaxed) <= 1 || !worker_.inbox.looks_empty() ||
        (me_.flags & kUnfit) != 0 || me_.is_cancellable) [[unlikely]] {
      return nullptr;
    }
    // In the section that makes it current, as hold() needs it (control.cc). Where there are
    // priorities, or somebody is held, pick() decides.
    return worker_.queue.pop_plain(kUnfit);
  }

  /// Leaves for `next` until make_runnable() of this thread, and ends the section after the switch.
  /// `own_pointer` is the thread pointer of the rank, which is loaded when this is called and when
  /// it returns.
  /// errno needs no thought: a rank's own is in its block, and that of the worker, which the switch
  /// exchanges as ever, means nothing to a rank between two steps into the runtime. Inline for
  /// speed, as suspend(). Switches.
  [[gnu::always_inline]] void leave_for(Thread& next, std::uintptr_t own_pointer) noexcept {
    is_open_ = false;
    // As count_switch(), but it does not end the count: we have looked.
    worker_.countdown.store(worker_.countdown.load(std::memory_order_relaxed) - 1,
                            std::memory_order_relaxed);
    me_.activity.store(Activity::blocked, std::memory_order_relaxed);
    STERNA_PROBE1(thread_block, &me_);
    STERNA_PROBE2(thread_switch, &me_, &next);
    // As switch_contexts(): neither of the two has a flag that makes the switch slow, but this one.
    static_assert((kSlowSwitchFlags & ~kUnfit) == ThreadFlag::accounted);
    next.worker.store(&worker_, std::memory_order_relaxed);
    worker_.current.store(&next, std::memory_order_relaxed);
    if (!worker_.meter.skips()) [[unlikely]] {
      worker_.meter.pass(me_, next, cycles(),
                         worker_.countdown.load(std::memory_order_relaxed) - 1);
    }
    me_.own_pointer = own_pointer;
    // Before the switch: the register takes long, and what is loaded for it would come later there.
    std::uintptr_t pointer = next.own_pointer;
    if (pointer == 0) [[unlikely]] {
      pointer = reinterpret_cast<std::uintptr_t>(worker_.thread_pointer);
    }
    next.own_pointer = 0;
    set_thread_pointer(pointer);
    Thread& me = exchange_contexts(worker_, me_, next);
    if (me.own_pointer != 0) [[unlikely]] {
      set_thread_pointer(std::exchange(me.own_pointer, 0));
    }
  }

 private:
  // Shared queues, the trace, hooks and the wake of a kernel thread need the runtime's thread
  // pointer; locals of a thread's own need the slow way.
  static constexpr std::uint32_t kUnfit = ThreadFlag::managed | ThreadFlag::traced |
                                          ThreadFlag::kernel_bound | ThreadFlag::hooked |
                                          ThreadFlag::own_locals;

  Thread& me_;
  Worker& worker_;
  bool is_open_ = true;
};

}  // namespace sterna::threads
