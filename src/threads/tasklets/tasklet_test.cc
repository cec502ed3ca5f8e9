// Tasklets on workers: coalesced, disabled, bound, cancelled, asked for from everywhere at once.
#include "threads/tasklets/tasklet.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "threads/life/life.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class TaskletTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  template <typename Function>
  static Tasklet::Options calls(Function& function) {
    return {.function = [](void* its) { (*static_cast<Function*>(its))(); },
            .argument = &function,
            .is_user_code = false};
  }
  void ask(Tasklet& tasklet) { EXPECT_TRUE(tasklet.schedule(*team)); }
  static void await_rest(const Tasklet& tasklet) {
    while (tasklet.is_busy()) {
      std::this_thread::yield();
    }
  }
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, TaskletTest, testing::Values(1, 2, 4));

TEST_P(TaskletTest, RunsOnceForAllWhoAskedBeforeItBegan) {
  std::atomic<int> runs{0};
  auto function = [&] { ++runs; };
  Tasklet tasklet{calls(function)};
  ASSERT_TRUE(tasklet.disable());
  EXPECT_EQ(tasklet.schedule(*team).value(), Tasklet::Asked::scheduled);
  EXPECT_EQ(tasklet.schedule(*team).value(), Tasklet::Asked::coalesced);
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(tasklet.is_scheduled());
  ASSERT_TRUE(tasklet.enable(*team).value());
  await_rest(tasklet);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(tasklet.enable(*team).value()) << "it was not disabled";
}

TEST_P(TaskletTest, AskedForWhileItRunsItRunsOnceMore) {
  Semaphore has_begun;
  Semaphore go;
  std::atomic<int> runs{0};
  auto function = [&] {
    ++runs;
    has_begun.release();
    go.acquire();
  };
  Tasklet tasklet{calls(function)};
  ask(tasklet);
  has_begun.acquire();
  ask(tasklet);
  ask(tasklet);
  go.release();
  has_begun.acquire();
  go.release();
  await_rest(tasklet);
  EXPECT_EQ(runs, 2);
}

TEST_P(TaskletTest, DisableWaitsForTheCallAndCounts) {
  std::atomic<bool> is_inside{false};
  std::atomic<int> runs{0};
  auto function = [&] {
    is_inside = true;
    sleep_for(200'000);
    ++runs;
    is_inside = false;
  };
  Tasklet tasklet{calls(function)};
  for (int i = 0; i < 20; ++i) {
    ask(tasklet);
    if (i % 2 == 0) {
      team.run([] { yield(); });
    }
    ASSERT_TRUE(tasklet.disable());
    EXPECT_FALSE(is_inside);
    ASSERT_TRUE(tasklet.disable());
    ask(tasklet);
    const int before = runs;
    ASSERT_TRUE(tasklet.enable(*team).value());
    team.run([] { sleep_for(100'000); });
    EXPECT_EQ(runs, before);
    ASSERT_TRUE(tasklet.enable(*team).value());
    await_rest(tasklet);
    EXPECT_EQ(runs, before + 1);
  }
}

TEST_P(TaskletTest, RunsWhereItIsWanted) {
  std::atomic<std::uint32_t> where{99};
  auto function = [&] { where = worker_index(*this_worker()); };
  Tasklet tasklet{calls(function)};
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint32_t wanted = i / 2 % GetParam();
    if (i % 2 == 0) {
      await_rest(tasklet);
    }
    EXPECT_TRUE(tasklet.schedule(*team, {wanted, 1}));
    if (i % 2 != 0) {  // The first of two may have begun there already: this one follows it.
      await_rest(tasklet);
      EXPECT_EQ(where, wanted);
    }
  }
  await_rest(tasklet);
}

TEST_P(TaskletTest, OneThatDisablesItselfOrEndsItsThreadLosesNothing) {
  Tasklet* its = nullptr;
  std::atomic<int> runs{0};
  auto function = [&] {
    ++runs;
    EXPECT_TRUE(its->disable());
    EXPECT_FALSE(its->cancel()) << "it would wait for itself";
    EXPECT_TRUE(its->enable(*team).value());
    end_current(*self());
  };
  Tasklet tasklet{calls(function)};
  its = &tasklet;
  for (int i = 1; i < 20; ++i) {
    ask(tasklet);
    await_rest(tasklet);
    EXPECT_EQ(runs, i);
  }
}

TEST_P(TaskletTest, StormFromThreadsAndKernelThreads) {
  constexpr int kAsks = 3000;
  std::atomic<int> asked{0};
  std::atomic<int> seen{0};
  std::atomic<int> inside{0};
  std::atomic<bool> is_forbidden{false};
  auto function = [&] {
    EXPECT_EQ(inside.fetch_add(1), 0) << "one at a time";
    EXPECT_FALSE(is_forbidden);
    seen = asked.load();
    inside.fetch_sub(1);
  };
  Tasklet tasklet{calls(function)};
  auto asks = [&] {
    for (int i = 0; i < kAsks; ++i) {
      ++asked;
      ask(tasklet);
      if (i % 64 == 0 && self() != nullptr) {
        yield();
      }
    }
  };
  auto disables = [&] {
    for (int i = 0; i < 200; ++i) {
      EXPECT_TRUE(tasklet.disable());
      is_forbidden = true;
      if (i % 4 == 0) {
        yield();
      }
      is_forbidden = false;
      EXPECT_TRUE(tasklet.enable(*team).value());
    }
  };
  std::thread foreign{asks};
  Thread* const threads[] = {team.go(asks), team.go(asks), team.go(disables)};
  for (Thread* const one : threads) {
    join(*one);
  }
  foreign.join();
  await_rest(tasklet);
  EXPECT_EQ(asked, 3 * kAsks);
  EXPECT_EQ(seen, 3 * kAsks) << "the last call saw all that was done before it was asked for";
}

TEST_P(TaskletTest, AfterACancelItsMemoryMayGo) {
  std::atomic<int> runs{0};
  auto function = [&] {
    ++runs;
    yield();
  };
  for (int i = 0; i < 300; ++i) {
    auto tasklet = std::make_unique<Tasklet>(calls(function));
    ask(*tasklet);
    if (i % 3 == 0) {
      team.run([] { yield(); });
    }
    if (i % 2 == 0) {
      team.run([&] { EXPECT_TRUE(tasklet->cancel()); });
    } else {
      EXPECT_TRUE(tasklet->cancel());
    }
  }
  EXPECT_LE(runs, 300);
}

}  // namespace
}  // namespace sterna::threads
