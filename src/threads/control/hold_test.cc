// Holding: threads that are ordered to stay off the processors, by others, by themselves, by each
// other.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "threads/control/cancel.h"
#include "threads/control/control.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class HoldTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, HoldTest, testing::Values(1, 2, 4));

TEST_P(HoldTest, HeldThreadsDoNotRunUntilTheyAreLetGo) {
  std::atomic<int> counts[4] = {};
  std::atomic<bool> is_over{false};
  struct Counter {
    std::atomic<int>* count;
    std::atomic<bool>* is_over;
    void operator()() const {
      while (!is_over->load()) {
        count->fetch_add(1);
        yield();
      }
    }
  };
  Counter counters[4];
  std::vector<Thread*> threads;
  for (int i = 0; i < 4; ++i) {
    counters[i] = {&counts[i], &is_over};
    threads.push_back(team.go(counters[i]));
  }
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(hold(threads, kNever));
    int seen[4];
    std::transform(counts, counts + 4, seen, [](const auto& count) { return count.load(); });
    team.run([] { sleep_for(1'000'000); });
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(counts[i].load(), seen[i]);
      unhold(*threads[static_cast<std::size_t>(i)]);
    }
    const int before = counts[0].load();
    while (counts[0].load() == before) {
      std::this_thread::yield();
    }
  }
  is_over = true;
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST_P(HoldTest, ThreadThatIsHeldWhileItWaitsGoesOnAfterBoth) {
  Semaphore semaphore;
  std::atomic<bool> has_gone_on{false};
  auto function = [&] {
    semaphore.acquire();
    has_gone_on = true;
  };
  Thread* const thread = team.go(function);
  Thread* const threads[] = {thread};
  ASSERT_TRUE(hold(threads, kNever));
  semaphore.release();
  team.run([] { sleep_for(2'000'000); });
  EXPECT_FALSE(has_gone_on);
  unhold(*thread);
  join(*thread);
  EXPECT_TRUE(has_gone_on);
}

TEST_P(HoldTest, ThreadHoldsItselfAndStartsHeld) {
  std::atomic<int> steps{0};
  auto function = [&] {
    ++steps;
    Thread* const threads[] = {self()};
    EXPECT_TRUE(hold(threads, kNever));
    ++steps;
  };
  Thread* const thread = team.go(function, {.held = true});
  team.run([] { sleep_for(1'000'000); });
  EXPECT_EQ(steps, 0);
  unhold(*thread);
  while (thread->hold.load() != Hold::held) {
    std::this_thread::yield();
  }
  EXPECT_EQ(steps, 1);
  unhold(*thread);
  join(*thread);
  EXPECT_EQ(steps, 2);
}

TEST_P(HoldTest, HoldOfOneThatComputesGivesUpAtTheDeadline) {
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_begun{false};
  auto function = [&] {
    has_begun = true;
    while (!is_over.load()) {
    }
  };
  Thread* const thread = team.go(function);
  while (!has_begun) {
    std::this_thread::yield();
  }
  Thread* const threads[] = {thread};
  EXPECT_FALSE(hold(threads, team->now_ns() + 2'000'000));
  is_over = true;
  join(*thread);  // It makes no call that would stop it.
}

TEST_P(HoldTest, HeldThreadDoesNotRunByYieldTo) {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> tries{0};
  std::atomic<bool> is_over{false};
  Thread* held = nullptr;
  Semaphore go;
  auto counts = [&] {
    while (!is_over.load()) {
      count.fetch_add(1);
      yield();
    }
    go.acquire();  // It does not end while others name it.
  };
  auto gives_way = [&] {
    while (!is_over.load()) {
      (void)yield_to(*held);
      tries.fetch_add(1);
    }
  };
  held = team.go(counts);
  Thread* const others[] = {team.go(gives_way), team.go(gives_way), team.go(gives_way)};
  Thread* const threads[] = {held};
  // Asleep meanwhile: a yield of this kernel thread costs the slices of all workers that spin.
  const auto await_tries = [&](std::uint64_t more) {
    for (const std::uint64_t before = tries.load(); tries.load() - before < more;) {
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
  };
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(hold(threads, kNever));
    const std::uint64_t seen = count.load();
    await_tries(100);
    EXPECT_EQ(count.load(), seen) << "in round " << round;
    unhold(*held);
    await_tries(3);
  }
  is_over = true;
  for (Thread* const thread : others) {
    join(*thread);
  }
  go.release();
  join(*held);
}

TEST(Hold, EndsBeforeItsCallerIsCancelled) {
  const TestTeam team{2};
  std::atomic<bool> may_stop{false};
  std::atomic<bool> has_held{false};
  std::atomic<bool> has_begun{false};
  auto computes = [&] {
    has_begun = true;
    while (!may_stop.load()) {
    }
    yield();
  };
  Thread* const held = team.go(computes);
  while (!has_begun) {  // One that does not run yet is held at once.
    std::this_thread::yield();
  }
  auto holds = [&] {
    Thread* const threads[] = {held};
    EXPECT_TRUE(hold(threads, kNever));
    has_held = true;
    sleep_for(1);
    ADD_FAILURE() << "it is cancelled here";
  };
  Thread* const holder = team.go(holds, {.cancellable = true});
  while (held->hold.load() == Hold::none) {
    std::this_thread::yield();
  }
  cancel(*holder);
  sleep_for(1'000'000);
  may_stop = true;
  EXPECT_EQ(try_join_until(*holder, kNever), JoinOutcome::cancelled);
  EXPECT_TRUE(has_held);
  unhold(*held);
  join(*held);
}

TEST_P(HoldTest, ThreadsThatHoldEachOtherAllStop) {
  for (int round = 0; round < 20; ++round) {
    Thread* threads[3];
    std::atomic<int> begun_count{0};
    std::atomic<int> held_count{0};
    Semaphore end;
    auto function = [&] {
      begun_count.fetch_add(1);
      while (begun_count.load() < 3) {
        yield();
      }
      EXPECT_TRUE(hold(threads, kNever));
      held_count.fetch_add(1);
      end.acquire();  // It does not end while others name it.
    };
    for (Thread*& thread : threads) {
      thread = team.go(function, {.held = true});
    }
    for (Thread* const thread : threads) {
      unhold(*thread);
    }
    while (held_count.load() < 3) {
      for (Thread* const thread : threads) {
        if (thread->hold.load() == Hold::held) {
          unhold(*thread);
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
    for (Thread* const thread : threads) {
      unhold(*thread);
    }
    end.release(3);
    for (Thread* const thread : threads) {
      join(*thread);
    }
  }
}

TEST_P(HoldTest, OrderThatIsTakenBackIsNotWaitedFor) {
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_begun{false};
  auto computes = [&] {
    has_begun = true;
    while (!is_over.load()) {
    }
  };
  Thread* const thread = team.go(computes);
  while (!has_begun.load()) {
    std::this_thread::yield();
  }
  std::thread holder{[&] {
    Thread* const threads[] = {thread};
    EXPECT_TRUE(hold(threads, kNever));
  }};
  while (thread->hold.load() == Hold::none) {
    std::this_thread::yield();
  }
  unhold(*thread);
  holder.join();
  EXPECT_FALSE(is_over.load());
  is_over = true;
  join(*thread);
}

TEST_P(HoldTest, ThatTimesOutTakesBackThatItsCallerWillStop) {
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_begun{false};
  auto computes = [&] {
    has_begun = true;
    while (!is_over.load()) {
    }
  };
  if (GetParam() == 1) {
    // A thread that never leaves its processor keeps the only worker: nobody could hold it.
    GTEST_SKIP() << "the one that computes and the one that holds it need a worker each";
  }
  Thread* const thread = team.go(computes);
  while (!has_begun.load()) {
    std::this_thread::yield();
  }
  auto holds = [&] {
    Thread* const threads[] = {self(), thread};
    EXPECT_FALSE(hold(threads, team->now_ns() + 1'000'000));
    EXPECT_EQ(self()->hold.load(), Hold::wanted);  // The order stands.
    unhold(*self());
    unhold(*thread);
  };
  team.run(holds);
  is_over = true;
  join(*thread);
}

}  // namespace
}  // namespace sterna::threads
