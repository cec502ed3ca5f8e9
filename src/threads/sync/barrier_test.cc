// The barrier: who goes on first, and crowds of all kinds of participants.
#include <atomic>
#include <vector>

#include "threads/sync/barrier.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

/// The order in which `count` threads of one worker, which arrive in the order of their numbers,
/// go on.
std::vector<int> order_of(int count) {
  const TestTeam team{1};
  Barrier barrier{static_cast<std::uint32_t>(count)};
  std::vector<int> order;
  int next = 0;
  auto function = [&] {
    const int number = next++;
    EXPECT_EQ(barrier.arrive_and_wait(), number == count - 1);
    order.push_back(number);
  };
  // All of them are there before the first one runs.
  team.run([&] {
    std::vector<Thread*> threads;
    for (int i = 0; i < count; ++i) {
      threads.push_back(team.go(function));
    }
    for (Thread* const thread : threads) {
      join(*thread);
    }
  });
  return order;
}

TEST(Barrier, LetsTheLastOfAFewGoOnAtOnce) {
  EXPECT_EQ(order_of(3), (std::vector<int>{2, 0, 1}));
}

TEST(Barrier, KeepsTheOrderOfACrowd) {
  const std::vector<int> order = order_of(70);
  ASSERT_EQ(order.size(), 70U);
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

// Threads of two workers, of three priorities, and a kernel thread, which are woken in all ways
// that there are, some of them between those that are linked already.
TEST(Barrier, LetsNobodyOfAMixedCrowdPassEarly) {
  constexpr int kRounds = 50;
  for (const int count : {5, 70}) {
    const TestTeam team{2};
    Barrier barrier{static_cast<std::uint32_t>(count) + 1};
    std::atomic<int> arrived{0};
    std::atomic<int> last{0};
    std::atomic<bool> is_early{false};
    auto function = [&] {
      for (int round = 1; round <= kRounds; ++round) {
        arrived.fetch_add(1);
        last.fetch_add(barrier.arrive_and_wait() ? 1 : 0);
        if (arrived.load() < round * (count + 1)) {
          is_early.store(true);
        }
        barrier.arrive_and_wait();
      }
    };
    std::vector<Thread*> threads;
    for (int i = 0; i < count; ++i) {
      ThreadOptions options;
      options.priority = static_cast<std::uint8_t>(kPriorityNormal + i % 4 / 3 - i % 5 / 4);
      options.bound = i % 3 != 0;
      options.worker = i % 3 != 0 ? static_cast<std::uint32_t>(i % 3 - 1) : kAnyWorker;
      threads.push_back(team.go(function, options));
    }
    function();
    for (Thread* const thread : threads) {
      join(*thread);
    }
    EXPECT_FALSE(is_early.load());
    EXPECT_EQ(last.load(), kRounds);
  }
}

}  // namespace
}  // namespace sterna::threads
