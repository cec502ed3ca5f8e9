// Joining and detaching. The word Thread::joiner is described in life.cc. tests:
// join_model_test.cc.
#include "base/check.h"
#include "threads/control/cancel.h"
#include "threads/flags.h"
#include "threads/life/join.h"
#include "threads/scheduler.h"
#include "threads/user_calls.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

/// Publishes who joins. 0: done; else what the word has instead.
std::uintptr_t publish_joiner(Thread& thread, Waiter waiter) noexcept {
  std::uintptr_t expected = 0;
  // B: the ending thread reads our record. Acquire on failure (A): it has ended.
  return thread.joiner.compare_exchange_strong(expected, waiter.bits(), std::memory_order_acq_rel,
                                               std::memory_order_acquire)
             ? 0
             : expected;
}

/// Waits for the end of `thread` as one who is off its worker, and neither to be cancelled nor in
/// a hurry; with the lock of the worker, which it gives back. 0: it has ended; else as
/// publish_joiner().
[[gnu::always_inline]] inline std::uintptr_t suspend_until_end(Worker& worker, Thread& me,
                                                               Thread& thread) noexcept {
  const Waiter waiter = Waiter::suspended(me);
  std::uintptr_t word = 0;
  const auto publish = [&]() noexcept {
    word = publish_joiner(thread, waiter);
    return word == 0;
  };
  (void)suspend_locked(worker, me, publish);
  return word;
}

/// Waits for the signal of the end. timed_out, cancelled: the word is 0 again, and no signal comes.
Wake await_end(Thread& thread, Waiter waiter, KernelWaiter* kernel,
               std::uint64_t deadline_ns) noexcept {
  const auto await = [&](const WaitOptions& options) noexcept {
    return kernel != nullptr ? await_signal(*kernel, options) : await_signal(options);
  };
  const Wake wake = await({.deadline_ns = deadline_ns, .is_cancellable = true});
  if (wake == Wake::signalled) {
    return wake;
  }
  std::uintptr_t expected = waiter.bits();
  if (thread.joiner.compare_exchange_strong(expected, 0, std::memory_order_acquire,
                                            std::memory_order_acquire)) {
    return wake;
  }
  return await({});  // It has ended meanwhile, and signals.
}

JoinOutcome refusal(std::uintptr_t word) noexcept {
  return word == Joined::detached ? JoinOutcome::detached : JoinOutcome::joined_already;
}

/// worker_here() of the team of `thread`, for `me`, who calls.
[[nodiscard]] inline Worker* worker_of(const Thread* me, const Thread& thread) noexcept {
  if (me != nullptr && me->team == thread.team) [[likely]] {
    return me->worker.load(std::memory_order_relaxed);
  }
  return worker_here(*thread.team->state());
}

/// What comes after the wait for the end: `word` as publish_joiner() returned it.
JoinOutcome finish_join(Thread* me, Thread& thread, std::uintptr_t word, Wake wake) noexcept {
  if (word != 0 && word != Joined::ended) {
    return refusal(word);
  }
  if (wake == Wake::cancelled) {
    end_cancelled(*me);
  }
  if (wake == Wake::timed_out) {
    return JoinOutcome::timed_out;
  }
  const bool was_cancelled = (thread.end_flags & EndFlag::cancelled) != 0;
  reap(worker_of(me, thread), thread);
  return was_cancelled ? JoinOutcome::cancelled : JoinOutcome::ended;
}

/// By one that may be woken before the end, or is no user thread.
JoinOutcome join_with_signal(Thread* me, Thread& thread, std::uint64_t deadline_ns) noexcept {
  KernelWaiter kernel;
  const Waiter waiter = me != nullptr ? Waiter{*me} : Waiter{kernel};
  const std::uintptr_t word = publish_joiner(thread, waiter);
  Wake wake = Wake::signalled;
  if (word == 0) {
    wake = await_end(thread, waiter, me != nullptr ? nullptr : &kernel, deadline_ns);
  }
  return finish_join(me, thread, word, wake);
}

[[gnu::noinline]] JoinOutcome join_slowly(Thread* me, Thread& thread,
                                          std::uint64_t deadline_ns) noexcept {
  if ((flags_of(thread) & ThreadFlag::detached) != 0) {
    return JoinOutcome::detached;
  }
  check(me != &thread, "a thread does not join itself");
  return join_with_signal(me, thread, deadline_ns);
}

/// One that is not simply the next to run; with the lock of the caller's worker, which it gives
/// back.
[[gnu::noinline]] JoinOutcome join_locked(Worker& worker, Thread& me, Thread& thread) noexcept {
  if (me.is_cancellable || &me == &thread || (flags_of(thread) & ThreadFlag::detached) != 0) {
    worker.lock.unlock();
    return join_slowly(&me, thread, kNever);
  }
  const std::uintptr_t word = suspend_until_end(worker, me, thread);
  return finish_join(&me, thread, word, Wake::signalled);
}

/// Inline in all: a call more between a join and its caller would be a return that the processor
/// predicts wrongly, since the switch comes in between. What is not usual is behind jumps.
[[gnu::always_inline]] inline JoinOutcome join_here(Thread* me, Thread& thread,
                                                    std::uint64_t deadline_ns) noexcept {
  if (me == nullptr || deadline_ns != kNever) [[unlikely]] {
    return join_slowly(me, thread, deadline_ns);
  }
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  worker.count_switch();
  worker.lock.lock();
  if (!can_join_next(worker, *me, &thread)) [[unlikely]] {
    return join_locked(worker, *me, thread);
  }
  return join_next(worker, *me, thread).outcome;
}

}  // namespace

[[gnu::noinline]] JoinOutcome reap_rare(Worker& here, Thread& thread) noexcept {
  const bool was_cancelled = (thread.end_flags & EndFlag::cancelled) != 0;
  reap(&here, thread);
  return was_cancelled ? JoinOutcome::cancelled : JoinOutcome::ended;
}

JoinOutcome try_join_until(Thread& thread, std::uint64_t deadline_ns) noexcept {
  return join_here(self(), thread, deadline_ns);
}

JoinOutcome join_in_user_code(Thread& me, Thread& thread) noexcept {
  (void)enter_from_user(me);
  const JoinOutcome outcome = join_here(&me, thread, kNever);
  leave_runtime(me);
  return outcome;
}

void join(Thread& thread) noexcept {
  const JoinOutcome outcome = join_here(self(), thread, kNever);
  check(outcome == JoinOutcome::ended || outcome == JoinOutcome::cancelled,
        "a thread is joined once, and not when it is detached");
}

JoinOutcome try_detach(Thread& thread) noexcept {
  if ((flags_of(thread) & ThreadFlag::detached) != 0) {
    return JoinOutcome::detached;
  }
  std::uintptr_t expected = 0;
  if (!thread.joiner.compare_exchange_strong(expected, Joined::detached, std::memory_order_acquire,
                                             std::memory_order_acquire)) {  // A
    if (expected != Joined::ended) {
      return refusal(expected);
    }
    reap(worker_of(self(), thread), thread);
  }
  return JoinOutcome::ended;
}

void detach(Thread& thread) noexcept {
  check(try_detach(thread) == JoinOutcome::ended,
        "a thread is detached once, and not when it is joined");
}

}  // namespace sterna::threads
