// Stopping all threads of a team but one: the queue of each worker is closed, so that whoever
// leaves a processor, wakes, is born or comes back from the kernel stays there (run_queue.h).
//
// When has a thread stopped? As in control.cc: a worker takes its next thread and changes
// Worker::current inside one section of its biased lock, and close() is one too. A section before
// it says in `current` whom it has chosen; later ones choose nobody but `passing`. So once
// `current` is the idle context it stays so. Threads without a worker (Carrier::taken) are looked
// at last: they were marked before their worker went on without them.
//
// Workers without work poll and sleep as ever (sleep.cc), so the network goes on.
#include "threads/control/control.h"

#include <algorithm>

#include "threads/queues/lock_of.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kLookNs = 50'000;

/// Whether a user thread other than `me` is on it.
bool is_occupied(const Worker& worker, const Thread* me) noexcept {
  const Carrier* const carrier = worker.carrier.load(std::memory_order_acquire);
  // Acquire: what it did before it left the processor is seen (released by the lock it held).
  const Thread* const current = worker.current.load(std::memory_order_acquire);
  // While the worker changes its carrier we may see the idle context of the other: looked at again.
  return current != nullptr && current != me && carrier != nullptr && current != &carrier->idle;
}

bool has_stopped(TeamState& team, const Thread* me) noexcept {
  for (const auto& worker : team.workers) {
    if (is_occupied(*worker, me)) {
      return false;
    }
  }
  const SpinGuard guard{team.carriers_lock};
  for (const auto& carrier : team.carriers) {
    const Thread* const taken = carrier->taken.load(std::memory_order_acquire);
    if (taken != nullptr && taken != me) {
      return false;
    }
  }
  return true;
}

}  // namespace

HoldAll hold_all(Team& team, std::uint64_t deadline_ns) noexcept {
  TeamState& state = *team.state();
  Thread* const me = self();
  {
    const SpinGuard guard{state.closed_lock};
    if (state.is_closed.load(std::memory_order_relaxed)) {
      return HoldAll::held_already;
    }
    state.passing.store(me, std::memory_order_relaxed);
    state.is_closed.store(true, std::memory_order_relaxed);
    for (const auto& worker : state.workers) {
      with_lock_of(*worker, [&]() noexcept { worker->queue.close(me); });
    }
  }
  if (me != nullptr) {
    me->end_flags |= EndFlag::belongings;  // Its end takes the order back.
  }
  while (!has_stopped(state, me)) {
    if (state.now_ns() >= deadline_ns) {
      return HoldAll::timed_out;
    }
    sleep_for(kLookNs);
  }
  return HoldAll::held;
}

bool unhold_all(Team& team) noexcept {
  TeamState& state = *team.state();
  {
    const SpinGuard guard{state.closed_lock};
    if (!state.is_closed.load(std::memory_order_relaxed)) {
      return false;
    }
    for (const auto& worker : state.workers) {
      with_lock_of(*worker, [&]() noexcept { worker->queue.open(); });
    }
    state.passing.store(nullptr, std::memory_order_relaxed);
    state.is_closed.store(false, std::memory_order_seq_cst);
  }
  // As a push into an inbox: who goes to sleep has seen that its queue is open, or is woken.
  for (const auto& worker : state.workers) {
    (void)worker->wake();
  }
  return true;
}

/// That it runs is seen without a look at the thread itself, which may have ended.
bool Worker::may_passing_wait() const noexcept {
  const Thread* const passing = team.passing.load(std::memory_order_relaxed);
  return passing != nullptr && std::ranges::none_of(team.workers, [&](const auto& worker) {
           return worker->current.load(std::memory_order_relaxed) == passing;
         });
}

bool Worker::find_passing() noexcept {
  if (timers.next_ns() != kNever) {
    timers.fire(team.now_ns());
  }
  if (IdleHook* const hook = team.options.idle_hook; hook != nullptr) {
    (void)hook->poll(SchedulingPoint::idle);
  }
  lock.lock();
  inbox.drain_to(queue);
  Dispatch* const dispatch = team.options.dispatch;
  // Perhaps it waits there; what others wait, waits here as well. But not for nothing: one that is
  // taken early would run before a more urgent one that comes while all are stopped.
  const bool may_be_there = dispatch != nullptr && may_passing_wait();
  Thread* const found = may_be_there ? dispatch->next(*this, nullptr) : nullptr;
  if (found != nullptr) {
    queue.push_back(*found);
  }
  const bool has_thread = !queue.empty();
  lock.unlock();
  return has_thread || found != nullptr;
}

}  // namespace sterna::threads
