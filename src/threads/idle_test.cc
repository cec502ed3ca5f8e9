// What a worker without work does with its processor: with spin_ns = 0 it looks once and sleeps.
// For how long who waits looks before that.
#include <atomic>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

/// Counts; nobody sleeps in it.
class CountingHook final : public IdleHook {
 public:
  std::uint32_t poll(SchedulingPoint point) noexcept override {
    polls += point == SchedulingPoint::idle ? 1 : 0;
    return 0;
  }
  bool sleep(std::uint64_t, const std::atomic<std::uint32_t>&, std::uint32_t) noexcept override {
    ++sleeps;
    return false;
  }
  void wake() noexcept override {}
  void yield_worker() noexcept override { ++yields; }
  std::uint64_t sleep_price_ns() const noexcept override { return price_ns; }

  std::atomic<int> polls{0};
  std::atomic<int> sleeps{0};
  std::atomic<int> yields{0};
  std::atomic<std::uint64_t> price_ns{0};
};

TEST(IdleTest, WithoutSpinningItLooksOnceBeforeEachSleep) {
  constexpr int kRounds = 50;
  CountingHook hook;
  {
    const TestTeam team{1, {.spin_ns = 0, .idle_hook = &hook}};
    for (int round = 0; round < kRounds; ++round) {
      const int before = hook.sleeps.load();
      team.run([] {});
      while (hook.sleeps.load() == before) {
        sleep_for(100'000);
      }
    }
  }
  // A look that finds a thread is no sleep's.
  EXPECT_LE(hook.polls.load(), hook.sleeps.load() + 2 * kRounds + 2);
}

TEST(IdleTest, BeforeEachSleepItYieldsOnce) {
  constexpr int kRounds = 50;
  CountingHook hook;
  {
    TestTeam team{1, {.spin_ns = 1, .idle_hook = &hook}};
    team->state()->cycles_per_ns *= 1e6;  // No yield lasts long enough to change that.
    const int yields = hook.yields;
    const int sleeps = hook.sleeps;
    for (int round = 0; round < kRounds; ++round) {
      const int before = hook.sleeps.load();
      team.run([] {});
      while (hook.sleeps.load() == before) {
        sleep_for(100'000);
      }
    }
    EXPECT_GE(hook.yields - yields, hook.sleeps - sleeps - 1) << "one may have begun before";
  }
}

constexpr std::uint64_t kDearNs = std::uint64_t{1} << 40;

TEST(IdleTest, WhereASleepIsDearItPollsForAsLong) {
  if (kIsThreadSanitized) {
    GTEST_SKIP() << "it changes what the workers that search read";
  }
  CountingHook hook;
  TestTeam team{1, {.spin_ns = 1, .idle_hook = &hook}};
  // Else a yield may last so long that it sleeps all the same.
  team->state()->cycles_per_ns *= 1e6;
  hook.price_ns = kDearNs;
  team.run([] {});
  const int sleeps = hook.sleeps;
  const int goal = hook.polls + 10'000;
  while (hook.polls < goal) {
    sleep_for(100'000);
  }
  EXPECT_LE(hook.sleeps, sleeps + 1) << "one that had begun";
  hook.price_ns = 0;
  while (hook.sleeps < sleeps + 2) {
    sleep_for(100'000);
  }
}

TEST(IdleTest, WhoGivesWayToOthersMeanwhileSleepsAllTheSame) {
  if (kIsThreadSanitized) {
    GTEST_SKIP() << "it changes what the workers that search read";
  }
  CountingHook hook;
  TestTeam team{1, {.spin_ns = 1, .idle_hook = &hook}};
  team->state()->cycles_per_ns *= 1e-5;  // As if each yield gave way to somebody.
  hook.price_ns = kDearNs;
  const int goal = hook.sleeps + 10;
  while (hook.sleeps < goal) {
    team.run([] {});
  }
}

/// Of a thread that waits for a unit with nobody beside it, while another worker computes: whether
/// it leaves its processor before `ns` are over.
bool stops_looking(TestTeam& team, std::uint64_t ns) {
  Semaphore semaphore;
  std::atomic<const Thread*> waiter{nullptr};
  bool has_left = false;
  auto wait = [&] {
    waiter.store(self());
    semaphore.acquire();
  };
  auto watch = [&] {
    while (waiter.load() == nullptr) {
    }
    const std::uint64_t end = now_ns() + ns;
    while (!has_left && now_ns() < end) {
      has_left = waiter.load()->activity.load(std::memory_order_relaxed) == Activity::blocked;
    }
    semaphore.release();
  };
  Thread* const watcher = team.go(watch, {.worker = 1, .bound = true});
  join(*team.go(wait, {.worker = 0, .bound = true}));
  join(*watcher);
  return has_left;
}

// The cycle counter of one processor is a hundred times as fast as that of another.
TEST(IdleTest, HowLongAWaiterLooksIsATimeAndNoNumberOfCycles) {
  if (kIsThreadSanitized) {
    GTEST_SKIP() << "it changes what the workers that search read";
  }
  TestTeam team{2, {.spin_ns = 10'000'000'000}};
  EXPECT_TRUE(stops_looking(team, 20'000'000'000));
  // As if it counted so much faster than it does: a microsecond is some seconds then.
  team->state()->cycles_per_ns *= 5e6;
  EXPECT_FALSE(stops_looking(team, 10'000'000));
}

}  // namespace
}  // namespace sterna::threads
