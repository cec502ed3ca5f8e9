// Kept threads: threads of Dispatch that its plan leaves one worker only live in the private queue
// of that worker, so that a switch or a wake-up costs them what it costs any thread.
//
// A kept thread has ThreadFlag::kept and ::bound instead of ::managed. These flags, and
// worker_first, worker_count, change only while somebody has the thread to himself: Dispatch when
// it became ready (keep(), mark_kept()), or whoever took it from a private queue under its lock
// (give_back(), worker.try_kept()). So nobody who may read them does so at that time.
//
// Plans change while the thread runs, waits or is on its way into a queue. recall() is an order,
// not a search: a bit of Thread::hold, which whoever takes a thread from a private queue looks at
// anyway. Between keep() and recall() stands the word of Dispatch that says "kept" (Entity::kept_):
// it is stored before the plan is read once more, and plans are stored before it is read, all
// sequentially consistent; so either the plan is seen, or the order is given. An order that comes
// when nothing is kept any more costs one trip through Dispatch. tests: sched/kept_model_test.cc.
#pragma once

#include "threads/dispatch.h"
#include "threads/thread.h"

namespace sterna::threads {

class TeamState;

/// Applies change(word) to the orders of `thread`; the former word.
template <typename Change>
Hold change_hold(Thread& thread, Change&& change) noexcept {
  Hold word = thread.hold.load(std::memory_order_relaxed);
  // Both: what the giver of the order did is seen, and what the taker did before.
  while (!thread.hold.compare_exchange_weak(word, change(word), std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
  }
  return word;
}

/// Whether `thread`, which is the caller's to make ready, may be kept: it has left its processor.
[[nodiscard]] bool can_keep(const Thread& thread) noexcept;
/// It is kept on `worker` from now on; the caller queues it there.
void mark_kept(Thread& thread, Worker& worker) noexcept;
/// The same, and it is ready there. The last access of the caller to the thread.
void keep(Team& team, Thread& thread, std::uint32_t worker) noexcept;

/// It goes to Dispatch when it is taken from a queue next. From anywhere, while it has not ended.
void recall(Thread& thread) noexcept;

/// `thread`, recalled, was taken from a private queue, whose lock is held.
void give_back(Thread& thread) noexcept;

/// `thread`, kept and ready, was taken from a private queue: to Dispatch, for others. Holds no
/// lock.
void expose(Thread& thread) noexcept;

/// On a processor right now: a hint.
[[nodiscard]] bool is_running(const Thread& thread) noexcept;
/// In the private queue or inbox of its worker, or running: a hint.
[[nodiscard]] bool is_ready(const Thread& thread) noexcept;

/// It is ready, not held, and, if it is kept, its worker has nothing to do: whoever has no queue
/// that holds it has lost it. A hint.
[[nodiscard]] bool is_unserved(const Thread& thread, bool is_kept) noexcept;

/// For Dispatch: the thread that runs there is wanted elsewhere, or another one there. Acts at the
/// next tick of teams that preempt (preempt.h), in others not.
void ask_to_leave(Team& team, std::uint32_t worker) noexcept;

/// A thread with an entity has ended.
void end_placed(TeamState& team, Thread& thread) noexcept;

}  // namespace sterna::threads
