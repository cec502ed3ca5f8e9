// Stopping all threads of a team but one, and letting them go on.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "threads/carriers/border.h"
#include "threads/carriers/carrier.h"
#include "threads/control/control.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

class ClosedTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, ClosedTest, testing::Values(1, 2, 4));

/// Threads that count until it is over.
class Counters {
 public:
  explicit Counters(const TestTeam& team, std::size_t count) : counts_(count) {
    for (auto& one : counts_) {
      one.is_over = &is_over_;
      threads_.push_back(team.go(one));
    }
  }
  ~Counters() {
    is_over_ = true;
    for (Thread* const thread : threads_) {
      join(*thread);
    }
  }
  [[nodiscard]] long sum() const {
    long sum = 0;
    for (const auto& one : counts_) {
      sum += one.count.load();
    }
    return sum;
  }

 private:
  struct One {
    std::atomic<long> count{0};
    std::atomic<bool>* is_over = nullptr;
    void operator()() {
      while (!is_over->load()) {
        count.fetch_add(1);
        if (count.load() % 7 == 0) {
          sleep_for(1000);
        } else {
          yield();
        }
      }
    }
  };
  std::atomic<bool> is_over_{false};
  std::vector<One> counts_;
  std::vector<Thread*> threads_;
};

TEST_P(ClosedTest, NoThreadRunsUntilAllAreLetGo) {
  const Counters counters{team, 6};
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(hold_all(*team, kNever), HoldAll::held);
    const long before = counters.sum();
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    EXPECT_EQ(counters.sum(), before);
    EXPECT_TRUE(unhold_all(*team));
    while (counters.sum() == before) {
      std::this_thread::yield();
    }
  }
  EXPECT_FALSE(unhold_all(*team)) << "there is no order";
}

TEST_P(ClosedTest, TheCallerGoesOnAndMaySleepYieldAndWait) {
  const Counters counters{team, 6};
  auto stops = [&] {
    for (int round = 0; round < 10; ++round) {
      EXPECT_EQ(hold_all(*team, kNever), HoldAll::held);
      const long before = counters.sum();
      sleep_for(kMs / 10);
      for (int i = 0; i < 200; ++i) {
        yield();
      }
      EXPECT_FALSE(park_until(team->now_ns() + kMs / 10));
      EXPECT_EQ(counters.sum(), before);
      EXPECT_TRUE(unhold_all(*team));
      while (counters.sum() == before) {
        yield();
      }
    }
  };
  team.run(stops);
}

TEST_P(ClosedTest, ThreadsThatAreBornOrWokenMeanwhileWait) {
  Semaphore semaphore;
  std::atomic<int> done{0};
  auto waits = [&] {
    semaphore.acquire();
    ++done;
  };
  auto is_new = [&] { ++done; };
  Thread* const sleeper = team.go(waits);
  ASSERT_EQ(hold_all(*team, kNever), HoldAll::held);
  semaphore.release();
  Thread* const born = team.go(is_new);
  Thread* const urgent = team.go(is_new, {.priority = kPriorityRealTime});
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  EXPECT_EQ(done.load(), 0);
  EXPECT_EQ(hold_all(*team, kNever), HoldAll::held_already);
  EXPECT_TRUE(unhold_all(*team));
  for (Thread* const thread : {sleeper, born, urgent}) {
    join(*thread);
  }
  EXPECT_EQ(done.load(), 3);
}

TEST_P(ClosedTest, TheEndOfTheCallerLetsAllGo) {
  const Counters counters{team, 3};
  team.run([&] { EXPECT_EQ(hold_all(*team, kNever), HoldAll::held); });
  const long before = counters.sum();
  while (counters.sum() == before) {
    std::this_thread::yield();
  }
}

TEST_P(ClosedTest, OneThatComputesIsWaitedForUntilTheDeadline) {
  std::atomic<bool> is_over{false};
  std::atomic<int> turns{0};
  auto computes = [&] {
    turns = 1;
    while (!is_over.load()) {
    }
    yield();
    turns = 2;
  };
  Thread* const thread = team.go(computes);
  while (turns.load() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(hold_all(*team, team->now_ns() + kMs), HoldAll::timed_out);
  is_over = true;
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  EXPECT_EQ(turns.load(), 1) << "the order stands";
  EXPECT_TRUE(unhold_all(*team));
  join(*thread);
  EXPECT_EQ(turns.load(), 2);
}

TEST_P(ClosedTest, ThreadsThatEndOneAfterTheOtherStopToo) {
  std::atomic<long> ended{0};
  std::atomic<bool> is_over{false};
  auto ends = [&] { ++ended; };
  auto spawns = [&] {
    while (!is_over.load()) {
      Thread* threads[8];
      for (auto& thread : threads) {
        thread = team.go(ends);
      }
      for (Thread* const thread : threads) {
        join(*thread);
      }
    }
  };
  Thread* const spawner = team.go(spawns);
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(hold_all(*team, kNever), HoldAll::held);
    const long before = ended.load();
    sleep_for(kMs / 20);
    EXPECT_EQ(ended.load(), before);
    EXPECT_TRUE(unhold_all(*team));
    while (ended.load() == before) {
      std::this_thread::yield();
    }
  }
  is_over = true;
  join(*spawner);
}

TEST(Closed, PreemptionStopsOneThatComputes) {
  const TestTeam team{2, {.tick_ns = kMs, .preempt = PreemptMode::communication, .slice_ns = kMs}};
  std::atomic<bool> is_over{false};
  std::atomic<long> count{0};
  auto computes = [&] {
    while (!is_over.load()) {
      count.fetch_add(1);
    }
  };
  Thread* const thread = team.go(computes, {.is_user_code = true});
  while (count.load() == 0) {
    std::this_thread::yield();
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(hold_all(*team, kNever), HoldAll::held);
    const long before = count.load();
    sleep_for(3 * kMs);
    EXPECT_EQ(count.load(), before);
    EXPECT_TRUE(unhold_all(*team));
    while (count.load() == before) {
      std::this_thread::yield();
    }
  }
  is_over = true;
  join(*thread);
}

TEST(Closed, OneInACallThatBlocksStopsWhenItReturns) {
  const TestTeam team{1};
  std::atomic<int> step{0};
  auto blocks = [&] {
    EXPECT_TRUE(enter_blocking());
    step = 1;
    while (step.load() != 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    leave_blocking();
    step = 3;
  };
  Thread* const thread = team.go(blocks);
  while (step.load() != 1) {
    std::this_thread::yield();
  }
  EXPECT_EQ(hold_all(*team, team->now_ns() + kMs), HoldAll::timed_out) << "it may do anything";
  step = 2;
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  EXPECT_EQ(step.load(), 2);
  EXPECT_TRUE(unhold_all(*team));
  join(*thread);
  EXPECT_EQ(step.load(), 3);
}

}  // namespace
}  // namespace sterna::threads
