// What the code of a program asks for most often, in one step each: a call between the border and
// the switch would be a return more that the processor has to predict, and a frame more to fetch.
#pragma once

#include "base/probe.h"
#include "base/result.h"
#include "threads/carriers/border.h"
#include "threads/scheduler.h"

namespace sterna::threads {

/// Lets others go first, as yield(); of who holds the lock of its `worker`, and gives it back.
/// Switches.
void yield_locked(Worker& worker, Thread& me) noexcept;

/// yield() of `me`, which calls. Returns its worker, when it goes on. Switches.
[[gnu::always_inline]] inline Worker& yield_on(Worker& worker, Thread& me) noexcept {
  constexpr std::uint32_t kUnfit = kSlowSwitchFlags | ThreadFlag::exception_saved;
  worker.count_switch();
  worker.lock.lock();
  Thread* const next = worker.inbox.looks_empty() && (me.flags & kSlowSwitchFlags) == 0
                           ? worker.queue.rotate_plain(me, kUnfit)
                           : nullptr;
  if (next == nullptr) [[unlikely]] {
    yield_locked(worker, me);
    return *me.worker.load(std::memory_order_relaxed);
  }
  // As switch_contexts().
  next->worker.store(&worker, std::memory_order_relaxed);
  worker.current.store(next, std::memory_order_relaxed);
  STERNA_PROBE2(thread_switch, &me, next);
  return exchange_workers(worker, me, *next);
}

/// yield() of `me`, which calls, and is in the code of its program (border.h): enters the runtime,
/// lets others go first, leaves it. Switches.
[[gnu::always_inline]] inline void yield_in_user_code(Thread& me) noexcept {
  Worker& present = yield_on(enter_from_user(me), me);
  leave_runtime(*present.current.load(std::memory_order_relaxed), present);
}

/// A new thread, and its number, which says more than its address once it has ended.
struct Born {
  Thread* thread = nullptr;
  std::uint64_t id = 0;
};
/// A new runnable thread of `team` whose entry is code of the program, and whose options are the
/// usual ones but for that: Team::spawn() of `me`, which calls, has no entity and is in the code of
/// its program. Null: there is no slot, or its worker is not of the team; nothing happened.
[[nodiscard]] Born spawn_plain(Team& team, Thread& me, Entry entry, void* argument) noexcept;

/// join() of `me`, which calls, and is in the code of its program; `thread` is another one, and may
/// be detached, or joined by somebody, in which case that is said. Switches.
[[nodiscard]] JoinOutcome join_in_user_code(Thread& me, Thread& thread) noexcept;

}  // namespace sterna::threads
