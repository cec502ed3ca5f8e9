// Workers whose processors are taken away and come back while threads run: none is lost, none
// stays.
#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>
#include <sched.h>

#include "base/random.h"
#include "threads/control/control.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

std::uint32_t here() {
  return worker_index(*self()->worker.load());
}

TEST(DisabledWorkers, TheLastOneIsRefused) {
  const TestTeam team{2};
  ASSERT_TRUE(team->disable(1));
  ASSERT_TRUE(team->disable(1)) << "nothing more happens";
  EXPECT_FALSE(team->is_enabled(1));
  const Result<> last = team->disable(0);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Errc::refused);
  EXPECT_NE(last.error().text.find("worker 0 is the last one"), std::string::npos);
  team->enable(1);
  EXPECT_TRUE(team->is_enabled(1));
  EXPECT_TRUE(team->disable(0));
  team->enable(0);
}

TEST(DisabledWorkers, ThreadsLeaveAndStartElsewhere) {
  const TestTeam team{3};
  std::atomic<bool> is_over{false};
  std::atomic<int> on_it{0};
  std::atomic<std::size_t> next{0};
  std::atomic<int> checks[12] = {};  // Of each thread.
  std::atomic<bool> is_settled{false};
  auto looks = [&] {
    std::atomic<int>& own_checks = checks[next++];
    while (!is_over.load()) {
      const bool was_settled = is_settled.load();
      yield();
      yield();  // One that comes when the worker is about to pick its next runs once.
      on_it += was_settled && here() == 1 ? 1 : 0;
      ++own_checks;
    }
  };
  // A worker that waits for a processor of the machine has threads that do not come on.
  const auto wait_for_each = [&](std::size_t count, int more) {
    int before[12] = {};
    std::copy(std::begin(checks), std::end(checks), before);
    for (std::size_t i = 0; i < count; ++i) {
      while (checks[i].load() < before[i] + more) {
        sleep_for(1'000'000);
      }
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < 9; ++i) {
    threads.push_back(team.go(looks));
  }
  ASSERT_TRUE(team->disable(1));
  // A worker may overwrite the order to look at once; then it looks at its 64th switch.
  wait_for_each(9, 200);
  is_settled.store(true);
  // Those too that are sent there.
  for (int i = 0; i < 3; ++i) {
    threads.push_back(team.go(looks, {.worker = 1}));
  }
  wait_for_each(12, 1'000);
  is_over.store(true);
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(on_it.load(), 0);
  team->enable(1);
}

TEST(DisabledWorkers, ALoneThreadThatYieldsLeaves) {
  const TestTeam team{2, {.steal = false}};
  Semaphore started;
  auto function = [&] {
    started.release();
    while (here() == 1) {
      yield();
    }
  };
  Thread* const thread = team.go(function, {.worker = 1});
  started.acquire();
  ASSERT_TRUE(team->disable(1));
  join(*thread);
  team->enable(1);
}

TEST(DisabledWorkers, WhatIsBoundToOneStaysAndWhatHasAChoiceGoes) {
  const TestTeam team{3, {.steal = false}};
  Semaphore go;
  std::atomic<std::uint32_t> alone{9};
  std::atomic<std::uint32_t> either{9};
  auto bound = [&] {
    go.acquire();
    alone.store(here());
  };
  auto has_choice = [&] {
    go.acquire();
    for (int i = 0; i < 200 && here() == 1; ++i) {  // As above.
      yield();
    }
    either.store(here());
  };
  Thread* const first = team.go(bound, {.worker = 1, .bound = true});
  Thread* const second = team.go(has_choice, {.worker = 1, .worker_count = 2, .bound = true});
  ASSERT_TRUE(team->disable(1));
  sleep_for(5'000'000);
  go.release(2);
  join(*first);
  join(*second);
  EXPECT_EQ(alone.load(), 1U);
  EXPECT_EQ(either.load(), 2U);
  team->enable(1);
}

TEST(DisabledWorkers, TheirTimersAndWakersServe) {
  const TestTeam team{2};
  std::atomic<int> ended{0};
  auto sleeps = [&] {
    for (int i = 0; i < 5; ++i) {
      sleep_for(2'000'000);
    }
    ++ended;
  };
  std::vector<Thread*> threads;
  for (std::uint32_t i = 0; i < 8; ++i) {
    threads.push_back(team.go(sleeps, {.worker = i % 2, .bound = i < 4}));
  }
  ASSERT_TRUE(team->disable(1));
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(ended.load(), 8);
  team->enable(1);
}

TEST(DisabledWorkers, AReturnedOneIsUsedAgain) {
  const TestTeam team{2};
  ASSERT_TRUE(team->disable(1));
  sleep_for(2'000'000);
  team->enable(1);
  std::atomic<bool> is_used{false};
  auto function = [&] { is_used.store(here() == 1); };
  // An idle worker may take each of them before worker 1 has a processor of the machine.
  for (int i = 0; i < 20'000 && !is_used.load(); ++i) {
    join(*team.go(function, {.worker = 1}));
    sleep_for(1'000'000);
  }
  EXPECT_TRUE(is_used.load());
}

TEST(DisabledWorkers, NothingIsLostUnderLoad) {
  constexpr int kThreads = 60;
  constexpr int kTurns = 300;
  const TestTeam team{4};
  Semaphore tokens;
  tokens.release(kThreads / 2);
  std::atomic<int> turns{0};
  auto works = [&] {
    for (int i = 0; i < kTurns; ++i) {
      tokens.acquire();
      if (i % 3 == 0) {
        yield();
      }
      if (i % 50 == 0) {
        auto nothing = [] {};
        join(*team.go(nothing));
      }
      turns.fetch_add(1);
      tokens.release();
    }
  };
  std::vector<Thread*> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    threads.push_back(team.go(works, {.worker = i % 4, .bound = i % 10 == 0}));
  }
  Random random{7};
  while (turns.load() < kThreads * kTurns) {
    const auto worker = static_cast<std::uint32_t>(random.below(4));
    if (random.below(2) == 0) {
      (void)team->disable(worker);  // The last one is refused.
    } else {
      team->enable(worker);
    }
    ::sched_yield();
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(turns.load(), kThreads * kTurns);
}

TEST(DisabledWorkers, AStoppedTeamEnds) {
  const TestTeam team{3};
  ASSERT_TRUE(team->disable(0));
  ASSERT_TRUE(team->disable(2));
}

}  // namespace
}  // namespace sterna::threads
