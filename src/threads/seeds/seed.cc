// Seeds that are not simply taken back by their planter: stolen ones, those that are threads from
// the start, those for which the stack is too small.
#include "threads/seeds/seed.h"

#include <algorithm>

#include "threads/control/cancel.h"
#include "threads/life/life.h"
#include "threads/preemption/preempt.h"
#include "threads/user_calls.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

// How long a planter leaves sleeping workers alone after it has woken one: longer and longer while
// nobody takes its seeds.
constexpr std::uint64_t kWakeNsMin = 12'000;
constexpr std::uint64_t kWakeNsMax = 1'200'000;

bool must_be_thread(const ThreadOptions& options) noexcept {
  return options.name != nullptr || options.stack_bytes > kSeedStackBytes ||
         options.worker != kAnyWorker || options.bound || options.priority != kPriorityNormal ||
         options.guard_bytes != 0 || options.cancellable || options.held || options.accounted ||
         options.preemption != Preemption::as_team;
}

/// Out of the planter's list. False: it is not there.
bool unlink_seed(Thread& me, Seed& seed) noexcept {
  for (Seed** link = &me.seeds; *link != nullptr; link = &(*link)->outer) {
    if (*link == &seed) {
      *link = seed.outer;
      return true;
    }
  }
  return false;
}

JoinOutcome run_inline(Seed& seed) noexcept {
  seed.state.store(Seed::kJoined, std::memory_order_relaxed);
  seed.function(seed.argument);
  return JoinOutcome::ended;
}

/// In no deque: nobody has begun it, nor will.
bool is_withheld(const Seed& seed) noexcept {
  return seed.state.load(std::memory_order_relaxed) == Seed::kWithheld;
}

/// Somebody runs it, or has run it, as a thread.
JoinOutcome await_seed(Thread& me, Seed& seed) noexcept {
  (void)suspend(me, [&]() noexcept {
    std::uintptr_t planted = Seed::kPlanted;
    return seed.state.compare_exchange_strong(planted, Waiter::suspended(me).bits(),
                                              std::memory_order_acq_rel,
                                              std::memory_order_acquire);  // B; A
  });
  // Acquire (A), for who was woken. The word has kEnded or kCancelled.
  const std::uintptr_t end = seed.state.load(std::memory_order_acquire);
  seed.state.store(Seed::kJoined, std::memory_order_relaxed);
  return end == Seed::kCancelled ? JoinOutcome::cancelled : JoinOutcome::ended;
}

JoinOutcome join_thread(Thread* me, Seed& seed) noexcept {
  void* const entity = seed.thread->entity;
  Dispatch* const dispatch = seed.thread->team->state()->options.dispatch;
  const Uncancellable uncancellable{me};
  const JoinOutcome outcome = try_join_until(*seed.thread, kNever);
  if (entity != nullptr) {
    dispatch->remove_sibling(entity);
  }
  seed.state.store(Seed::kJoined, std::memory_order_relaxed);
  return outcome;
}

/// Nobody could tell the thread from a new one.
bool is_as_new(const Thread& me) noexcept {
  return me.seeds == nullptr && me.end_flags == 0 && me.name[0] == '\0' && !me.is_cancellable &&
         me.wait_word.load(std::memory_order_relaxed) == 0 && me.keys == nullptr &&
         me.preempt_off.load(std::memory_order_relaxed) == 0 &&
         me.priority.load(std::memory_order_relaxed) == kPriorityNormal &&
         me.flags == (ThreadFlag::detached | ThreadFlag::seed);
}

/// The entry of a seed's thread. It goes on with the seeds that wait here, as a new thread would,
/// while no thread does.
void run_seed(void* seed) noexcept {
  const Seed* its = static_cast<Seed*>(seed);
  Thread& me = *self();
  for (;;) {
    its->function(its->argument);
    Worker& worker = *me.worker.load(std::memory_order_relaxed);
    if (!is_as_new(me) || worker.queue.count() != 0 || !worker.inbox.looks_empty() ||
        worker.team.is_closed.load(std::memory_order_relaxed)) {
      return;
    }
    Seed* const next = worker.seeds.pop_newest();
    if (next == nullptr) {
      return;
    }
    if (next->planter != nullptr) {  // Its place is in a bubble.
      check(worker.seeds.push(*next), "what was in the deque fits again");
      return;
    }
    finish_seed(me.argument, false);
    me.argument = next;  // Whose end is ours.
    its = next;
  }
}

/// The planter has gone to another worker since, as threads of a bubble often do: out of the deque
/// where it has left the seed, or to where a thief has carried it.
bool take_from_others(const Worker& here, const Seed& seed) noexcept {
  if (seed.planter == nullptr) {
    return false;
  }
  for (const auto& worker : here.team.workers) {
    if (worker.get() != &here && worker->seeds.count() > 0 && worker->seeds.take_out(seed)) {
      return true;
    }
  }
  return false;
}

/// There is not enough stack for an inline run.
bool is_deep(const Thread& me) noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) <= me.seed_floor;
}

/// The seed, which is in no deque, becomes a thread here. False: there is no memory.
bool become_thread(Thread& me, Seed& seed) noexcept {
  TeamState& team = *me.team->state();
  Worker* const here = worker_here(team);
  Result<Thread*> thread = make_thread(team, here, kSeedThreadOptions);
  if (!thread) {
    return false;
  }
  if (!start_seed(team, *thread.value(), seed)) {
    keep_slot(team, here, *thread.value());
    return false;
  }
  return true;
}

/// What a thread beside `planter` has of it.
bool is_preemptible_around(const Thread& planter) noexcept {
  return (planter.preempt_off.load(std::memory_order_relaxed) & kPreemptForbiddenAround) == 0;
}

/// Beside its planter, which waits for it at the latest at its own end.
bool start_beside_planter(TeamState& team, Thread& thread, Seed& seed) noexcept {
  Worker* const here = worker_here(team);
  Dispatch& dispatch = *team.options.dispatch;
  ThreadOptions options = kSeedThreadOptions;
  options.entity = dispatch.add_sibling(*seed.planter);
  if (options.entity == nullptr) {
    return false;
  }
  options.preemptible_around = is_preemptible_around(*seed.planter);
  init_thread(team, here, thread, options, run_seed, &seed);
  thread.flags |= ThreadFlag::seed;
  thread.worker.store(here, std::memory_order_relaxed);
  thread.activity.store(Activity::ready, std::memory_order_relaxed);
  dispatch.start_sibling(thread);
  return true;
}

}  // namespace

[[gnu::noinline]] Thread* thread_of_frame() noexcept { return self(); }

bool start_seed(TeamState& team, Thread& thread, Seed& seed) noexcept {
  if (seed.planter != nullptr) {
    return start_beside_planter(team, thread, seed);
  }
  Worker* const here = worker_here(team);
  init_thread(team, here, thread, kSeedThreadOptions, run_seed, &seed);
  thread.flags |= ThreadFlag::seed;
  start_thread(team, here, thread, kAnyWorker);
  return true;
}

void plant_placed(Thread& me, Seed& seed) noexcept {
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  seed.planter = &me;  // Before the push: a thief looks at it.
  if (!worker.team.options.dispatch->takes_seeds() || !worker.seeds.push(seed)) {
    seed.planter = nullptr;
    plant_thread(seed, {});
  } else if (worker.team.sleeper_count.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    wake_for_seeds(worker);
  }
}

void finish_seed(void* seed, bool is_cancelled) noexcept {
  // A: the joiner sees what the thread did. It is our last access, unless somebody waits.
  const std::uintptr_t waiter = static_cast<Seed*>(seed)->state.exchange(
      is_cancelled ? Seed::kCancelled : Seed::kEnded, std::memory_order_acq_rel);
  if (waiter != Seed::kPlanted) {
    Waiter::from_bits(waiter).signal();  // B
  }
}

void plant_thread(Seed& seed, const ThreadOptions& options) noexcept {
  Thread& me = *self();
  const bool is_placed = (me.flags & ThreadFlag::placed) != 0;
  Dispatch* const dispatch = me.team->state()->options.dispatch;
  ThreadOptions used = options;
  used.detached = false;
  used.owner = nullptr;
  used.entity = is_placed ? dispatch->add_sibling(me) : nullptr;
  used.preemptible_around = !is_placed || is_preemptible_around(me);
  if (!is_placed || used.entity != nullptr) {
    if (Result<Thread*> thread = me.team->spawn(used, seed.function, seed.argument); thread) {
      seed.thread = thread.value();
      return;
    }
  }
  if (used.entity != nullptr) {
    dispatch->remove_sibling(used.entity);
  }
  seed.state.store(Seed::kWithheld, std::memory_order_relaxed);
}

void plant(Seed& seed, const ThreadOptions& options, Entry function, void* argument) noexcept {
  if (!must_be_thread(options)) {
    plant(seed, function, argument);
    return;
  }
  Thread* const me = self();
  check(me != nullptr, "plant() is called on a user thread");
  init_seed(*me, seed, function, argument);
  me->seeds = &seed;
  plant_thread(seed, options);
}

void wake_for_seeds(Worker& worker) noexcept {
  const std::uint64_t now = cycles();
  if (now < worker.seed_wake_at) {
    return;
  }
  const std::int64_t taken = worker.seeds.taken_count();
  worker.seed_wake_ns = taken != worker.seed_wake_taken
                            ? kWakeNsMin
                            : std::clamp(2 * worker.seed_wake_ns, kWakeNsMin, kWakeNsMax);
  worker.seed_wake_taken = taken;
  worker.seed_wake_at = now + worker.team.to_cycles(worker.seed_wake_ns);
  const Thread& me = *self();
  if ((me.flags & ThreadFlag::placed) != 0) {
    worker.team.options.dispatch->wake_beside(me, worker.seeds.count() > 1);
  } else {
    worker.team.wake_idle(0, static_cast<std::uint32_t>(worker.team.workers.size()));
  }
}

void leave_planting(Thread& me) noexcept {
  if (me.in_user.load(std::memory_order_relaxed)) {
    leave_wished(me);
    return;
  }
  Worker& here = *me.worker.load(std::memory_order_relaxed);
  wake_for_seeds(here);
  leave_runtime(me, here);
}

JoinOutcome join_slow(Seed& seed) noexcept {
  Thread* const me = self();
  if (me == nullptr || !unlink_seed(*me, seed)) {
    return JoinOutcome::joined_already;
  }
  if (seed.thread != nullptr) {
    return join_thread(me, seed);
  }
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  if (is_withheld(seed)) {
    return run_inline(seed);
  }
  if (!worker.seeds.take_back(seed) && !take_from_others(worker, seed)) {
    return await_seed(*me, seed);
  }
  if (is_deep(*me) && become_thread(*me, seed)) {
    return await_seed(*me, seed);
  }
  return run_inline(seed);
}

bool is_planter(const Seed& seed) noexcept {
  const Thread* const me = self();
  const Seed* one = me != nullptr ? me->seeds : nullptr;
  while (one != nullptr && one != &seed) {
    one = one->outer;
  }
  return one != nullptr;
}

bool withdraw(Seed& seed) noexcept {
  check(is_planter(seed), "a seed is withdrawn by the thread that planted it, before its join");
  Thread& me = *self();
  Worker& worker = *me.worker.load(std::memory_order_relaxed);
  if (seed.thread != nullptr ||
      (!is_withheld(seed) && !worker.seeds.take_back(seed) && !take_from_others(worker, seed))) {
    return false;
  }
  (void)unlink_seed(me, seed);
  seed.state.store(Seed::kJoined, std::memory_order_relaxed);
  return true;
}

void join_seeds(Thread& me) noexcept {
  const Uncancellable uncancellable{&me};
  while (me.seeds != nullptr) {
    (void)try_join(*me.seeds);
  }
}

}  // namespace sterna::threads
