// The time that threads and workers are charged with.
#include <atomic>
#include <chrono>
#include <thread>

#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

TEST(Accounting, TimeGrowsWhileTheThreadComputesOnly) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  std::atomic<bool> waits_soon{false};
  std::atomic<int> turns{0};
  auto computes = [&] {
    for (; !is_over.load(); ++turns) {
      const std::uint64_t end = now_ns() + 100'000;
      while (now_ns() < end) {
      }
      yield();
    }
  };
  auto waits = [&] {
    waits_soon = true;
    park();
  };
  Thread* const busy = team.go(computes, {.accounted = true});
  Thread* const idle = team.go(waits, {.accounted = true});
  while (!waits_soon) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto wait_for_turns = [&](int more) {
    for (const int before = turns; turns < before + more;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  wait_for_turns(2);  // The only worker has left the other one, which is parked.
  const std::uint64_t first = processor_ns(*busy);
  const std::uint64_t of_idle = processor_ns(*idle);
  wait_for_turns(20);  // Each has 100 us.
  EXPECT_GT(processor_ns(*busy), first + 1'000'000U);
  EXPECT_EQ(processor_ns(*idle), of_idle);
  EXPECT_GT(team->busy_ns(0), 1'000'000U);
  is_over.store(true);
  unpark(*idle);
  join(*busy);
  join(*idle);
}

}  // namespace
}  // namespace sterna::threads
