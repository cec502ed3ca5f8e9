// The scheduler's core: how a thread leaves its processor and how it becomes runnable again.
// Internal to threads/ and sched/.
//
// The one rule: a thread that leaves makes itself known to its wakers (in a wait list, a wait word,
// the run queue) while it holds the biased lock of its worker, and that lock is given back only
// after the switch, by the next context. So nobody runs a thread whose registers are not saved yet:
//  - a waker on the same worker cannot be there at the same time: it is the same kernel thread;
//  - any other waker pushes the thread into the inbox of its home worker, and who takes it out of
//    there (that worker at its next switch, or a thief) holds the same biased lock.
// Managed threads (with an entity) go to queues of Dispatch instead, which know no biased lock:
// they carry the flag on_processor, cleared after the switch, and who takes one waits for it.
#pragma once

#include <atomic>

#include "base/check.h"
#include "base/probe.h"
#include "threads/context/context.h"
#include "threads/flags.h"
#include "threads/sanitizer.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {

inline constexpr std::uint32_t kSlowSwitchFlags = ThreadFlag::accounted | ThreadFlag::managed |
                                                  ThreadFlag::traced | ThreadFlag::kernel_bound |
                                                  ThreadFlag::hooked | ThreadFlag::own_locals;

/// The worker that runs the caller, user thread or idle context; null on a foreign kernel thread.
[[nodiscard]] inline Worker* current_worker() noexcept {
  Thread* const me = self();
  // Relaxed: a running thread's own field.
  return me != nullptr ? me->worker.load(std::memory_order_relaxed) : this_worker();
}

/// Accounts time, marks managed threads, tells the trace. Returns the context to switch to: that of
/// `to`, or the idle one, which hands the worker to the kernel thread to which `to` is bound.
Thread& prepare_slow_switch(Worker& worker, Thread& from, Thread& to) noexcept;
void run_post(Worker& worker) noexcept;

/// First thing after a switch, on the context that goes on: `worker` is the present one.
[[gnu::always_inline]] inline void finish_switch(Worker& worker) noexcept {
  if (worker.post != nullptr) [[unlikely]] {
    run_post(worker);
  } else {
    worker.lock.unlock();
  }
}

// Flags of a thread that does not run, and has what belongs to the kernel thread.
inline constexpr std::uint32_t kSavedFlags =
    ThreadFlag::exception_saved | ThreadFlag::error_saved;

/// Whether its kernel thread has something of who runs that a switch must exchange_state(): nearly
/// never.
[[nodiscard, gnu::always_inline]] inline bool has_state(const Worker& worker) noexcept {
  const ExceptionGlobals& globals = *worker.exceptions;
  // One test of all three: this is on the way of each switch.
  return (reinterpret_cast<std::uintptr_t>(globals.caught) | globals.uncaught |
          static_cast<unsigned>(*worker.error_number)) != 0;
}
/// Before the switch itself: each thread has exceptions and an errno of its own, and those of the
/// kernel thread are those of who runs. `is_last`: `from` has ended.
[[gnu::always_inline]] inline void exchange_state(Worker& worker, Thread& from, Thread& to,
                                                  bool is_last) noexcept {
  ExceptionGlobals& globals = *worker.exceptions;
  if (must_swap_exceptions(globals, to)) {
    swap_exceptions(globals, from, to);
  }
  const int mine = *worker.error_number;
  if (mine != 0 && !is_last) {  // Else it stays 0, as the next thread in its slot begins.
    from.error_number = mine;
    set_flags(from, from.flags | ThreadFlag::error_saved);
  }
  *worker.error_number = to.error_number;
  if ((to.flags & ThreadFlag::error_saved) != 0) {
    to.error_number = 0;
    set_flags(to, to.flags & ~ThreadFlag::error_saved);
  }
}

/// The exchange itself; `saved`: those of the kSavedFlags that `to` may have. Returns the worker of
/// `from` when that goes on; `former`: see switch_context().
[[gnu::always_inline]] inline Worker& exchange_workers(Worker& worker, Thread& from, Thread& to,
                                                       std::uint32_t saved,
                                                       SavedContext*& former) noexcept {
  if (has_state(worker) || saved != 0) [[unlikely]] {
    exchange_state(worker, from, to, false);
  }
  if constexpr (kSanitized) {
    sanitized_switch(from, to, false);
    former = nullptr;
    Worker& present = *from.worker.load(std::memory_order_relaxed);
    finish_switch(present);
    return present;
  } else {
    auto& present =
        *static_cast<Worker*>(switch_context(from.context, to.context, &worker, former));
    finish_switch(present);
    return present;
  }
}
[[gnu::always_inline]] inline Worker& exchange_workers(Worker& worker, Thread& from, Thread& to,
                                                       std::uint32_t saved) noexcept {
  SavedContext* former = nullptr;
  return exchange_workers(worker, from, to, saved, former);
}

/// The same. Returns `from` when it goes on, if it is no idle context: found by way of its worker,
/// so that its address takes no place on its stack, whose lines a switch among many threads has to
/// fetch.
[[gnu::always_inline]] inline Thread& exchange_contexts(Worker& worker, Thread& from,
                                                        Thread& to) noexcept {
  // Relaxed: whoever switched here has written it just now, on this kernel thread.
  return *exchange_workers(worker, from, to, to.flags & kSavedFlags)
              .current.load(std::memory_order_relaxed);
}

/// What every switch begins with: `next` will run. Returns the context to switch to.
[[gnu::always_inline]] inline Thread& prepare_switch(Worker& worker, Thread& from,
                                                     Thread& next) noexcept {
  // Relaxed: whoever continues or wakes `next` later gets there through the lock or an inbox.
  next.worker.store(&worker, std::memory_order_relaxed);
  worker.current.store(&next, std::memory_order_relaxed);
  STERNA_PROBE2(thread_switch, &from, &next);
  const bool is_slow = ((from.flags | next.flags) & kSlowSwitchFlags) != 0;
  return is_slow ? prepare_slow_switch(worker, from, next) : next;
}

/// Leaves `from` for `next`; worker.lock is held. Returns when `from` is continued, with no lock:
/// as exchange_contexts().
[[gnu::always_inline]] inline Thread& switch_contexts(Worker& worker, Thread& from,
                                                      Thread& next) noexcept {
  return exchange_contexts(worker, from, prepare_switch(worker, from, next));
}

/// The same for the last time: saves nothing of `from`, which has ended.
[[noreturn, gnu::always_inline]] inline void leave_for_good(Worker& worker, Thread& from,
                                                            Thread& next) noexcept {
  Thread& to = prepare_switch(worker, from, next);
  if (has_state(worker) || (to.flags & kSavedFlags) != 0) [[unlikely]] {
    exchange_state(worker, from, to, true);
  }
  if constexpr (kSanitized) {
    sanitized_switch(from, to, true);
    fail("an ended thread does not run again", __FILE__, __LINE__);
  } else {
    leave_context(from.context, to.context, &worker);
  }
}

/// suspend(), below, of who holds the lock of its `worker`.
template <typename Publish>
[[gnu::always_inline]] inline bool suspend_locked(Worker& worker, Thread& me, Publish& publish,
                                                  const PostFunction& post = nullptr,
                                                  void* argument = nullptr) noexcept {
  me.activity.store(Activity::blocked, std::memory_order_relaxed);
  if (!publish()) {
    me.activity.store(Activity::ready, std::memory_order_relaxed);
    worker.lock.unlock();
    return false;
  }
  STERNA_PROBE1(thread_block, &me);
  if (post != nullptr) {  // Else it is null: each switch takes its own back.
    worker.post = post;
    worker.post_thread = &me;
  }
  worker.post_argument = argument;
  Thread& next = worker.pick();
  if (&next == &me) [[unlikely]] {
    finish_switch(worker);  // A waker was faster: it is in our inbox already.
  } else {
    switch_contexts(worker, me, next);
  }
  return true;
}

/// Takes the current thread off its processor until make_runnable(me) is called, exactly once, by
/// somebody who found what `publish()` published. publish() runs under the biased lock: it must
/// not wake threads, and may hold spin locks of its own; false: stay. `post`, as publish() leaves
/// it, runs after the switch.
/// Returns whether it left. Inline for speed: each call around the switch is a return that the
/// processor predicts wrongly. Switches.
template <typename Publish>
[[gnu::always_inline]] inline bool suspend(Thread& me, Publish&& publish,
                                           const PostFunction& post = nullptr,
                                           void* argument = nullptr) noexcept {
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  worker.count_switch();
  worker.lock.lock();
  return suspend_locked(worker, me, publish, post, argument);
}

/// `thread` has been suspended, and the caller is the one who may let it go on: once. It is the
/// last access of the caller to the thread. From anywhere; not with a biased lock held. Does not
/// switch.
void make_runnable(Thread& thread) noexcept;

/// The worker to which the current thread, suspended, is woken, whoever asks when; null: what it is
/// says more than that.
[[nodiscard]] inline Worker* lasting_home(const Thread& me) noexcept {
  return (me.flags & (ThreadFlag::managed | ThreadFlag::traced)) == 0
             ? me.worker.load(std::memory_order_relaxed)
             : nullptr;
}
/// make_runnable() of one that has published its lasting_home().
void make_runnable_at(Worker& home, Thread& thread) noexcept;

/// The same for a chain of suspended threads (Thread::next), in order: those that are at home on
/// the caller's worker join its queue in one go.
void make_chain_runnable(Thread* first) noexcept;

/// To the queue of `worker`, from outside: inbox and wake.
void send_home(Worker& worker, Thread& thread) noexcept;

/// A deadline of `thread` has passed. True: it was waiting, and the caller must make it runnable.
bool expire_wait(Thread& thread) noexcept;

}  // namespace sterna::threads
