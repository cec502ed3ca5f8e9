// How threads come to be: slots, descriptors, the first place in a queue. life.cc has how they end.
//
// What a usual thread needs is one straight piece of code in Team::spawn(), which knows the worker
// of its caller from one look; what few threads need is behind calls.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>

#include "base/check.h"
#include "base/probe.h"
#include "threads/carriers/locals.h"
#include "threads/control/roster.h"
#include "threads/life/birth.h"
#include "threads/observation/traced.h"
#include "threads/scheduler.h"
#include "threads/seeds/seed.h"
#include "threads/user_calls.h"

namespace sterna::threads {
namespace {

/// Where its stack begins: below the descriptor, if that is not elsewhere.
std::byte* stack_top(Thread& thread) noexcept {
  auto* const descriptor = reinterpret_cast<std::byte*>(&thread);
  if ((thread.flags & ThreadFlag::adopted) == 0) [[likely]] {
    return descriptor;
  }
  std::byte* const top = thread.stack_base + thread.stack_bytes;
  return descriptor >= thread.stack_base && descriptor < top ? descriptor : top;
}

void set_seed_floor(Thread& thread) noexcept {
  thread.seed_floor = reinterpret_cast<std::uintptr_t>(thread.stack_base) + thread.guard_bytes +
                      std::min(kSeedStackBytes, thread.stack_bytes / 2);
}

memory::StackSlot slot_of(const Thread& thread) noexcept {
  const memory::SlotRange range = memory::slot_at(reinterpret_cast<std::uintptr_t>(&thread));
  return {range.base, range.bytes};
}

}  // namespace

void release_slot(TeamState& team, Thread& thread) noexcept {
  unregister_slot(team, thread);
  stack_goes(thread);
  team.options.iso_space->release_stack(slot_of(thread));
}

namespace {

/// A slot that the worker keeps; null: none that is large enough.
[[gnu::always_inline]] inline Thread* take_kept_slot(Worker& here,
                                                     std::size_t stack_bytes) noexcept {
  const std::uint32_t stack_class = class_of_stack(stack_bytes);
  if (stack_class >= memory::kStackClassCount) [[unlikely]] {
    return nullptr;
  }
  return here.slots[stack_class].take();
}

[[gnu::noinline]] Result<Thread*> make_slot(TeamState& team,
                                            const ThreadOptions& options) noexcept {
  check(team.options.iso_space != nullptr, "a team that spawns threads has an iso space");
  Result<memory::StackSlot> slot =
      team.options.iso_space->acquire_stack(whole_stack_bytes(options), options.may_wait);
  if (!slot) {
    return slot.error();
  }
  auto* const thread = new (slot.value().descriptor()) Thread;
  register_slot(team, *thread);
  thread->team = team.handle;
  thread->stack_class = static_cast<std::uint8_t>(memory::stack_class_for(slot.value().bytes));
  thread->stack_base = reinterpret_cast<std::byte*>(slot.value().stack_low());
  thread->stack_bytes = slot.value().stack_top() - slot.value().stack_low();
  set_seed_floor(*thread);
  stack_appeared(*thread);
  return thread;
}

}  // namespace

Result<Thread*> make_thread(TeamState& team, Worker* here, const ThreadOptions& options) noexcept {
  if (here != nullptr) [[likely]] {
    if (Thread* const kept = take_kept_slot(*here, whole_stack_bytes(options)); kept != nullptr) {
      return kept;
    }
  }
  return make_slot(team, options);
}

namespace {

/// What few threads have, or had that used the slot before.
[[gnu::noinline]] void init_rare(Thread& thread, const ThreadOptions& options) noexcept {
  thread.end_flags = options.guard_bytes != 0 ? EndFlag::guarded : 0;
  thread.guard_bytes = options.guard_bytes;
  thread.entity = options.entity;
  thread.worker_first = options.worker;
  thread.worker_count = options.worker_count;
  thread.cycles_run.store(0, std::memory_order_relaxed);
  thread.cycles_begin.store(0, std::memory_order_relaxed);
  thread.on_processor.store(0, std::memory_order_relaxed);
  thread.preempt_off.store(
      preempt_bits(options.preemption) | (options.preemptible_around ? 0 : kPreemptForbiddenAround),
      std::memory_order_relaxed);
  if ((preempt_bits(options.preemption) & kPreemptModeBits) != 0) {
    thread.team->state()->has_own_preemption.store(true, std::memory_order_relaxed);
  }
  set_seed_floor(thread);
}

/// What is not here is as a new thread has it: of a fresh slot, and at the end of the one before.
/// `activity`: `ready` if it starts next, else `none` until it does.
[[gnu::always_inline]] inline void init_here(TeamState& team, Worker* here, Thread& thread,
                                             const ThreadOptions& options, Entry entry,
                                             void* argument, Activity activity) noexcept {
  const std::uint32_t former = thread.flags;
  const std::uint32_t flags = flags_from(options) | (former & ThreadFlag::adopted);
  thread.flags = flags;
  const std::uint8_t former_end = thread.end_flags;
  thread.preempt_off.store(0, std::memory_order_relaxed);
  (void)init_usual(team, here, thread, options, stack_top(thread), entry, argument, activity);
  if (((former | flags) & kRareFlags) != 0 || options.guard_bytes != 0 ||
      (former_end & EndFlag::guarded) != 0) [[unlikely]] {
    init_rare(thread, options);
  }
  if (thread.is_named.load(std::memory_order_relaxed)) [[unlikely]] {
    clear_name(thread);
  }
  if (options.name != nullptr) {
    set_name(thread, options.name);
  }
  STERNA_PROBE1(thread_create, &thread);
  if (trace::is_on()) [[unlikely]] {
    trace_born(thread);
  }
}

}  // namespace

void init_thread(TeamState& team, Worker* here, Thread& thread, const ThreadOptions& options,
                 Entry entry, void* argument) noexcept {
  init_here(team, here, thread, options, entry, argument, Activity::none);
}

namespace {

/// `home` if the bound thread may run there, else one of its range in turn.
Worker* home_in_range(TeamState& team, Thread& thread, Worker* home) noexcept {
  if (thread.worker_first == kAnyWorker) {
    thread.worker_first = home->index;
  }
  if (home->index - thread.worker_first < thread.worker_count) {
    return home;
  }
  const std::uint32_t turn = team.next_worker.fetch_add(1, std::memory_order_relaxed);
  return team.workers[thread.worker_first + turn % thread.worker_count].get();
}

/// In the queue of the caller's worker, where it is at home.
[[gnu::always_inline]] inline void start_beside(Worker& here, Thread& thread) noexcept {
  here.lock.lock();
  here.queue.push_back(thread);
  here.lock.unlock();
  if (has_sleeper(here)) [[unlikely]] {
    wake_sleeper(here);
  }
}

/// Where a thread begins that its creator does not simply keep beside itself.
[[gnu::noinline]] void start_elsewhere(TeamState& team, Worker* here, Thread& thread,
                                       std::uint32_t target) noexcept {
  Worker* home = here;
  if (target != kAnyWorker) {
    check(target < team.workers.size(), "a thread starts on a worker of its team");
    home = team.workers[target].get();
  } else if (home == nullptr) {
    home =
        team.workers[team.next_worker.fetch_add(1, std::memory_order_relaxed) % team.workers.size()]
            .get();
  }
  if ((thread.flags & ThreadFlag::bound) != 0) {
    home = home_in_range(team, thread, home);
  } else if (!may_run_on(thread, home->index)) {
    Worker* const one = enabled_worker_for(team, thread);
    home = one != nullptr ? one : home;  // Its former one, that is: it stays there.
  }
  thread.worker.store(home, std::memory_order_relaxed);
  if ((thread.flags & ThreadFlag::managed) != 0) {
    team.options.dispatch->ready(thread, home);
  } else if (home != here) {
    send_home(*home, thread);
  } else {
    start_beside(*here, thread);
  }
}

/// Its activity is `ready`.
[[gnu::always_inline]] inline void start_here(TeamState& team, Worker* here, Thread& thread,
                                              std::uint32_t target) noexcept {
  if (here == nullptr || target != kAnyWorker ||
      (thread.flags & (ThreadFlag::bound | ThreadFlag::managed | ThreadFlag::assorted)) != 0)
      [[unlikely]] {
    start_elsewhere(team, here, thread, target);
    return;
  }
  thread.worker.store(here, std::memory_order_relaxed);
  start_beside(*here, thread);
}

}  // namespace

void start_thread(TeamState& team, Worker* here, Thread& thread, std::uint32_t target) noexcept {
  thread.activity.store(Activity::ready, std::memory_order_relaxed);
  start_here(team, here, thread, target);
}

namespace {

[[gnu::always_inline]] inline Result<Thread*> spawn_here(TeamState& team,
                                                         const ThreadOptions& options, Entry entry,
                                                         void* argument) noexcept {
  Worker* const here = worker_here(team);
  Thread* thread = here != nullptr ? take_kept_slot(*here, whole_stack_bytes(options)) : nullptr;
  if (thread == nullptr) [[unlikely]] {
    Result<Thread*> made = make_slot(team, options);
    if (!made) {
      return made;
    }
    thread = made.value();
  }
  if (options.guard_bytes != 0) [[unlikely]] {
    if (Result<> guarded = memory::add_stack_guard(thread->stack_base, options.guard_bytes);
        !guarded) {
      keep_slot(team, here, *thread);
      return guarded.error();
    }
  }
  init_here(team, here, *thread, options, entry, argument, Activity::ready);
  start_here(team, here, *thread, options.worker);
  return thread;
}

}  // namespace

Result<Thread*> Team::spawn(const ThreadOptions& options, Entry entry, void* argument) noexcept {
  return spawn_here(*state_, options, entry, argument);
}

namespace {
// The compiler knows them: half of what a birth looks at and stores is constant.
constexpr ThreadOptions kUsual;

/// One of the usual options by `here`, the worker of the caller, if that is simple; else null.
[[gnu::always_inline]] inline Thread* try_spawn(const TeamState& team, Worker* here, Entry entry,
                                                void* argument) noexcept {
  return here != nullptr && &here->team == &team
             ? try_spawn_beside<kUsual>(*here, entry, argument).thread
             : nullptr;
}

[[gnu::noinline]] Result<Thread*> spawned_beside_sleeper(Worker& here, Thread* thread) noexcept {
  wake_sleeper(here);
  return thread;
}

[[gnu::noinline]] Result<Thread*> spawn_usual(TeamState& team, Entry entry,
                                              void* argument) noexcept {
  Worker* const here = current_worker();
  if (Thread* const thread = try_spawn(team, here, entry, argument); thread != nullptr) {
    return has_sleeper(*here) ? spawned_beside_sleeper(*here, thread) : thread;
  }
  return spawn_here(team, kUsual, entry, argument);
}

}  // namespace

/// No call is on its way, so that it keeps no registers: 3 ns of 23.
Result<Thread*> Team::spawn(Entry entry, void* argument) noexcept {
  const Thread* const me = self_if_no_rank();
  Worker* const here = me != nullptr ? me->worker.load(std::memory_order_relaxed) : nullptr;
  Thread* const thread = try_spawn(*state_, here, entry, argument);
  if (thread == nullptr) [[unlikely]] {
    return spawn_usual(*state_, entry, argument);
  }
  if (has_sleeper(*here)) [[unlikely]] {
    return spawned_beside_sleeper(*here, thread);
  }
  return thread;
}

void leave_birth(Thread& me) noexcept {
  if (me.in_user.load(std::memory_order_relaxed)) {
    leave_wished(me);
    return;
  }
  Worker& here = *me.worker.load(std::memory_order_relaxed);
  if (has_sleeper(here)) {
    wake_sleeper(here);
  }
  leave_runtime(me, here);
}

Result<Thread*> Team::spawn_with_locals(const ThreadOptions& options, Entry entry,
                                        void* argument) noexcept {
  TeamState& team = *state_;
  Result<Locals*> locals = make_locals();
  if (!locals) {
    return locals.error();
  }
  Worker* const here = worker_here(team);
  Result<Thread*> made = make_thread(team, here, options);
  if (!made) {
    end_locals(*locals.value());
    return made;
  }
  Thread& thread = *made.value();
  if (options.guard_bytes != 0) {
    if (Result<> guarded = memory::add_stack_guard(thread.stack_base, options.guard_bytes);
        !guarded) {
      keep_slot(team, here, thread);
      end_locals(*locals.value());
      return guarded.error();
    }
  }
  init_here(team, here, thread, options, entry, argument, Activity::ready);
  give_locals(thread, *locals.value());
  start_here(team, here, thread, options.worker);
  return &thread;
}

void drop_slots(Worker& worker) noexcept {
  for (SlotCache& cache : worker.slots) {
    while (Thread* const thread = cache.take()) {
      release_slot(worker.team, *thread);
    }
  }
}

}  // namespace sterna::threads
