// Holding: the order is a word of the thread (Thread::hold), which whoever takes it from a run
// queue turns from wanted to held instead of running it (run_queue.h). unhold() takes the word back
// to none by an exchange; the one that finds `held` has the thread to itself and makes it runnable.
//
// When has a thread stopped? A worker looks at the word and changes Worker::current inside one
// section of its biased lock. hold() sets the word and then passes through the lock of every other
// worker: a section that missed the word is over, and says in `current` whom it has chosen; later
// ones see the word. So who is not `current` then does not run before unhold().
//
// Who is among those that it holds waits for them without leaving its processor. Two that hold each
// other so would wait for ever: so they say `stopping`, and who is to stop as well does not wait
// for one that will. An order that was taken back is not waited for either. tests:
// hold_model_test.cc.
#include "threads/control/control.h"

#include "base/check.h"
#include "base/syscall.h"
#include "threads/carriers/border.h"
#include "threads/control/cancel.h"
#include "threads/control/measure.h"
#include "threads/flags.h"
#include "threads/life/life.h"
#include "threads/preemption/preempt.h"
#include "threads/queues/kept.h"
#include "threads/queues/lock_of.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kLookNs = 50'000;

void hold_self(Thread& me) noexcept {
  (void)suspend(me, [&]() noexcept {
    const Hold former = change_hold(me, [](Hold word) {
      const Hold rest = without(word, Hold::wanted | Hold::stopping);
      return has(word, Hold::wanted) ? rest | Hold::held : rest;
    });
    return has(former, Hold::wanted);
  });
}

/// Whether hold() waits for it, with its caller among those that stop, or not.
bool must_await(const Thread& thread, bool is_self) noexcept {
  // Acquire: what one that is stopping did before.
  const Hold word = thread.hold.load(std::memory_order_acquire);
  return has(word, Hold::wanted | Hold::held) && !(is_self && has(word, Hold::stopping)) &&
         is_running(thread);
}

}  // namespace

bool hold(std::span<Thread* const> threads, std::uint64_t deadline_ns) noexcept {
  if (threads.empty()) {
    return true;
  }
  Thread* const me = self();
  const Uncancellable uncancellable{me};  // Its end would leave the others held for ever.
  bool is_self = false;
  for (Thread* const thread : threads) {
    const Hold order = thread == me ? Hold::wanted | Hold::stopping : Hold::wanted;
    change_hold(*thread, [&](Hold word) { return has(word, Hold::held) ? word : word | order; });
    is_self = is_self || thread == me;
  }
  TeamState& team = *threads.front()->team->state();
  for (const auto& worker : team.workers) {
    if (worker.get() != current_worker()) {
      with_lock_of(*worker, [] {});
    }
  }
  for (Thread* const thread : threads) {
    while (thread != me && must_await(*thread, is_self)) {
      if (team.now_ns() >= deadline_ns) {
        if (is_self) {
          change_hold(*me, [](Hold word) { return without(word, Hold::stopping); });
        }
        return false;
      }
      if (is_self) {
        raw_system_call(SYS_sched_yield);  // A sleep would stop us before the others.
      } else {
        sleep_for(kLookNs);
      }
    }
  }
  if (is_self) {
    hold_self(*me);
  }
  return true;
}

void unhold(Thread& thread) noexcept {
  // A: who let it go did so before.
  const Hold former =
      change_hold(thread, [](Hold word) { return without(word, Hold::wanted | Hold::held); });
  if (has(former, Hold::held)) {
    make_runnable(thread);
  }
}

void set_priority(Thread& thread, std::uint8_t priority) noexcept {
  check(priority < kPriorityCount, "a priority is below kPriorityCount");
  thread.priority.store(priority, std::memory_order_relaxed);
  if ((flags_of(thread) & ThreadFlag::placed) != 0) {
    thread.team->state()->options.dispatch->priority_changed(thread);
    return;
  }
  Worker* const home = thread.worker.load(std::memory_order_relaxed);
  if (home == nullptr || thread.activity.load(std::memory_order_relaxed) != Activity::ready ||
      is_running(thread)) {
    return;
  }
  with_lock_of(*home, [&] {
    home->inbox.drain_to(home->queue);
    if (home->queue.remove(thread)) {
      home->queue.push_back(thread);
    }
  });
}

namespace {

/// A hint, of a thread that somebody else may have.
bool may_perhaps_run_on(const Thread& thread, std::uint32_t worker) noexcept {
  const std::uint32_t flags = flags_of(thread);
  if ((flags & ThreadFlag::assorted) != 0) {
    // Null: it is changing. Sets live as long as the team. Acquire: its words.
    const WorkerSet* const set = thread.workers.load(std::memory_order_acquire);
    return set == nullptr || set->has(worker);
  }
  return (flags & ThreadFlag::bound) == 0 || worker - thread.worker_first < thread.worker_count;
}

/// Takes `thread` out of the queue of its home, whoever's that is, if it may run here, its next
/// home.
bool take_ready(Thread& thread, Worker& here) noexcept {
  Worker* const home = thread.worker.load(std::memory_order_relaxed);
  bool is_taken = false;
  if (home == nullptr || home == &here ||
      (thread.activity.load(std::memory_order_relaxed) != Activity::ready &&
       !home->inbox.has_lone(thread)) ||
      !may_perhaps_run_on(thread, here.index)) {
    return false;
  }
  with_lock_of(*home, [&] {
    home->inbox.drain_to(home->queue);
    // Whose it is and where it may run change only when somebody has it to himself: while it is
    // here, nobody.
    is_taken = home->queue.contains(thread) && (flags_of(thread) & ThreadFlag::managed) == 0 &&
               may_run_on(thread, here.index) && home->queue.remove(thread);
    if (is_taken) {
      // Relaxed: as with those that are stolen. Already here: if it may not run, it lies in our
      // queue next, and an order (worker_set.h) is carried out where it is at home.
      thread.worker.store(&here, std::memory_order_relaxed);
    }
  });
  return is_taken;
}

/// Something is ordered that keeps it from running next.
bool is_kept_back(const Thread& thread) noexcept {
  return without(thread.hold.load(std::memory_order_relaxed), Hold::measured) != Hold::none;
}

}  // namespace

bool yield_to(Thread& thread) noexcept {
  Thread* const me = self();
  if (me == nullptr || &thread == me || (me->flags & ThreadFlag::managed) != 0 ||
      is_kept_back(thread)) {
    yield();
    return false;
  }
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  worker.count_switch();
  bool is_mine = take_ready(thread, worker);
  worker.lock.lock();
  if (!is_mine) {
    worker.inbox.drain_to(worker.queue);
    is_mine = worker.queue.remove(thread);
  }
  // Once more, in the section that runs it: see above. Who is held is let go by way of the queue.
  // One of Dispatch in a private queue was meant for the worker that runs it next.
  if (is_mine && (is_kept_back(thread) || (flags_of(thread) & ThreadFlag::managed) != 0 ||
                  worker.queue.is_closed_to(thread))) {
    worker.queue.push_back(thread);
    is_mine = false;
  }
  if (!is_mine) {
    worker.lock.unlock();
    yield();
    return false;
  }
  if (thread.hold.load(std::memory_order_relaxed) != Hold::none) [[unlikely]] {
    begin_measuring(thread);
  }
  worker.queue.push_back(*me);
  switch_contexts(worker, *me, thread);
  return true;
}

namespace {

/// As freeze(), but within this node: an exception that it is handling goes with it, as in any
/// switch. Switches.
void change_worker(Thread& me) noexcept {
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  worker.lock.lock();
  worker.post = [](Thread& thread, void*) { thread.team->start(thread); };
  worker.post_thread = &me;
  worker.post_argument = nullptr;
  switch_contexts(worker, me, *worker.idle);
}

}  // namespace

void stay_on(std::uint32_t first, std::uint32_t count) noexcept {
  Thread* const me = self();
  check(me != nullptr && (me->flags & ThreadFlag::placed) == 0,
        "stay_on() is called on a user thread that no policy manages");
  check(count > 0 && std::size_t{first} + count <= me->team->worker_count(),
        "a thread stays on workers of its team");
  change_hold(*me, [](Hold word) { return without(word, Hold::restricted); });
  me->worker_first = first;
  me->worker_count = count;
  set_flags(*me, (me->flags & ~ThreadFlag::assorted) | ThreadFlag::bound);
  if (me->worker.load(std::memory_order_relaxed)->index - first >= count) {
    change_worker(*me);
  }
}

void disable_preemption() noexcept {
  if (Thread* const me = self(); me != nullptr) {
    me->preempt_off.fetch_add(1, std::memory_order_relaxed);
  }
}

void enable_preemption() noexcept {
  Thread* const me = self();
  if (me == nullptr) {
    return;
  }
  check((me->preempt_off.fetch_sub(1, std::memory_order_relaxed) & ~kPreemptBits) != 0,
        "enable_preemption() undoes a disable_preemption()");
  // In the runtime it gives way on the way out.
  if (me->in_user.load(std::memory_order_relaxed) &&
      !me->is_taken.load(std::memory_order_relaxed) && enter_runtime(*me)) {
    leave_runtime(*me);
  }
}

void set_preemption(Thread& thread, Preemption preemption) noexcept {
  if ((preempt_bits(preemption) & kPreemptModeBits) != 0) {
    thread.team->state()->has_own_preemption.store(true, std::memory_order_relaxed);
  }
  // Relaxed: the handler on its kernel thread, or the thread itself, sees it sooner or later. In
  // one step: between two it would be as its team.
  std::uint32_t old = thread.preempt_off.load(std::memory_order_relaxed);
  const std::uint32_t bits = preempt_bits(preemption);
  while (!thread.preempt_off.compare_exchange_weak(
      old, (old & ~(kPreemptForbidden | kPreemptModeBits)) | bits, std::memory_order_relaxed)) {
  }
}

void set_preemptible_around(Thread& thread, bool is_preemptible) noexcept {
  if (is_preemptible) {
    thread.preempt_off.fetch_and(~kPreemptForbiddenAround, std::memory_order_relaxed);
  } else {
    thread.preempt_off.fetch_or(kPreemptForbiddenAround, std::memory_order_relaxed);
  }
}

Preemption preemption_of(const Thread& thread) noexcept {
  const std::uint32_t bits = thread.preempt_off.load(std::memory_order_relaxed);
  return (bits & kPreemptForbiddenBits) != 0   ? Preemption::none
         : (bits & kPreemptSlice) != 0         ? Preemption::slice
         : (bits & kPreemptCommunication) != 0 ? Preemption::communication
                                               : Preemption::as_team;
}

void call_after_exit(void (*function)(void*), void* argument) noexcept {
  Thread* const me = self();
  check(me != nullptr, "call_after_exit() is called on a user thread");
  me->after_exit = function;
  me->after_exit_argument = argument;
  me->end_flags = static_cast<std::uint8_t>(function != nullptr
                                                ? me->end_flags | EndFlag::after_exit
                                                : me->end_flags & ~unsigned{EndFlag::after_exit});
}

StackUse stack_use(const Thread& thread) noexcept {
  const auto* const descriptor = reinterpret_cast<const std::byte*>(&thread);
  const bool is_inside =
      descriptor >= thread.stack_base && descriptor < thread.stack_base + thread.stack_bytes;
  std::byte* const top =
      is_inside ? const_cast<std::byte*>(descriptor) : thread.stack_base + thread.stack_bytes;
  std::byte* const low = thread.stack_base + thread.guard_bytes;
  auto* at = static_cast<std::byte*>(
      std::atomic_ref{const_cast<Thread&>(thread).context.stack}.load(std::memory_order_relaxed));
  if (&thread == self()) {
    at = static_cast<std::byte*>(__builtin_frame_address(0));
  }
  const bool is_known = at >= low && at <= top;
  return {.base = low,
          .bytes = static_cast<std::size_t>(top - low),
          .used_bytes = is_known ? static_cast<std::size_t>(top - at) : 0};
}

}  // namespace sterna::threads
