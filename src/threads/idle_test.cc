// What a worker without work does with its processor: with spin_ns = 0 it looks once and sleeps.
#include <atomic>

#include <gtest/gtest.h>

#include "threads/team_fixture.h"

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

}  // namespace
}  // namespace sterna::threads
