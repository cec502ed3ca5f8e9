// What the code of a program asks for most often, in one step each: a call between the border and
// the switch would be a return more that the processor has to predict, and a frame more to fetch.
#pragma once

#include "base/probe.h"
#include "threads/carriers/border.h"
#include "threads/life/birth.h"
#include "threads/life/join.h"
#include "threads/scheduler.h"
#include "threads/seeds/seed.h"

namespace sterna::threads {

/// Lets others go first, as yield(); of who holds the lock of its `worker`, and gives it back.
/// Switches.
void yield_locked(Worker& worker, Thread& me) noexcept;

/// yield() of `me`, which calls. Returns its worker, when it goes on. Switches.
[[gnu::always_inline]] inline Worker& yield_on(Worker& worker, Thread& me) noexcept {
  constexpr std::uint32_t kUnfit = kSlowSwitchFlags | kSavedFlags;
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
  return exchange_workers(worker, me, *next, 0);
}

/// yield() of `me`, which calls, and is in the code of its program (border.h): enters the runtime,
/// lets others go first, leaves it. Switches.
[[gnu::always_inline]] inline void yield_in_user_code(Thread& me) noexcept {
  Worker& present = yield_on(enter_from_user(me), me);
  leave_runtime(*present.current.load(std::memory_order_relaxed), present);
}

/// The usual options of what a program starts.
inline constexpr ThreadOptions kUsualOfProgram{.is_user_code = true};

/// A new runnable thread of `team` with kUsualOfProgram: Team::spawn() of `me`, which calls, has no
/// entity and is in the code of its program. Afterwards it is in the runtime, until it has called
/// try_leave_birth(). Null: it takes more than this; nothing has happened.
[[nodiscard, gnu::always_inline]] inline Born try_spawn_in_user_code(Team& team, Thread& me,
                                                                     Entry entry,
                                                                     void* argument) noexcept {
  Worker* const here = try_enter_from_user(me);
  if (here != nullptr && here->team.handle == &team) [[likely]] {
    if (const Born born = try_spawn_beside<kUsualOfProgram>(*here, entry, argument);
        born.thread != nullptr) [[likely]] {
      return born;
    }
  }
  me.in_user.store(true, std::memory_order_release);
  return {};
}
/// Leaves the runtime after a birth. False: leave_birth() has something to do.
[[nodiscard, gnu::always_inline]] inline bool try_leave_birth(Thread& me) noexcept {
  Worker& here = *me.worker.load(std::memory_order_relaxed);
  if (has_sleeper(here)) [[unlikely]] {
    return false;
  }
  me.in_user.store(true, std::memory_order_release);
  return border_of(here).wish.load(std::memory_order_relaxed) == 0;
}
/// After that: wakes who may run the new thread, and leaves the runtime. Switches.
void leave_birth(Thread& me) noexcept;

/// join() of `me`, which calls, and is in the code of its program, if the thread at `address` is
/// the next to run beside it, has no entity, and its number ends in `number`; else there may be
/// anything at `address`. False: it is not so, and nothing has happened. Switches.
[[nodiscard, gnu::always_inline]] inline bool try_join_in_user_code(Thread& me,
                                                                    std::uintptr_t address,
                                                                    std::uint16_t number,
                                                                    JoinOutcome& outcome) noexcept {
  auto* const thread = reinterpret_cast<Thread*>(address);
  Worker& worker = enter_from_user(me);
  worker.count_switch();
  worker.lock.lock();
  if (!can_join_next(worker, me, thread, ThreadFlag::placed) ||
      static_cast<std::uint16_t>(thread->id.load(std::memory_order_relaxed)) != number)
      [[unlikely]] {
    worker.lock.unlock();
    leave_runtime(me, worker);
    return false;
  }
  const JoinEnd end = join_next(worker, me, *thread);
  leave_runtime(end.me, end.worker);
  outcome = end.outcome;
  return true;
}

/// join() of any other; it may be detached, or joined by somebody, in which case that is said.
/// Switches.
[[nodiscard]] JoinOutcome join_in_user_code(Thread& me, Thread& thread) noexcept;

/// plant() of `me`, which calls, has no entity and is in the code of its program. Afterwards it is
/// in the runtime, until it has called try_leave_birth(). False: it takes more than this; nothing
/// has happened.
[[nodiscard, gnu::always_inline]] inline bool try_plant_in_user_code(Thread& me, Seed& seed,
                                                                     Entry function,
                                                                     void* argument) noexcept {
  init_seed(me, seed, function, argument);
  Worker* const here = try_enter_from_user(me);
  if (here == nullptr || !here->seeds.try_push(seed)) [[unlikely]] {
    me.in_user.store(true, std::memory_order_release);
    return false;
  }
  me.seeds = &seed;
  return true;
}
/// After that, if try_leave_birth() says so: wakes who may run the seed, and leaves the runtime.
/// Switches.
void leave_planting(Thread& me) noexcept;

/// The first half of a join of `seed` by `me`, which calls, is in the code of its program, and runs
/// it afterwards. `must_give_way`: first it calls leave_wished(). False: it is not the last that it
/// has planted, or somebody else has it, or it is deep down; nothing has happened.
[[nodiscard, gnu::always_inline]] inline bool try_take_in_user_code(Thread& me, Seed& seed,
                                                                    bool& must_give_way) noexcept {
  if (!may_run_inline(me, seed)) [[unlikely]] {
    return false;
  }
  Worker* const here = try_enter_from_user(me);
  if (here == nullptr || !here->seeds.try_pop(seed)) [[unlikely]] {
    me.in_user.store(true, std::memory_order_release);
    return false;
  }
  unlink_newest(me, seed);
  me.in_user.store(true, std::memory_order_release);
  must_give_way = border_of(*here).wish.load(std::memory_order_relaxed) != 0;
  return true;
}

}  // namespace sterna::threads
