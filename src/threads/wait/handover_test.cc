// A thread goes on at another worker.
#include "threads/wait/handover.h"

#include <atomic>
#include <vector>

#include "threads/scheduler.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

Worker& worker_of(TestTeam& team, std::uint32_t index) {
  return *team->state()->workers[index];
}

TEST(Handover, ThreadGoesToTheWorkerThatItNames) {
  TestTeam team{3};
  team.run([&] {
    for (std::uint32_t i = 0; i < 300; ++i) {
      (void)go_to(worker_of(team, i % 3));
      // An idle one may have taken it back; the next switch is not before that.
      EXPECT_LT(self()->worker.load()->index, 3U);
    }
  });
}

TEST(Handover, WhoIsBoundStays) {
  TestTeam team{2};
  ThreadOptions options;
  options.worker = 1;
  options.bound = true;
  auto function = [&] {
    EXPECT_FALSE(go_to(worker_of(team, 0)));
    EXPECT_EQ(self()->worker.load()->index, 1U);
  };
  join(*team.go(function, options));
}

TEST(Handover, WhoIsThereStays) {
  TestTeam team{1};
  team.run([&] { EXPECT_FALSE(go_to(worker_of(team, 0))); });
}

TEST(Handover, NobodyIsLostWhileManyGoAndWakeEachOther) {
  constexpr int kRounds = kSanitizedTests ? 300 : 5000;
  TestTeam team{4};
  Semaphore ball[2] = {Semaphore{1}, Semaphore{0}};
  std::atomic<int> number{0};
  std::atomic<int> passes{0};
  auto play = [&] {
    const auto mine = static_cast<std::size_t>(number.fetch_add(1));
    for (int i = 0; i < kRounds; ++i) {
      ball[mine].acquire();
      ++passes;
      (void)go_to(worker_of(team, static_cast<std::uint32_t>(i * 7 + static_cast<int>(mine)) % 4));
      ball[1 - mine].release();
    }
  };
  auto wander = [&] {
    for (int i = 0; i < kRounds; ++i) {
      (void)go_to(worker_of(team, static_cast<std::uint32_t>(i) % 4));
    }
  };
  std::vector<Thread*> threads{team.go(play), team.go(play), team.go(wander), team.go(wander)};
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(passes.load(), 2 * kRounds);
}

}  // namespace
}  // namespace sterna::threads
