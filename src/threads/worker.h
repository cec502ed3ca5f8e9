// A worker: one kernel thread and the user threads that are at home on it. Internal to threads/.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/spin_lock.h"
#include "memory/iso_space.h"
#include "threads/carriers/border.h"
#include "threads/carriers/carrier.h"
#include "threads/carriers/kernel_thread.h"
#include "threads/control/turn_meter.h"
#include "threads/life/exceptions.h"
#include "threads/preemption/crowd.h"
#include "threads/preemption/preempt.h"
#include "threads/preemption/ticker.h"
#include "threads/queues/biased_lock.h"
#include "threads/queues/run_queue.h"
#include "threads/queues/timers.h"
#include "threads/queues/worker_set.h"
#include "threads/seeds/seed_deque.h"
#include "threads/sync/key.h"
#include "threads/team.h"
#include "threads/thread.h"

namespace sterna::threads {

class TeamState;
class BlockingPool;

/// What the next context does for the one it comes from, right after the switch, with no lock held.
/// Must not switch.
using PostFunction = void (*)(Thread&, void*);

/// Of Worker::sleep_word.
namespace SleepState {
inline constexpr std::uint32_t kAwake = 0;
inline constexpr std::uint32_t kOnFutex = 1;
inline constexpr std::uint32_t kInHook = 2;
inline constexpr std::uint32_t kStandsBy = 3;  // Disabled; no sleeper that counts.
}  // namespace SleepState

inline constexpr std::uint32_t kSlotCacheMax = 1024;  // Of the smallest class; halves with each.

/// Free slots of one stack class. Owner: its worker.
struct SlotCache {
  // Came when there was no other such, and is not counted: who creates and joins in turn needs one,
  // and one store each.
  Thread* lone = nullptr;
  Thread* first = nullptr;
  std::uint32_t count = 0;

  /// Null: there is none.
  [[gnu::always_inline]] Thread* take() noexcept {
    Thread* thread = lone;
    if (thread != nullptr) {
      lone = nullptr;
      return thread;
    }
    thread = first;
    if (thread != nullptr) [[likely]] {
      first = thread->next;
      --count;
    }
    return thread;
  }
  /// False: there are enough.
  [[gnu::always_inline]] bool keep(Thread& thread) noexcept {
    if (lone == nullptr) {
      lone = &thread;
      return true;
    }
    if (count >= (kSlotCacheMax >> thread.stack_class)) [[unlikely]] {
      return false;
    }
    thread.next = first;
    first = &thread;
    ++count;
    return true;
  }
};

class alignas(kCacheLineBytes) Worker {
 public:
  Worker(TeamState& its_team, std::uint32_t its_index, bool is_asymmetric) noexcept;
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Takes the next thread; the idle context when there is none. Holds the lock.
  [[nodiscard, gnu::always_inline]] Thread& pick() noexcept {
    if (!inbox.looks_empty()) [[unlikely]] {
      if (Thread* const lone = inbox.take_lone(); lone != nullptr) {
        if (queue.would_be_next(*lone)) {
          return *lone;
        }
        queue.push_back(*lone);
      }
      inbox.drain_to(queue);
    }
    Thread* const next = queue.pop_front();
    return next != nullptr ? *next : *idle;
  }

  /// Once per switch that a thread asks for; every n-th time looks after timers and network.
  void count_switch() noexcept {
    // Relaxed, plain load and store: only this worker writes; thieves look whether it moves.
    const std::uint32_t left = countdown.load(std::memory_order_relaxed) - 1;
    countdown.store(left, std::memory_order_relaxed);
    if (left == 0) [[unlikely]] {
      slow_point();
    }
  }
  void slow_point() noexcept;

  /// One thread, or one period without work, on the stack of `here`, which carries the worker; at
  /// the end it may carry another one, or none.
  void turn(Carrier& here) noexcept;

  /// It sleeps in the runtime, perhaps for a lock that one of those holds who were preempted here:
  /// they go on for a while. By the ticker.
  void send_on_errands() noexcept;

  /// The team is stopped: its reserved carrier ends.
  void drop_reserve() noexcept;

  /// What depends on the kernel thread is that of `carrier` from now on. By who has the worker.
  void use(Carrier& carrier) noexcept;

  /// Ends its sleep. False: it did not sleep. From anywhere.
  bool wake() noexcept;

  /// It is disabled: what another one may run goes there. Whether something stays, which is bound
  /// here. From anywhere, without a lock.
  bool hand_over() noexcept;

  // First line: what a switch and the border read.
  Border border;
  // Of its carrier, as the next ones; written by use().
  ExceptionGlobals* exceptions = nullptr;
  int* error_number = nullptr;  // errno of its kernel thread.
  // Whom it runs, or the idle context. Relaxed: see hold() in control.cc.
  std::atomic<Thread*> current{nullptr};
  void* thread_pointer = nullptr;
  Thread* idle = nullptr;  // The context of the kernel thread itself.
  std::atomic<Carrier*> carrier{nullptr};
  Thread* resumed = nullptr;  // Kernel-bound: runs next. This worker only, in one turn.

  // The owner's. `lock` is held over a switch and given back on the next context.
  BiasedLock lock;
  RunQueue queue;               // Guard: lock.
  SeedDeque seeds;              // Its own guard.
  PostFunction post = nullptr;  // This worker only, as all below.
  Thread* post_thread = nullptr;
  void* post_argument = nullptr;
  Thread* hooked = nullptr;  // Goes on next, and has hooks to run: switch_hook.h.
  TeamState& team;
  const std::uint32_t index;
  std::atomic<std::uint32_t> countdown;
  TurnMeter meter;  // By who has the worker.
  // When wake_for_seeds() wakes again, how long it waits from then on, and how many were stolen.
  std::uint64_t seed_wake_at = 0;
  std::uint64_t seed_wake_ns = 0;
  std::int64_t seed_wake_taken = 0;
  // How many seeds it takes from another worker at once, and when it took some last.
  std::size_t seed_batch = 1;
  std::uint64_t seeds_stolen_at = 0;
  // The worker that was seen with a lone seed, since when, and how many it had lost by then.
  Worker* seed_victim = nullptr;
  std::uint64_t seed_since = 0;
  std::int64_t seed_taken = 0;
  // Looks in a row at seeds of others that were not for it, and when the last one was; whose it
  // looks at first.
  std::uint32_t seed_refusals = 0;
  std::uint32_t seed_first = index + 1;
  std::uint64_t seeds_refused_at = 0;
  // The number of the next thread that is born here, which says how many were: count_birth().
  // Written by this worker, read by anyone, as the next ones; relaxed: sums for reports.
  std::atomic<std::uint64_t> next_id;
  const std::uint64_t id_step;  // From one of them to the next: workers + 1.
  std::atomic<std::uint64_t> ended{0};
  std::atomic<std::uint64_t> busy_cycles{0};
  std::atomic<std::uint64_t> busy_begin{0};  // 0: idle.
  // Threads that it keeps for Dispatch, ready or not: kept.h. Relaxed: a hint for idle workers.
  std::atomic<std::uint32_t> kept_count{0};
  std::array<SlotCache, memory::kStackClassCount> slots;
  // Who was preempted, for the carrier that takes the worker over, and whether it is the next one.
  Thread* preempted = nullptr;
  bool is_preempted_next = false;
  // Its processor was taken away: disabled.cc. Written under TeamState::disable_lock; sequentially
  // consistent against its sleep, else relaxed: who sees it late runs one thread more there.
  std::atomic<bool> is_disabled{false};
  std::uint32_t declined_count = 0;        // Of the handlers on it: preempt.cc.
  std::uint32_t early_sleeps = 0;          // So often it does not poll for long: network.cc.
  std::atomic<Carrier*> reserve{nullptr};  // For its next preemption. The ticker fills it.

  Inbox inbox;  // Any thread pushes; who holds `lock` drains.
  // SleepState; see sleep.cc.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> sleep_word{0};
  // Cycle count until which its threads, which were woken together, are left to it as long as it
  // gets on with them: to fetch one costs more than to run some. Relaxed: a hint.
  std::atomic<std::uint64_t> left_alone_until{0};
  Timers timers;

 private:
  struct Search;

  void run_thread(Carrier& here, Thread& thread) noexcept;
  void settle(Carrier& here) noexcept;
  void resume_bound(Carrier& here) noexcept;
  void look_for_work() noexcept;
  void stand_by() noexcept;
  bool find_work(Search& search) noexcept;
  /// While queues are closed: polls, and whether the one thread that may run is here.
  bool find_passing() noexcept;
  /// Whether it may be in a queue: it is on no worker, as far as one sees.
  [[nodiscard]] bool may_passing_wait() const noexcept;
  bool try_steal(Search& search, bool is_last_look) noexcept;
  bool try_kept(Search& search, bool is_last_look) noexcept;
  /// What the victim keeps and has ready goes to Dispatch; how many. Holds no lock.
  std::uint32_t expose_kept(Worker& victim) noexcept;
  [[nodiscard]] Worker* find_seed() noexcept;
  [[nodiscard]] std::size_t next_seed_batch() noexcept;
  [[nodiscard]] std::uint64_t seed_pause() const noexcept;
  void note_refusal(const Worker& victim) noexcept;
  [[nodiscard]] std::size_t steal_seeds(Worker& victim, std::span<Seed*> taken) noexcept;
  bool take_seed() noexcept;
  bool germinate() noexcept;
  bool take_seeds_of(Worker& victim) noexcept;
  bool fetch() noexcept;
  std::uint32_t steal_from(Worker& victim) noexcept;
  void rest(Search& search) noexcept;
  void sleep(Search& search) noexcept;
  static constexpr std::uint32_t kEarlySleeps = 4;  // Before more of them it does not yield.
  void yield_before_sleep(IdleHook& hook) noexcept;
  void sleep_for_network(std::uint64_t deadline_ns, std::uint64_t watch_ns) noexcept;
  bool has_reason_to_stay(Search& search) noexcept;
};

struct KeyEntry {
  // Counts its creations and deletions: odd while it is used. Written under the lock of the keys,
  // read by the owners of values, who compare only: relaxed.
  std::atomic<std::uint32_t> generation{0};
  void (*destructor)(void*) = nullptr;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Worker, border) == 0, "border_of() finds it at the begin");
#pragma GCC diagnostic pop

/// What the workers of a team share. As a client of a ticker: polls while all of them compute.
class TeamState final : public TickClient {
 public:
  explicit TeamState(const TeamOptions& its_options) noexcept;
  ~TeamState();
  TeamState(const TeamState&) = delete;
  TeamState& operator=(const TeamState&) = delete;

  [[nodiscard]] std::uint64_t now_ns() noexcept {
    return options.clock != nullptr ? options.clock->now_ns() : sterna::now_ns();
  }
  void wake_idle(std::uint32_t first, std::uint32_t count) noexcept;
  /// The earliest timer of all workers.
  [[nodiscard]] std::uint64_t next_timer_ns() const noexcept;
  /// Ends the waits of all workers whose deadline has come; whether there were any.
  bool fire_timers() noexcept;
  /// It is stopped, and no thread needs its workers to get off its kernel thread.
  [[nodiscard]] bool is_over() const noexcept {
    // Relaxed: has_reason_to_stay() reads it once more.
    return is_stopped.load(std::memory_order_relaxed) &&
           bound_count.load(std::memory_order_acquire) == 0;
  }

  /// Its threads' policies get the ticks of workers that compute.
  [[nodiscard]] bool polls_dispatch() const noexcept {
    return options.take_over && options.dispatch != nullptr;
  }
  [[nodiscard]] bool polls_on_ticks() const noexcept {
    return options.take_over || (options.idle_hook != nullptr && options.tick_ns != 0);
  }
  /// The hook: no worker looks for work or sleeps; who does, polls or is woken by what comes. The
  /// dispatch: somebody computes.
  [[nodiscard]] bool wants_ticks() noexcept override;
  std::uint32_t tick(std::uint64_t now_ns) noexcept override;
  /// At a tick of the ticker that is not led: what that returns, by the share of processors that
  /// workers get and by whether anything comes to them. A message waits no longer for ticks than
  /// one interval after another one was found so.
  [[nodiscard]] std::uint32_t intervals_to_tick(std::uint64_t now_ns) noexcept;
  /// By the other ticker, at each of its ticks: the one that polls ticks, too, if it has something
  /// to do: a kernel thread that wakes costs who computes 10 us. True: a deadline has come.
  bool lead_polls() noexcept;
  [[nodiscard]] bool leaves_polls() const noexcept;

  TeamOptions options;  // Constant, as the next ones, after open.
  std::vector<std::uint32_t> processors;
  sigset_t signal_mask = {};  // Of who opened the team, and of its carriers.
  ProcessorMask opener_processors = {};
  std::vector<std::unique_ptr<Worker>> workers;
  Team* handle = nullptr;
  double ns_per_cycle = 1;
  std::uint64_t spin_cycles = 0;
  double cycles_per_ns = 1;

  /// Pauses are constants in nanoseconds: counters go at anything from 20 MHz (AArch64) to 4 GHz.
  [[nodiscard]] std::uint64_t to_cycles(std::uint64_t ns) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(ns) * cycles_per_ns);
  }

  /// A worker looks for work, awake, or does so no longer.
  void begin_search() noexcept {
    searcher_count.fetch_add(1, std::memory_order_relaxed);
    if (options.idle_hook != nullptr) {
      options.idle_hook->hand_over().begin_search();
    }
  }
  void end_search() noexcept {
    searcher_count.fetch_sub(1, std::memory_order_seq_cst);
    if (options.idle_hook != nullptr) {
      options.idle_hook->hand_over().end_search();
    }
  }

  /// Somebody has found work.
  void kick_tickers() noexcept {
    if (Ticker* const ticker = tickers[tickers[0] != nullptr ? 0 : 1].get(); ticker != nullptr) {
      ticker->kick();
    }
  }

  // One preempts, and so must wait for nobody who may be preempted; one polls, and may wait for
  // memory: it is led by the first, if there is that. Null: the team has no use for it. Constant
  // after open, as the next one.
  std::array<std::unique_ptr<Ticker>, 2> tickers;
  std::unique_ptr<Preemptor> preemptor;
  Crowd crowd{options.worker_count};      // Of the ticker that is not led.
  std::atomic<bool> is_talked_to{false};  // Polls at ticks have found something since its last.

  SpinLock carriers_lock;
  std::vector<std::unique_ptr<Carrier>> carriers;  // Guard: carriers_lock. First those of workers.
  // Ticks before spare ones are made again, since the system refused one; and how many those were.
  std::uint32_t spare_pause = 0;  // Guard: carriers_lock, as the next one.
  std::uint32_t spare_pause_next = 0;
  // 1: a spare one makes others. A futex. Set by the ticker, under carriers_lock; taken back by it.
  std::atomic<std::uint32_t> is_making{0};
  // Threads that are bound to a carrier or were taken from their worker: the workers of a stopped
  // team go on for them.
  std::atomic<std::uint32_t> bound_count{0};

  // Workers that sleep, and those that are awake and look for work: hints for wakers. A searcher
  // that has found something, and computes, is the protocol of ticker.cc (3).
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> sleeper_count{0};
  std::atomic<std::uint32_t> searcher_count{0};
  // Cycle count until which the last searcher does not sleep. Relaxed: a hint.
  std::atomic<std::uint64_t> stay_awake_until{0};
  std::atomic<bool> has_watcher{false};  // Taken by the worker that sleeps for all.
  std::atomic<bool> is_stopped{false};
  std::atomic<bool> has_own_preemption{false};  // Some thread has had a mode of its own. Relaxed.
  std::atomic<bool> is_run_by_caller{false};
  std::atomic<std::uint32_t> next_worker{0};  // For threads that start from outside.
  std::atomic<std::uint64_t> foreign_born{0};
  std::atomic<std::uint64_t> foreign_ended{0};

  SpinLock closed_lock;
  // hold_all(): queues are, or are about to be, closed to all but `passing` (null: to all). Written
  // under closed_lock; relaxed: hints, the queues themselves decide.
  std::atomic<bool> is_closed{false};
  std::atomic<Thread*> passing{nullptr};

  SpinLock disable_lock;
  std::uint32_t disabled_count = 0;  // Guard: disable_lock.

  SpinLock sets_lock;
  std::vector<std::unique_ptr<const WorkerSet>> sets;  // Guard: sets_lock. Each that threads had.

  SpinLock slots_lock;
  Thread* first_slot = nullptr;  // Guard: slots_lock. All descriptors of spawned threads, used or
                                 // kept for the next ones, by Thread::slot_next; roster.h.

  SpinLock keys_lock;
  std::array<KeyEntry, kKeyCountMax> keys;  // Guard: keys_lock.

  SpinLock blocking_lock;
  std::unique_ptr<BlockingPool> blocking;  // Made at first use; guard: blocking_lock.

  // Cycle count until which threads that somebody has looked at are accounted: measure.h. Relaxed.
  std::atomic<std::uint64_t> measured_until{0};
};

/// The calling kernel thread is (or, with null, is no longer) this carrier.
void set_this_carrier(Carrier* carrier) noexcept;

}  // namespace sterna::threads
