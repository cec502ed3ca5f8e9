// How threads come to be, end, and are joined.
//
// The word Thread::joiner: 0 nobody yet; a Waiter: who joins; kEnded; kDetached. The thread's end
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
#include "base/thread_pointer.h"
#include "threads/scheduler.h"
#include "threads/traced.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

constexpr std::uintptr_t kEnded = 1;
constexpr std::uintptr_t kDetached = 8;

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

/// The memory of an ended thread goes to the caller's worker, or back to the iso space.
void reap(Thread& thread) noexcept {
  if constexpr (kSanitized) {
    sanitizer_end(thread);
  }
  if ((thread.flags & ThreadFlag::adopted) != 0) {
    return;
  }
  TeamState& team = *thread.team->state();
  if (Worker* const here = worker_here(team); here != nullptr) {
    SlotCache& cache = here->slots[thread.stack_class];
    if (cache.count < (kSlotCacheMax >> thread.stack_class)) {
      thread.next = cache.first;
      cache.first = &thread;
      ++cache.count;
      return;
    }
  }
  team.options.iso_space->release_stack(slot_of(thread));
}

/// After the last switch away from a thread that ended, its joiner was switched to directly.
void after_end_joined(Thread& thread, void*) noexcept {
  TeamState& team = *thread.team->state();
  count_end(team, worker_here(team));
}

void after_end(Thread& thread, void*) noexcept {
  TeamState& team = *thread.team->state();
  count_end(team, worker_here(team));
  if ((thread.flags & ThreadFlag::managed) != 0) {
    team.options.dispatch->ended(thread);
  }
  if ((thread.flags & ThreadFlag::detached) != 0) {
    reap(thread);
    return;
  }
  // A: the joiner sees all that the thread did. Acquire, for the joiner's record.
  const std::uintptr_t joiner = thread.joiner.exchange(kEnded, std::memory_order_acq_rel);
  if (joiner == kDetached) {
    reap(thread);
  } else if (joiner != 0) {
    Waiter::from_bits(joiner).signal();
  }
}

void add_relaxed(std::atomic<std::uint64_t>& counter) noexcept {
  // One writer: no read-modify-write. Relaxed: a count orders nothing.
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

Worker* worker_here(const TeamState& team) noexcept {
  Worker* const worker = current_worker();
  return worker != nullptr && &worker->team == &team ? worker : nullptr;
}

void count_birth(TeamState& team, Worker* here) noexcept {
  if (here != nullptr) [[likely]] {
    add_relaxed(here->born);
  } else {
    team.foreign_born.fetch_add(1, std::memory_order_relaxed);
  }
}

void count_end(TeamState& team, Worker* here) noexcept {
  if (here != nullptr) [[likely]] {
    add_relaxed(here->ended);
  } else {
    team.foreign_ended.fetch_add(1, std::memory_order_relaxed);
  }
}

void thread_main(void* thread) noexcept {
  Thread& me = *static_cast<Thread*>(thread);
  if constexpr (kSanitized) {
    sanitizer_entered(me);
  }
  finish_switch(*me.worker.load(std::memory_order_relaxed));
  me.entry(me.argument);
  end_current(me);
}

void end_current(Thread& me) noexcept {
  if ((me.flags & ThreadFlag::traced) != 0) [[unlikely]] {
    trace_ended(me);
  }
  if (me.keys != nullptr) {
    end_keys(me);
  }
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
        (joiner->flags & ThreadFlag::managed) == 0) {
      next = joiner;
      worker.post = after_end_joined;
    }
  }
  switch_contexts(worker, me, next != nullptr ? *next : worker.pick(), true);
  fail("an ended thread does not run again", __FILE__, __LINE__);
}

Result<Thread*> make_thread(TeamState& team, const ThreadOptions& options) noexcept {
  const std::size_t stack_bytes = options.stack_bytes * kStackFactor;
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
  Result<memory::StackSlot> slot = team.options.iso_space->acquire_stack(stack_bytes);
  if (!slot) {
    return slot.error();
  }
  auto* const thread = new (slot.value().descriptor()) Thread;
  thread->stack_class = class_of_slot(slot.value().bytes);
  thread->stack_base = reinterpret_cast<std::byte*>(slot.value().stack_low());
  thread->stack_bytes = slot.value().stack_top() - slot.value().stack_low();
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
                 (options.entity != nullptr ? ThreadFlag::managed : 0);
  thread.team = team.handle;
  thread.entry = entry;
  thread.argument = argument;
  thread.owner = options.owner;
  thread.entity = options.entity;
  thread.keys = nullptr;
  thread.cycles_run.store(0, std::memory_order_relaxed);
  thread.cycles_begin.store(0, std::memory_order_relaxed);
  thread.on_processor.store(0, std::memory_order_relaxed);
  // Numbers of one worker are apart by the count of workers + 1, those from outside fill the gap.
  const std::uint64_t step = team.workers.size() + 1;
  thread.id = here != nullptr
                  ? here->index + 1 + step * here->spawned_count++
                  : step * (1 + team.foreign_ids.fetch_add(1, std::memory_order_relaxed));
  thread.name[0] = '\0';
  if (options.name != nullptr) {
    std::strncpy(thread.name, options.name, kNameBytes - 1);
    thread.name[kNameBytes - 1] = '\0';
  }
  std::byte* top = thread.stack_base + thread.stack_bytes;
  auto* const descriptor = reinterpret_cast<std::byte*>(&thread);
  if (descriptor >= thread.stack_base && descriptor < top) {
    top = descriptor;
  }
  if constexpr (kSanitized) {
    sanitizer_begin(thread, false);
  }
  thread.context = make_context(top, thread_main, &thread);
  count_birth(team, here);
  if (trace::is_on()) [[unlikely]] {
    trace_born(thread);
  }
}

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
  thread.worker.store(home, std::memory_order_relaxed);
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
      worker.team.options.iso_space->release_stack(slot_of(*thread));
    }
    cache.count = 0;
  }
}

void join(Thread& thread) noexcept {
  std::uintptr_t expected = 0;
  bool was_detached = (thread.flags & ThreadFlag::detached) != 0;
  check(!was_detached, "a thread is joined once, and not when it is detached");
  if (Thread* const me = self(); me != nullptr) {
    check(me != &thread, "a thread does not join itself");
    (void)suspend(*me, [&]() noexcept {
      // B: the ending thread reads our record. Acquire on failure (A): it has ended.
      return thread.joiner.compare_exchange_strong(expected, Waiter::suspended(*me).bits(),
                                                   std::memory_order_acq_rel,
                                                   std::memory_order_acquire);
    });
    was_detached = expected != 0 && expected != kEnded;
  } else {
    KernelWaiter waiter;
    if (thread.joiner.compare_exchange_strong(expected, Waiter{waiter}.bits(),
                                              std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
      (void)await_signal(waiter);
    } else {
      was_detached = expected != kEnded;
    }
  }
  check(!was_detached, "a thread is joined once, and not when it is detached");
  reap(thread);
}

void detach(Thread& thread) noexcept {
  std::uintptr_t expected = 0;
  if (!thread.joiner.compare_exchange_strong(expected, kDetached, std::memory_order_acquire,
                                             std::memory_order_acquire)) {  // A
    check(expected == kEnded, "a thread is detached once, and not when it is joined");
    reap(thread);
  }
}

}  // namespace sterna::threads
