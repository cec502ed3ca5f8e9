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

  std::atomic<int> polls{0};
  std::atomic<int> sleeps{0};
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
