// The join of a thread that is the next to run beside its joiner, as after a birth: the joiner runs
// it, here and now, and the end of the thread switches back. Internal to threads/. join.cc has all
// others, life.cc the word Thread::joiner. tests: join_model_test.cc.
#pragma once

#include "base/cpu.h"
#include "base/prefetch.h"
#include "base/probe.h"
#include "threads/life/life.h"
#include "threads/waiter.h"

namespace sterna::threads {

/// `thread`, if there is one, runs soon: what it touches first is on its way meanwhile, the two
/// lines of its descriptor and the end of its stack. Of a crowd that is larger than the caches and
/// joined in the order of its queue, as it mostly is, each end and join costs 80 ns so, not 190.
[[gnu::always_inline]] inline void fetch_ahead(const Thread* thread) noexcept {
  const auto* const descriptor = reinterpret_cast<const std::byte*>(thread);
  if (descriptor != nullptr) {  // To fetch address 0 costs 30 ns.
#pragma GCC unroll 7
    for (int line = -5; line < 2; ++line) {
      fetch_for_reading(descriptor + line * static_cast<int>(kCacheLineBytes));
    }
  }
}

/// Whether `me`, the current thread, may join_next() `thread`, which is another one, or no thread
/// at all; not if it has one of the flags `refused`. With the lock of `worker`, its own, held.
[[nodiscard, gnu::always_inline]] inline bool can_join_next(const Worker& worker, const Thread& me,
                                                            const Thread* thread,
                                                            std::uint32_t refused = 0) noexcept {
  constexpr std::uint32_t kUnfit =
      kSlowSwitchFlags | kSavedFlags | ThreadFlag::detached | ThreadFlag::adopted;
  // What is in the queue is a thread: nothing of any other address is looked at.
  if (!worker.queue.is_next(thread)) [[unlikely]] {
    return false;
  }
  return worker.inbox.looks_empty() && thread->joiner.load(std::memory_order_relaxed) == 0 &&
         (thread->flags & (kUnfit | refused)) == 0 && (me.flags & kSlowSwitchFlags) == 0 &&
         !me.is_cancellable;
}

/// How a join has ended, and where the joiner is now.
struct JoinEnd {
  Thread& me;
  Worker& worker;
  JoinOutcome outcome;
};

/// Gives back what an ended thread had, one with something rare to it: outcome of its join.
JoinOutcome reap_rare(Worker& here, Thread& thread) noexcept;

/// `thread`, which came from memory; if it is `guess` as well, what comes next does not wait for
/// that memory: the processor goes on with the guess.
[[nodiscard, gnu::always_inline]] inline Thread* guessed(Thread* thread, Thread* guess) noexcept {
  Thread* kept = guess;
  asm("" : "+r"(kept));  // Else the compiler would take either, as they are equal.
  if (guess != thread) [[unlikely]] {
    return thread;
  }
  asm volatile("");  // Else both would become one conditional move.
  return kept;
}

/// Joins `thread`, which can_join_next(). Gives the lock back. Switches.
[[nodiscard, gnu::always_inline]] inline JoinEnd join_next(Worker& worker, Thread& me,
                                                           Thread& thread) noexcept {
  // Whoever is in our queue, whose lock we hold, has not ended, so nobody else writes its word: a
  // plain store, no locked instruction (3 ns of 23). It runs here and now; if elsewhere later, then
  // by way of this lock, or of an inbox, after us. The one thing that is lost is that a second who
  // joins or detaches it in this very moment is told so: that is an error of the program, in all
  // other cases found.
  thread.joiner.store(Waiter::suspended(me).bits(), std::memory_order_relaxed);
  fetch_ahead(thread.next);
  worker.queue.drop_next(thread);
  me.activity.store(Activity::blocked, std::memory_order_relaxed);
  STERNA_PROBE1(thread_block, &me);
  // As switch_contexts(). All that is kept over the switch is in one place of the stack: the
  // compiler would keep the rest there from the beginning on.
  thread.worker.store(&worker, std::memory_order_relaxed);
  worker.current.store(&thread, std::memory_order_relaxed);
  STERNA_PROBE2(thread_switch, &me, &thread);
  Thread* ended = &thread;
  asm volatile("" : "+m"(ended));
  SavedContext* former = nullptr;
  Worker& present = exchange_workers(worker, me, thread, 0, former);
  // Who comes back is mostly the one that has ended.
  Thread& joined = *guessed(ended, reinterpret_cast<Thread*>(former));
  JoinOutcome outcome = JoinOutcome::ended;
  if ((joined.end_flags & (EndFlag::cancelled | EndFlag::guarded)) != 0) [[unlikely]] {
    outcome = reap_rare(present, joined);
  } else {
    if constexpr (kSanitized) {
      sanitizer_end(joined);
    }
    joined.joiner.store(Joined::reaped, std::memory_order_relaxed);
    SlotCache& slots = present.slots[joined.stack_class];
    if (slots.lone == nullptr) [[likely]] {
      slots.lone = &joined;
    } else if (!slots.keep(joined)) [[unlikely]] {
      release_slot(present.team, joined);
    }
  }
  return {*present.current.load(std::memory_order_relaxed), present, outcome};
}

}  // namespace sterna::threads
