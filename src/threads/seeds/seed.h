// Seeds: threads that become threads only when somebody runs them. ("Lazy task creation", Mohr,
// Kranz, Halstead, 1991; marcel's seeds.)
//
// plant() is a spawn() that costs some ns: the seed lies in the planter's frame and in the deque of
// its worker. The planter joins it, usually before anybody has looked at it: then it runs inline,
// as a call on the planter's stack and as part of the planter (self(), keys, priority,
// cancellation). An idle worker that was faster has made it a thread of default options, as has the
// planter's own worker when that has nothing else to run. So a seed may wait for whatever a thread
// may wait for, but not for what its planter does after the join.
//
// A planter with an entity (a bubble's thread) plants as cheaply. Its seed is no entity, so no
// policy knows of it, until it becomes a thread: then it is one beside its planter, in the same
// holder, and waits where that sends it. Who makes one of it is an idle worker that the plan lets
// run it, or that the policy might give it (Dispatch::reach). Where a plan looks at every thread
// that is ready, the seed is a thread from the start (Dispatch::takes_seeds).
//
// The planter joins, withdraws, or ends: seeds that it has not joined by then are joined at its
// end. A seed stays where it is from plant() to its join.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#include "threads/scheduler.h"
#include "threads/seeds/seed_deque.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {

/// How much stack is left to a seed that runs inline; with less it becomes a thread instead.
inline constexpr std::size_t kSeedStackBytes = 32 * 1024 * kStackFactor;

/// What the thread of a seed has: seeds recur more deeply than other threads.
inline constexpr std::size_t kSeedThreadStackBytes = 240 * 1024;

struct Seed {
  /// Values of `state` that are no Waiter (whose bit 0 is clear).
  static constexpr std::uintptr_t kPlanted = 0;    // Waits, or runs as a thread.
  static constexpr std::uintptr_t kEnded = 1;      // As a thread.
  static constexpr std::uintptr_t kCancelled = 3;  // The same, by cancel().
  static constexpr std::uintptr_t kJoined = 5;     // Or being run inline, or withdrawn.
  static constexpr std::uintptr_t kWithheld = 7;   // In no deque: runs at its join.

  // What has no value here is given one by plant(), for each of many: of one that was never planted
  // nobody reads it.
  Entry function;
  void* argument;
  // Whoever runs it as a thread: its end, after which the seed is the joiner's alone (A); the
  // joiner: who waits (B).
  std::atomic<std::uintptr_t> state{kJoined};
  Seed* outer;     // Planted before, and not joined. The planter's, as the next one.
  Thread* thread;  // It has been one from the start: its planter or its options want it.
  // Who planted it, if that has an entity and it lies in a deque. Constant there: a thief reads it.
  Thread* planter;
};

// The parts that are not inline.
void plant_thread(Seed& seed, const ThreadOptions& options) noexcept;
/// By a thread with an entity.
void plant_placed(Thread& me, Seed& seed) noexcept;
void wake_for_seeds(Worker& worker) noexcept;
JoinOutcome join_slow(Seed& seed) noexcept;
/// Joins what the ending thread has not joined.
void join_seeds(Thread& me) noexcept;
/// Makes a thread of a seed that was taken out of its deque; `thread` from make_thread() with
/// kSeedThreadOptions. False: there is no memory, and nothing has happened.
[[nodiscard]] bool start_seed(TeamState& team, Thread& thread, Seed& seed) noexcept;
inline constexpr ThreadOptions kSeedThreadOptions{
    .stack_bytes = kSeedThreadStackBytes, .detached = true, .may_wait = false};
/// The thread of a seed has ended and left its stack: `argument` is the seed's.
void finish_seed(void* seed, bool is_cancelled) noexcept;

/// self(), for which the compiler calls once for all plants and joins of a function: a frame never
/// changes its thread.
[[nodiscard, gnu::const]] Thread* thread_of_frame() noexcept;

/// What every seed of `me`, which calls, begins with.
[[gnu::always_inline]] inline void init_seed(const Thread& me, Seed& seed, Entry function,
                                             void* argument) noexcept {
  seed.function = function;
  seed.argument = argument;
  seed.state.store(Seed::kPlanted, std::memory_order_relaxed);
  seed.thread = nullptr;
  seed.planter = nullptr;
  seed.outer = me.seeds;
}

/// `function(argument)` runs at the join, or before as a thread. It must not throw (Branch may).
/// On a user thread. Does not fail: what cannot be a thread for lack of memory waits for the join.
/// Does not switch.
[[gnu::always_inline]] inline void plant(Seed& seed, Entry function, void* argument) noexcept {
  Thread* const me = thread_of_frame();
  check(me != nullptr, "plant() is called on a user thread");
  init_seed(*me, seed, function, argument);
  me->seeds = &seed;
  if ((me->flags & ThreadFlag::placed) != 0) [[unlikely]] {
    plant_placed(*me, seed);
    return;
  }
  Worker& worker = *me->worker.load(std::memory_order_relaxed);
  if (!worker.seeds.push(seed)) [[unlikely]] {
    plant_thread(seed, {});
  } else if (worker.team.sleeper_count.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    wake_for_seeds(worker);
  }
}

/// The same with options. Those that an inline run cannot have (all but a stack of at most
/// kSeedStackBytes) make it a thread at once; `detached`, `owner` and `entity` are not used.
void plant(Seed& seed, const ThreadOptions& options, Entry function, void* argument) noexcept;

/// Whether `me`, which calls, may run `seed` as a call: it has planted it last, and has stack
/// enough in the frame of the caller.
[[nodiscard, gnu::always_inline]] inline bool may_run_inline(const Thread& me,
                                                             const Seed& seed) noexcept {
  return me.seeds == &seed &&
         reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) > me.seed_floor;
}

/// `seed` was taken out of the deque by `me`, which planted it: it counts as joined, and `me` runs
/// it.
[[gnu::always_inline]] inline void unlink_newest(Thread& me, Seed& seed) noexcept {
  me.seeds = seed.outer;
  seed.state.store(Seed::kJoined, std::memory_order_relaxed);
}

/// The end of the seed; nothing remains of it. For its planter, once (check; try_join says it
/// instead). No cancellation point, since the seed lies in a frame of the caller: an order counts
/// from the next one. Switches.
[[nodiscard, gnu::always_inline]] inline JoinOutcome try_join(Seed& seed) noexcept {
  Thread* const me = thread_of_frame();
  if (me != nullptr && may_run_inline(*me, seed) &&
      me->worker.load(std::memory_order_relaxed)->seeds.pop(seed)) [[likely]] {
    unlink_newest(*me, seed);
    seed.function(seed.argument);
    return JoinOutcome::ended;
  }
  return join_slow(seed);
}
[[gnu::always_inline]] inline void join(Seed& seed) noexcept {
  const JoinOutcome outcome = try_join(seed);
  check(outcome == JoinOutcome::ended || outcome == JoinOutcome::cancelled,
        "a seed is joined once, by the thread that planted it");
}

/// Takes the seed back if nobody has begun it: true, and it counts as joined without having run.
/// False: it must be joined. For its planter (check). Does not switch.
[[nodiscard]] bool withdraw(Seed& seed) noexcept;
/// The caller has planted it, and not joined it.
[[nodiscard]] bool is_planter(const Seed& seed) noexcept;

/// A callable as a seed. What it throws is thrown again by join(). Not to be moved; lies in a frame
/// of its planter.
template <typename Function>
class Branch {
 public:
  [[gnu::always_inline]] explicit Branch(Function function) : function_{std::move(function)} {
    plant(seed_, run, this);
  }
  /// Joins if need be; an exception is dropped then.
  [[gnu::always_inline]] ~Branch() {
    if (!is_joined_) {
      threads::join(seed_);
    }
  }
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  /// Once. Switches.
  [[gnu::always_inline]] void join() {
    is_joined_ = true;
    threads::join(seed_);
    if (error_ != nullptr) [[unlikely]] {
      std::rethrow_exception(std::move(error_));
    }
  }

 private:
  static void run(void* branch) {
    auto& its = *static_cast<Branch*>(branch);
    try {
      its.function_();
    } catch (...) {
      its.error_ = std::current_exception();
    }
  }

  Function function_;
  Seed seed_;
  std::exception_ptr error_;
  bool is_joined_ = false;
};

}  // namespace sterna::threads
