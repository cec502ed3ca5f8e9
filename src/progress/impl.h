// The state of a Progress. Internal to progress/.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <sys/syscall.h>

#include "base/cpu.h"
#include "base/spin_budget.h"
#include "base/spin_lock.h"
#include "base/syscall.h"
#include "progress/busy_sources.h"
#include "progress/company.h"
#include "progress/home.h"
#include "progress/one_caller.h"
#include "progress/progress.h"
#include "progress/retreat.h"
#include "progress/standby.h"

namespace sterna::progress {

/// One writer at a time (the poller): no read-modify-write.
inline void add_relaxed(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

struct Progress::Impl {
  // The poller's right: taken by a try-lock, waited for by who removes a source, sleeps, or looks
  // last.
  alignas(kCacheLineBytes) std::atomic<bool> is_polled{false};
  bool is_serial = false;            // See serve_one_caller().
  OneCaller* caller = nullptr;       // See give_way_for(). Constant from then on.
  std::vector<Source*> sources;      // Guard: is_polled.
  threads::SchedulingPoint point{};  // Of the last round. Guard: is_polled.
  BusySources busy;                  // Guard: is_polled.
  // Rounds since then after which somebody looked on. Guard: is_polled.
  std::uint32_t rounds_in_vain = 0;
  std::atomic<std::uint64_t> last_poll_ns{0};
  // Relaxed counters; written by the poller, but for declined.
  std::atomic<std::uint64_t> polls{0};
  std::atomic<std::uint64_t> declined{0};
  std::atomic<std::uint64_t> events{0};
  std::atomic<std::uint64_t> sleeps{0};
  std::atomic<std::uint64_t> ticks{0};
  std::atomic<std::uint64_t> polls_at_tick{~std::uint64_t{0}};  // Relaxed; whoever ticks.

  std::vector<Source*> prepared;  // For the sleep that is under way; guard: is_polled.

  // One sleeper in epoll. Kernel threads that wait meanwhile sleep on their own words, in this
  // list: the sleeper wakes one of them when it gets up, so that somebody sleeps for the network
  // again.
  alignas(kCacheLineBytes) std::atomic<bool> has_sleeper{false};
  Standby standby;  // Whether the worker that watches sleeps there at all.
  Retreat retreat;  // Whether callers look where workers do.
  WaitHabits habits;
  // Of waits that were not over after a few microseconds: for how many nanoseconds one polls, and
  // how often one yields.
  SpinBudget polling;
  SpinBudget yielding;
  HomeWatch home;                      // The one caller's, as the next one.
  Company company;
  // Of several callers, and of workers. Guard: beside_lock.
  HomeWatch beside{HomeWatch::kOfSeveral};
  HomeWatch workers{HomeWatch::kOfWorkers};
  SpinLock beside_lock;
  std::uint64_t price_ns = 0;          // As opened.
  std::uint64_t sleep_cost_ns = 0;     // Measured, smoothed. Guard: has_sleeper.
  std::atomic<std::uint64_t> naps{0};  // Relaxed: a counter.
  std::atomic<std::uint64_t> expected_until_ns{0};  // Relaxed: a guess. See expect_within().
  SpinLock aside_lock;
  std::vector<threads::KernelWaiter*> aside;  // Guard: aside_lock.
  // Sources that were added since the last round began, also by one of them.
  SpinLock added_lock;
  std::vector<Source*> added;          // Guard: added_lock.
  std::atomic<bool> has_added{false};  // Relaxed: who adds wakes a sleeper, who looks again.
  FileDescriptor epoll;
  FileDescriptor event;
  std::atomic<bool> has_rung{false};  // Relaxed: `event` was written to since hear() read it.

  /// Of a caller's wait: whom it waits for is on this processor.
  [[nodiscard]] bool has_company() const noexcept { return is_serial && company.is_here(); }

  bool try_take() noexcept {
    if (is_serial) {
      const bool is_free = !is_polled.load(std::memory_order_relaxed);
      is_polled.store(true, std::memory_order_relaxed);
      return is_free;
    }
    // A: acquires the state of the sources from the last poller.
    return !is_polled.load(std::memory_order_relaxed) &&
           !is_polled.exchange(true, std::memory_order_acquire);
  }
  void take() noexcept {
    while (!try_take()) {
      raw_system_call(SYS_sched_yield);
    }
  }
  /// Outside of a round, and of sleeps.
  void give_way() const noexcept {
    if (caller != nullptr) {
      caller->give_way();
    }
  }
  void give_back() noexcept { is_polled.store(false, std::memory_order_release); }  // A
  /// After rounds that had `something`. What was answered in place of one that sleeps needs its
  /// peer awake, as if the sleeper had answered: it sees no more of it. Who falls asleep says so
  /// before it takes the turn, and wakes the absent within it.
  void give_back_after(std::uint64_t something) noexcept {
    if (something != 0 && has_sleeper.load(std::memory_order_relaxed)) [[unlikely]] {
      (void)wake_absent(true);
    }
    give_back();
  }

  /// By the poller, outside of a round.
  void take_added() noexcept {
    if (has_added.load(std::memory_order_relaxed)) [[unlikely]] {
      const SpinGuard guard{added_lock};
      sources.insert(sources.end(), added.begin(), added.end());
      added.clear();
      has_added.store(false, std::memory_order_relaxed);
    }
  }
  std::uint32_t poll_all(threads::SchedulingPoint at) noexcept;
  std::uint32_t poll_if_seen(std::uint32_t looks) noexcept;
  /// By the poller, outside of a round.
  bool wake_absent(bool is_long) noexcept;
  bool prepare_all() noexcept;
  void end_all() noexcept;
  void wake_aside() noexcept;
  bool sleep_in_retreat(threads::KernelWaiter& waiter, std::uint64_t deadline_ns,
                        Retreat::Wait& wait) noexcept;
  void yield_and_part(HomeWatch& watch) noexcept;
  void learn_price(std::uint64_t cost_ns) noexcept;
  void wake_absent_beside(const std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept;
  void sleep_prepared(std::uint64_t deadline_ns, std::uint64_t begin_ns, bool is_worker) noexcept;
  [[nodiscard]] bool sleep_in_epoll(std::uint64_t deadline_ns, std::uint64_t now) noexcept;
};

}  // namespace sterna::progress
