// Progression of communication: polls the sources at the scheduling points of threads, and sleeps
// in the kernel for all of them at once. Never a thread of its own. Works with a Team (it is the
// team's IdleHook) and, in process mode, without one: kernel threads poll while they wait on a
// Completion.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/annotate.h"
#include "base/result.h"
#include "base/spin_budget.h"
#include "base/spin_lock.h"
#include "base/syscall.h"
#include "progress/source.h"
#include "progress/wait_habits.h"
#include "threads/idle_hook.h"
#include "threads/waiter.h"

namespace sterna::progress {

struct ProgressOptions {
  // What a sleep and its end are taken to cost, and so the longest that a kernel thread polls
  // before it sleeps; how long it does is learnt from waits (base/spin_budget.h). 0: it sleeps at
  // once.
  std::uint64_t spin_ns = 20'000;
  // More waiting processes than processors: who waits yields between two looks, for at most as many
  // times as spin_ns has microseconds.
  bool is_oversubscribed = false;
  // Which of the processes of its host this is: see home.h. Not there where they are more than
  // processors.
  std::uint32_t host_index = 0;
  // At a switch, polls only if the last poll is older than this.
  std::uint64_t switch_budget_ns = 20'000;
  // A tick polls on for so long at most while events come.
  std::uint64_t tick_budget_ns = 500'000;
  Clock* clock = nullptr;  // Null: the monotonic clock. Outlives the object.
};

/// Relaxed counters, for reports and tests.
struct ProgressCounters {
  std::uint64_t polls = 0;     // Rounds over the sources.
  std::uint64_t declined = 0;  // Somebody else was polling.
  std::uint64_t ticks = 0;     // Turns taken by a tick.
  std::uint64_t events = 0;
  std::uint64_t sleeps = 0;
  std::uint64_t naps = 0;          // Waits of kernel threads that polled in vain, and slept.
  std::uint64_t polls_for_ns = 0;  // What kernel threads have learnt: so long...
  std::uint64_t yields_for = 0;    // ...or so many times, where processes outnumber processors.
  std::uint64_t expected_until_ns = 0;  // See expect_within().
};

class Completion;
class OneCaller;

class Progress final : public threads::IdleHook {
 public:
  static Result<std::unique_ptr<Progress>> open(const ProgressOptions& options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The source is polled from the next round on. From anywhere, also from inside a poll(): it
  /// waits for nobody.
  Result<> add(Source& source) noexcept;
  /// When it returns, no call to the source is under way and none will come. Not from inside a
  /// poll().
  void remove(Source& source) noexcept;

  /// True: from now on one kernel thread at a time calls this object, and to take the poller's turn
  /// costs no atomic exchange. By a thread that takes turns with all others, not from inside a
  /// poll().
  void serve_one_caller(bool is_one) noexcept;
  [[nodiscard]] bool serves_one_caller() const noexcept;
  /// From now on whoever calls is known to `caller`, which outlives this: it is given way to others
  /// before each round, and is not inside while it sleeps here. Before a second thread calls.
  void give_way_for(OneCaller& caller) noexcept;

  /// For its life nobody else polls, if it has the turn: for what a source's owner may do in place
  /// of a poll. Short, and nothing that waits or polls.
  class Turn {
   public:
    explicit Turn(Progress& progress) noexcept
        : progress_{progress}, is_taken_{progress.try_take_turn()} {}
    ~Turn() {
      if (is_taken_) {
        progress_.give_turn();
      }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    [[nodiscard]] bool is_taken() const noexcept { return is_taken_; }

   private:
    Progress& progress_;
    const bool is_taken_;
  };

  /// One round over the sources, by one caller at a time: the others return 0 at once. Does not
  /// switch.
  ///   idle, enter, forced: always;  switching: when the last round is older than the budget;
  ///   tick: when there was none since the tick before, and nobody sleeps here; then several, up to
  ///   another budget, while events come. One thread at a time ticks.
  std::uint32_t poll(threads::SchedulingPoint point) noexcept override;
  std::uint32_t poll() noexcept { return poll(threads::SchedulingPoint::forced); }
  /// One round, for which it waits until nobody else polls: 0 says that nothing was there.
  std::uint32_t poll_in_turn() noexcept;

  /// As poll(enter), for a thread that has nothing else to do: where the last event came from it
  /// looks for a moment longer. poll(idle) does the same.
  std::uint32_t poll_and_look() noexcept;

  /// Sleeps until an event of a source, wake(), or the deadline (monotonic clock); returns at once
  /// if a source has something, or if `word` is not `expected`. False, soon, while another
  /// kernel thread sleeps here.
  bool sleep(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
             std::uint32_t expected) noexcept override;
  [[nodiscard]] std::uint64_t absence_ns(const std::atomic<std::uint32_t>& word) noexcept override;
  void note_work() noexcept override;
  void yield_worker() noexcept override;
  /// By a kernel thread that goes on without a wait while something is to be done soon: a worker
  /// that stays away, since such threads used to wait, comes back. A load if none does.
  void call_worker() noexcept;

  /// Of the caller, user thread or kernel thread, where several call.
  [[nodiscard]] WaitHabits::Habit habit_of_caller() const noexcept {
    return has_habits_.load(std::memory_order_relaxed) ? find_habit() : WaitHabits::Habit{};
  }
  /// It has started something that gets on better if it waits now.
  void has_started() noexcept;
  /// The same, and somebody must get on with it if it does not: call_worker(), unless it has long
  /// been its habit to wait at once. Where that ends, the worker comes back by itself.
  void has_left_open() noexcept;

  /// Whom the one caller of a process waits for is on its processor: see company.h. Lives as long
  /// as this. For that caller only.
  [[nodiscard]] const bool& has_company() const noexcept;
  /// What came has become a thread of the workers. See retreat.h.
  void gave_work() noexcept;
  /// It begins to wait: of a user thread, whether its worker has nothing else to run. A load while
  /// nobody has started anything.
  void waits(bool is_alone) noexcept {
    if (has_habits_.load(std::memory_order_relaxed)) [[unlikely]] {
      learn_wait(is_alone);
    }
  }
  void wake() noexcept override;
  [[nodiscard]] std::uint64_t sleep_price_ns() const noexcept override;
  /// Nobody has polled since it was asked last, or since the last tick, and nobody sleeps here.
  [[nodiscard]] bool needs_tick() noexcept override;
  /// For sources, inside their poll(): who polls. A kernel thread that waits counts as idle.
  [[nodiscard]] threads::SchedulingPoint point() const noexcept;
  /// For sources: ends a sleep that began, or will begin, without what its prepare_sleep() would
  /// find now. Free when nobody sleeps.
  void wake_for_source() noexcept;

  /// A kernel thread polls for a short while, as long as a quick answer takes; whether the
  /// completion is done.
  [[nodiscard]] bool spin_until(const Completion& completion) noexcept;

  /// What somebody else does for us is under way, and is taken to end within so long: a kernel
  /// thread that waits polls until then, if it is a millisecond at most and its peers are awake. It
  /// need not be so. Several one after the other take as long as all of them. Any thread.
  void expect_within(std::uint64_t ns) noexcept;

  /// A kernel thread waits for a signal of `waiter`, which others know by now: polls, yields,
  /// sleeps. `waiter.hook` is this object. User threads never come here.
  threads::Wake await_signal(threads::KernelWaiter& waiter, std::uint64_t deadline_ns) noexcept;

  /// How many times who waits yields where processes outnumber processors, kernel threads and
  /// threads alike.
  [[nodiscard]] SpinBudget& yields() noexcept;

  /// Readable when there is something to poll for, as far as sources say so without
  /// prepare_sleep(). For who looks beside the callers of sleep().
  [[nodiscard]] int descriptor() const noexcept;
  /// By who waits for it, before a poll: whether after that it tells of everything (Source::hear).
  [[nodiscard]] bool hear() noexcept;

  /// The last round, for load reports and for callers that poll by time.
  [[nodiscard]] std::uint64_t last_poll_ns() const noexcept;
  [[nodiscard]] ProgressCounters counters() const noexcept;
  [[nodiscard]] const ProgressOptions& options() const noexcept { return options_; }

 private:
  struct Impl;
  explicit Progress(const ProgressOptions& options, std::unique_ptr<Impl> impl) noexcept;

  [[nodiscard]] bool try_take_turn() noexcept;
  void give_turn() noexcept;
  [[nodiscard]] std::uint64_t now_here() const noexcept;
  std::uint32_t poll_once(threads::SchedulingPoint point, std::uint32_t looks) noexcept;
  std::uint32_t poll_at_tick() noexcept;
  [[nodiscard]] bool wake_absent(bool is_long) noexcept;
  [[nodiscard]] WaitHabits::Habit find_habit() const noexcept;
  void learn_wait(bool is_alone) noexcept;
  void yield() noexcept;
  bool sleep_here(std::uint64_t deadline_ns, const std::atomic<std::uint32_t>& word,
                  std::uint32_t expected, bool is_worker) noexcept;
  void sleep_beside(threads::KernelWaiter& waiter, std::uint64_t deadline_ns) noexcept;

  const ProgressOptions options_;
  std::atomic<bool> has_habits_{false};  // Relaxed; stays set.
  std::unique_ptr<Impl> impl_;
};

}  // namespace sterna::progress
