// See tasklet.h.
#include "threads/tasklets/tasklet.h"

#include "threads/carriers/border.h"
#include "threads/control/cancel.h"
#include "threads/control/control.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

// Those who wait for the end of some tasklet's call. Not in the tasklet: its memory may go as soon
// as its carrier has taken its bits back. Who waits counts itself, then looks at the word; the
// carrier changes the word, then looks at the count: in the one order of these four either the
// waiter sees the change, or the carrier sees the waiter, and passes through the mutex.
constinit Mutex end_mutex;
constinit Condition has_ended;
constinit std::atomic<std::uint32_t> waiter_count{0};

void tell_waiters() noexcept {
  if (waiter_count.load(std::memory_order_seq_cst) != 0) {
    const Uncancellable uncancellable{self()};
    const MutexGuard guard{end_mutex};
    has_ended.broadcast();
  }
}

/// It was asked for elsewhere than the call before.
void follow(const Thread& me, tasklet::Place place) noexcept {
  const bool is_bound = (me.flags & ThreadFlag::bound) != 0;
  if (place.count != 0 &&
      !(is_bound && me.worker_first == place.first && me.worker_count == place.count)) {
    stay_on(place.first, place.count);
  }
}

}  // namespace

template <typename Transition>
tasklet::Step Tasklet::change(Transition transition) noexcept {
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    const tasklet::Step step = transition(word);
    // Also where the word stays: who is coalesced releases, too.
    if (word_.compare_exchange_weak(word, step.word, std::memory_order_seq_cst,
                                    std::memory_order_relaxed)) {
      return step;
    }
  }
}

Result<> Tasklet::carry(Team& team) noexcept {
  const tasklet::Place place = tasklet::place_of(word_.load(std::memory_order_relaxed));
  ThreadOptions options;
  options.name = "tasklet";
  options.priority = options_.priority;
  options.preemption = options_.preemptible ? Preemption::as_team : Preemption::none;
  options.is_user_code = options_.is_user_code;
  options.detached = true;
  if (place.count != 0) {
    options.worker = place.first;
    options.worker_count = place.count;
    options.bound = true;
  }
  if (Result<Thread*> started = team.spawn(options, run, this); !started) {
    (void)change([](std::uint64_t word) {
      return tasklet::Step{word & ~(tasklet::kScheduled | tasklet::kCarried), false};
    });
    tell_waiters();
    return started.error();
  }
  return Done{};
}

Result<Tasklet::Asked> Tasklet::schedule(Team& team, tasklet::Place place) noexcept {
  bool was_scheduled = false;
  const tasklet::Step step = change([&](std::uint64_t word) {
    was_scheduled = (word & tasklet::kScheduled) != 0;
    return tasklet::schedule(word, place);
  });
  if (step.acts) {
    if (Result<> carried = carry(team); !carried) {
      return carried.error();
    }
  }
  return was_scheduled ? Asked::coalesced : Asked::scheduled;
}

/// The thread of a carrier, and its own cleanup: a function that ends its thread ends its call
/// only.
void Tasklet::run(void* its) noexcept {
  auto& tasklet = *static_cast<Tasklet*>(its);
  Thread& me = *self();
  const RuntimeEntry entry{&me};
  const bool is_user_code = (me.flags & ThreadFlag::user_code) != 0;
  tasklet.carrier_.store(&me, std::memory_order_relaxed);
  for (;;) {
    const tasklet::Step step = tasklet.change(tasklet::next_call);
    tell_waiters();  // Of the end of a call. If that was the last, the tasklet may be gone.
    if (!step.acts) {
      return;
    }
    follow(me, tasklet::place_of(step.word));
    Cleanup cleanup{.function = run, .argument = its};
    push_cleanup(cleanup);
    if (is_user_code) {
      leave_runtime(me);
    }
    tasklet.options_.function(tasklet.options_.argument);
    if (is_user_code) {
      (void)enter_runtime(me);
    }
    drop_cleanup(cleanup);
  }
}

bool Tasklet::is_caller() const noexcept {
  const Thread* const me = self();
  return me != nullptr && carrier_.load(std::memory_order_relaxed) == me &&
         (word_.load(std::memory_order_relaxed) & tasklet::kInside) != 0;
}

/// Until none of those bits is set.
void Tasklet::await(std::uint64_t bits) noexcept {
  if ((word_.load(std::memory_order_seq_cst) & bits) == 0) {
    return;
  }
  const Uncancellable uncancellable{self()};  // Its end would leave the mutex locked.
  waiter_count.fetch_add(1, std::memory_order_seq_cst);
  {
    const MutexGuard guard{end_mutex};
    while ((word_.load(std::memory_order_seq_cst) & bits) != 0) {
      has_ended.wait(end_mutex);
    }
  }
  waiter_count.fetch_sub(1, std::memory_order_seq_cst);
}

bool Tasklet::disable() noexcept {
  if (change(tasklet::disable).acts) {
    return false;
  }
  if (!is_caller()) {
    await(tasklet::kInside);
  }
  return true;
}

Result<bool> Tasklet::enable(Team& team) noexcept {
  bool was_disabled = false;
  const tasklet::Step step = change([&](std::uint64_t word) {
    was_disabled = tasklet::is_disabled(word);
    return was_disabled ? tasklet::enable(word) : tasklet::Step{word, false};
  });
  if (step.acts) {
    if (Result<> carried = carry(team); !carried) {
      return carried.error();
    }
  }
  return was_disabled;
}

bool Tasklet::cancel() noexcept {
  if (is_caller()) {
    return false;
  }
  (void)change([](std::uint64_t word) {
    return tasklet::Step{word & ~tasklet::kScheduled, false};
  });
  await(tasklet::kCarried);
  return true;
}

}  // namespace sterna::threads
