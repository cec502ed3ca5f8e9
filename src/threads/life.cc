// How threads come to be and end; join.cc has how they are joined.
//
// The word Thread::joiner: 0 nobody yet; a Waiter: who joins; or one of Joined. The thread's end
// is published in it after the last switch away from its stack, so a joiner may reuse or unmap the
// memory at once. One exception, for speed: when the joiner is suspended on this very worker, the
// dying thread switches directly to it; the joiner then runs on this kernel thread after that
// switch.
#include "threads/life.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/probe.h"
#include "base/thread_pointer.h"
#include "threads/kept.h"
#include "threads/roster.h"
#include "threads/scheduler.h"
#include "threads/seed.h"
#include "threads/traced.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

std::uint32_t class_of_slot(std::size_t slot_bytes) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(slot_bytes - 1)) - memory::kStackSlotShiftMin;
}

/// The smallest class whose slots hold such a stack, with guard, descriptor and colours.
std::uint32_t class_of_stack(std::size_t stack_bytes) noexcept {
  constexpr std::size_t kOther =
      memory::kPageBytes + memory::kDescriptorBytes + memory::kColourCount * memory::kColourBytes;
  return class_of_slot(std::max(stack_bytes + kOther, memory::kStackSlotBytesMin));
}

memory::StackSlot slot_of(const Thread& thread) noexcept {
  const memory::SlotRange range = memory::slot_at(reinterpret_cast<std::uintptr_t>(&thread));
  return {range.base, range.bytes};
}

/// What comes after the last switch away from any thread.
[[gnu::always_inline]] inline void leave_stack(TeamState& team, Thread& thread) noexcept {
  count_end(team, worker_here(team));
  thread.activity.store(Activity::none, std::memory_order_relaxed);
  if ((thread.end_flags & EndFlag::after_exit) != 0) [[unlikely]] {
    thread.after_exit(thread.after_exit_argument);
  }
}

/// After the last switch away from a thread that ended, its joiner was switched to directly.
void after_end_joined(Thread& thread, void*) noexcept {
  TeamState& team = *thread.team->state();
  leave_stack(team, thread);
  if ((thread.flags & ThreadFlag::placed) != 0) [[unlikely]] {
    end_placed(team, thread);
  }
}

[[gnu::noinline]] void end_detached(Thread& thread) noexcept {
  const bool is_seed = (thread.flags & ThreadFlag::seed) != 0;
  const bool is_cancelled = (thread.end_flags & EndFlag::cancelled) != 0;
  void* const seed = thread.argument;
  reap(thread);
  if (is_seed) {
    finish_seed(seed, is_cancelled);
  }
}

void after_end(Thread& thread, void*) noexcept {
  TeamState& team = *thread.team->state();
  leave_stack(team, thread);
  if ((thread.flags & ThreadFlag::placed) != 0) {
    end_placed(team, thread);
  }
  if ((thread.flags & ThreadFlag::detached) != 0) {
    end_detached(thread);
    return;
  }
  // A: the joiner sees all that the thread did. Acquire, for the joiner's record.
  const std::uintptr_t joiner = thread.joiner.exchange(Joined::ended, std::memory_order_acq_rel);
  if (joiner == Joined::detached) {
    reap(thread);
  } else if (joiner != 0) {
    Waiter::from_bits(joiner).signal();
  }
}

}  // namespace

void release_slot(TeamState& team, Thread& thread) noexcept {
  unregister_slot(team, thread);
  stack_goes(thread);
  team.options.iso_space->release_stack(slot_of(thread));
}

void reap_extras(Thread& thread) noexcept {
  memory::remove_stack_guard(thread.stack_base, thread.guard_bytes);
  thread.guard_bytes = 0;
}

void thread_main(void* thread) noexcept {
  Thread& me = *static_cast<Thread*>(thread);
  if constexpr (kSanitized) {
    sanitizer_entered(me);
  }
  finish_switch(*me.worker.load(std::memory_order_relaxed));
  if ((me.flags & ThreadFlag::user_code) != 0) {
    leave_runtime(me);
    me.entry(me.argument);
    (void)enter_runtime(me);
  } else {
    me.entry(me.argument);
  }
  end_current(me);
}

namespace {

/// Cleanups, then keys: each may still use the thread. All are null again for the next one.
[[gnu::noinline]] void end_belongings(Thread& me) noexcept {
  while (Cleanup* const innermost = me.cleanup) {
    me.cleanup = innermost->outer;
    innermost->function(innermost->argument);
  }
  if (me.keys != nullptr) {
    end_keys(me);
  }
  delete[] me.error_text;
  me.error_text = nullptr;
}

}  // namespace

void end_current(Thread& me) noexcept {
  if ((me.flags & ThreadFlag::traced) != 0) [[unlikely]] {
    trace_ended(me);
  }
  if (me.seeds != nullptr) [[unlikely]] {
    join_seeds(me);
  }
  if ((me.end_flags & EndFlag::belongings) != 0) [[unlikely]] {
    end_belongings(me);
  }
  STERNA_PROBE1(thread_exit, &me);
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  worker.lock.lock();
  worker.post_thread = &me;
  worker.post = after_end;
  Thread* next = nullptr;
  // Acquire: the joiner published itself; what it wrote before is seen.
  const std::uintptr_t bits = me.joiner.load(std::memory_order_acquire);
  if ((bits & Waiter::kSuspendedTag) != 0 && (me.flags & ThreadFlag::managed) == 0) {
    Thread* const joiner = Waiter::from_bits(bits).thread();
    // Only we may wake it, so it stays suspended, and its home stays its home.
    if (joiner->worker.load(std::memory_order_relaxed) == &worker &&
        (joiner->flags & ThreadFlag::managed) == 0 && !worker.queue.has_levels() &&
        joiner->hold.load(std::memory_order_relaxed) == Hold::none) {
      joiner->activity.store(Activity::ready, std::memory_order_relaxed);
      next = joiner;
      worker.post = after_end_joined;
    }
  }
  switch_contexts(worker, me, next != nullptr ? *next : worker.pick(), true);
  fail("an ended thread does not run again", __FILE__, __LINE__);
}

Result<Thread*> make_thread(TeamState& team, const ThreadOptions& options) noexcept {
  const std::size_t stack_bytes = options.stack_bytes * kStackFactor + options.guard_bytes;
  Worker* const here = worker_here(team);
  if (here != nullptr) [[likely]] {
    const std::uint32_t stack_class = class_of_stack(stack_bytes);
    if (stack_class < memory::kStackClassCount) [[likely]] {
      SlotCache& cache = here->slots[stack_class];
      if (Thread* const thread = cache.first; thread != nullptr) [[likely]] {
        cache.first = thread->next;
        --cache.count;
        return thread;
      }
    }
  }
  check(team.options.iso_space != nullptr, "a team that spawns threads has an iso space");
  Result<memory::StackSlot> slot =
      team.options.iso_space->acquire_stack(stack_bytes, options.may_wait);
  if (!slot) {
    return slot.error();
  }
  auto* const thread = new (slot.value().descriptor()) Thread;
  register_slot(team, *thread);
  thread->stack_class = static_cast<std::uint8_t>(class_of_slot(slot.value().bytes));
  thread->stack_base = reinterpret_cast<std::byte*>(slot.value().stack_low());
  thread->stack_bytes = slot.value().stack_top() - slot.value().stack_low();
  stack_appeared(*thread);
  return thread;
}

void init_thread(TeamState& team, Thread& thread, const ThreadOptions& options, Entry entry,
                 void* argument) noexcept {
  Worker* const here = worker_here(team);
  thread.next = nullptr;
  thread.wait_word.store(0, std::memory_order_relaxed);
  thread.joiner.store(0, std::memory_order_relaxed);
  thread.flags = (thread.flags & ThreadFlag::adopted) | (options.bound ? ThreadFlag::bound : 0) |
                 (options.accounted ? ThreadFlag::accounted : 0) |
                 (options.detached ? ThreadFlag::detached : 0) |
                 (options.cancellable ? ThreadFlag::cancellable : 0) |
                 (options.entity != nullptr ? ThreadFlag::managed | ThreadFlag::placed : 0) |
                 (options.is_user_code ? ThreadFlag::user_code : 0) |
                 (options.preemptible ? 0 : ThreadFlag::unpreemptible);
  thread.in_user.store(false, std::memory_order_relaxed);
  thread.is_taken.store(false, std::memory_order_relaxed);
  thread.preempt_off.store(0, std::memory_order_relaxed);
  thread.error_number = 0;
  thread.priority.store(options.priority, std::memory_order_relaxed);
  thread.hold.store(options.held ? Hold::wanted : Hold::none, std::memory_order_relaxed);
  thread.is_cancellable = options.cancellable;
  thread.end_flags = options.guard_bytes != 0 ? EndFlag::guarded : 0;
  thread.guard_bytes = options.guard_bytes;
  thread.team = team.handle;
  thread.entry = entry;
  thread.argument = argument;
  thread.owner = options.owner;
  thread.entity = options.entity;
  if (options.bound) {
    thread.worker_first = options.worker;
    thread.worker_count = options.worker_count;
  }
  thread.cycles_run.store(0, std::memory_order_relaxed);
  thread.cycles_begin.store(0, std::memory_order_relaxed);
  thread.on_processor.store(0, std::memory_order_relaxed);
  // Numbers of one worker are apart by the count of workers + 1, those from outside fill the gap.
  const std::uint64_t step = team.workers.size() + 1;
  thread.id.store(here != nullptr
                      ? here->index + 1 + step * here->spawned_count++
                      : step * (1 + team.foreign_ids.fetch_add(1, std::memory_order_relaxed)),
                  std::memory_order_relaxed);
  clear_name(thread);
  if (options.name != nullptr) {
    set_name(thread, options.name);
  }
  std::byte* top = thread.stack_base + thread.stack_bytes;
  auto* const descriptor = reinterpret_cast<std::byte*>(&thread);
  if (descriptor >= thread.stack_base && descriptor < top) {
    top = descriptor;
  }
  thread.seeds = nullptr;
  thread.seed_floor = reinterpret_cast<std::uintptr_t>(thread.stack_base) + thread.guard_bytes +
                      std::min(kSeedStackBytes, thread.stack_bytes / 2);
  if constexpr (kSanitized) {
    sanitizer_begin(thread, false);
  }
  thread.context = make_context(top, thread_main, &thread);
  count_birth(team, here);
  STERNA_PROBE1(thread_create, &thread);
  if (trace::is_on()) [[unlikely]] {
    trace_born(thread);
  }
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

}  // namespace

void start_thread(TeamState& team, Thread& thread, std::uint32_t target) noexcept {
  Worker* const here = worker_here(team);
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
  }
  thread.worker.store(home, std::memory_order_relaxed);
  thread.activity.store(Activity::ready, std::memory_order_relaxed);
  if ((thread.flags & ThreadFlag::managed) != 0) {
    team.options.dispatch->ready(thread, home);
    return;
  }
  if (home != here) {
    send_home(*home, thread);
    return;
  }
  home->lock.lock();
  home->queue.push_back(thread);
  home->lock.unlock();
  if (team.sleeper_count.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    team.wake_idle(0, static_cast<std::uint32_t>(team.workers.size()));
  }
}

void drop_slots(Worker& worker) noexcept {
  for (SlotCache& cache : worker.slots) {
    while (Thread* const thread = cache.first) {
      cache.first = thread->next;
      release_slot(worker.team, *thread);
    }
    cache.count = 0;
  }
}

}  // namespace sterna::threads
