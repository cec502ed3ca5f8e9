// Seeds: run inline by their planter, stolen by others, joined in any order, with exceptions and
// with little stack. Results are compared with plain recursion; what may run where by self().
// seed_thread_test.cc has their relations to threads.
#include "threads/seeds/seed.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include "threads/control/control.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

std::uint64_t fib(int n) {
  if (n < 2) {
    return static_cast<std::uint64_t>(n);
  }
  std::uint64_t left = 0;
  Branch branch{[&] { left = fib(n - 1); }};
  const std::uint64_t right = fib(n - 2);
  branch.join();
  return left + right;
}

/// Records who ran it.
struct Note {
  Seed seed;
  std::atomic<Thread*> runner{nullptr};
  std::atomic<int> runs{0};
  void plant() { threads::plant(seed, run, this); }
  void plant(const ThreadOptions& options) { threads::plant(seed, options, run, this); }
  static void run(void* note) {
    auto& its = *static_cast<Note*>(note);
    its.runner.store(self());
    its.runs.fetch_add(1);
  }
};

class SeedsOnWorkers : public testing::TestWithParam<std::uint32_t> {};

TEST_P(SeedsOnWorkers, RecursionGivesTheResultOfPlainRecursion) {
  const TestTeam team{GetParam()};
  std::uint64_t result = 0;
  team.run([&] { result = fib(kSanitizedTests ? 16 : 24); });
  EXPECT_EQ(result, kSanitizedTests ? 987U : 46368U);
}

TEST_P(SeedsOnWorkers, ManyPlantersGetTheirOwnResultsInAnyOrderOfJoins) {
  const TestTeam team{GetParam()};
  constexpr int kPlanters = 8;
  constexpr int kSeeds = 300;  // More than the first ring of a deque holds, together.
  auto planter = [] {
    std::vector<Note> notes(kSeeds);
    for (int round = 0; round < (kSanitizedTests ? 3 : 20); ++round) {
      for (Note& note : notes) {
        note.plant();
      }
      yield();
      for (int i = 0; i < kSeeds; ++i) {
        // First to last, last to first, or both ends in turn.
        const int at = round % 3 == 0   ? i
                       : round % 3 == 1 ? kSeeds - 1 - i
                       : i % 2 == 0     ? i / 2
                                        : kSeeds - 1 - i / 2;
        join(notes[static_cast<std::size_t>(at)].seed);
        ASSERT_EQ(notes[static_cast<std::size_t>(at)].runs.load(), round + 1);
      }
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < kPlanters; ++i) {
    threads.push_back(team.go(planter));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST_P(SeedsOnWorkers, SeedsThatWaitForOneAnotherAllRun) {
  // Each waits for a signal of the one planted after it; joined first to last, so that nothing but
  // threads of their own can let the first one end.
  const TestTeam team{GetParam()};
  struct Link {
    Seed seed;
    Semaphore mine;
    Semaphore* next = nullptr;
  };
  team.run([] {
    std::vector<Link> links(50);
    for (std::size_t i = 0; i < links.size(); ++i) {
      links[i].next = i > 0 ? &links[i - 1].mine : nullptr;
      plant(
          links[i].seed,
          [](void* link) {
            auto& its = *static_cast<Link*>(link);
            its.mine.acquire();
            if (its.next != nullptr) {
              its.next->release();
            }
          },
          &links[i]);
    }
    links.back().mine.release();
    for (Link& link : links) {
      join(link.seed);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, SeedsOnWorkers, testing::Values(1U, 2U, 4U),
                         testing::PrintToStringParamName());

TEST(Seed, RunsAsPartOfItsPlanterWhenNobodyElseHasTime) {
  const TestTeam team{1};
  team.run([] {
    Note older;
    Note newer;
    older.plant();
    newer.plant();
    EXPECT_EQ(older.runs.load() + newer.runs.load(), 0);
    join(older.seed);
    EXPECT_EQ(newer.runs.load(), 0);
    join(newer.seed);
    EXPECT_EQ(older.runner.load(), self());
    EXPECT_EQ(newer.runner.load(), self());
  });
}

TEST(Seed, IsStolenByAnIdleWorker) {
  const TestTeam team{2};
  team.run([] {
    Note note;
    note.plant();
    while (note.runs.load() == 0) {  // We do not switch: only the other worker can.
    }
    join(note.seed);
    EXPECT_NE(note.runner.load(), self());
    EXPECT_EQ(note.runs.load(), 1);
  });
}

TEST(Seed, RunsWhileItsPlanterWaitsForWhatItDoes) {
  const TestTeam team{1};
  team.run([] {
    Semaphore semaphore;
    Seed seed;
    plant(seed, [](void* its) { static_cast<Semaphore*>(its)->release(); }, &semaphore);
    semaphore.acquire();
    join(seed);
  });
}

TEST(Seed, RunsThoughOtherThreadsKeepTheWorkerBusy) {
  const TestTeam team{1};
  std::atomic<bool> is_done{false};
  auto busy = [&] {
    while (!is_done.load()) {
      yield();
    }
  };
  Thread* const first = team.go(busy);
  Thread* const second = team.go(busy);
  team.run([] {
    Semaphore semaphore;
    Seed seed;
    plant(seed, [](void* its) { static_cast<Semaphore*>(its)->release(); }, &semaphore);
    semaphore.acquire();
    join(seed);
  });
  is_done.store(true);
  join(*first);
  join(*second);
}

TEST(Seed, WhatABranchThrowsIsThrownByItsJoin) {
  for (const std::uint32_t worker_count : {1U, 2U}) {
    const TestTeam team{worker_count};
    team.run([&] {
      for (int i = 0; i < 200; ++i) {
        std::atomic<bool> has_begun{false};
        Branch branch{[&] {
          has_begun.store(true);
          throw std::runtime_error{"inside"};
        }};
        while (worker_count > 1 && i < 10 && !has_begun.load()) {  // Stolen.
        }
        EXPECT_THROW(branch.join(), std::runtime_error);
      }
    });
  }
}

TEST(Seed, ABranchIsJoinedWhenAnExceptionUnwindsItsFrame) {
  const TestTeam team{2};
  team.run([] {
    std::atomic<int> runs{0};
    for (int i = 0; i < 100; ++i) {
      try {
        const Branch branch{[&] { runs.fetch_add(1); }};
        throw i;
      } catch (int) {
        EXPECT_EQ(runs.load(), i + 1);
      }
    }
  });
}

TEST(Seed, IsJoinedOnceAndByItsPlanterOnly) {
  const TestTeam team{1};
  team.run([&] {
    Note note;
    note.plant();
    JoinOutcome outcome = JoinOutcome::ended;
    auto stranger = [&] { outcome = try_join(note.seed); };
    join(*team.go(stranger));
    EXPECT_EQ(outcome, JoinOutcome::joined_already);
    EXPECT_EQ(try_join(note.seed), JoinOutcome::ended);
    EXPECT_EQ(try_join(note.seed), JoinOutcome::joined_already);
    EXPECT_EQ(note.runs.load(), 1);
  });
}

TEST(Seed, ThatJoinsItselfIsToldSo) {
  const TestTeam team{1};
  team.run([] {
    struct Self {
      Seed seed;
      JoinOutcome outcome = JoinOutcome::ended;
    } its;
    plant(
        its.seed,
        [](void* argument) {
          auto& me = *static_cast<Self*>(argument);
          me.outcome = try_join(me.seed);
        },
        &its);
    join(its.seed);
    EXPECT_EQ(its.outcome, JoinOutcome::joined_already);
  });
}

TEST(Seed, IsTakenBackUnlessItHasBegun) {
  const TestTeam team{1};
  team.run([] {
    Note older;
    Note newer;
    older.plant();
    newer.plant();
    EXPECT_TRUE(withdraw(older.seed));
    join(newer.seed);
    EXPECT_EQ(older.runs.load(), 0);
    EXPECT_EQ(try_join(older.seed), JoinOutcome::joined_already);
    older.plant();
    while (older.runs.load() == 0) {  // The worker has nothing else to do.
      sleep_for(1'000'000);
    }
    EXPECT_FALSE(withdraw(older.seed));
    join(older.seed);
    EXPECT_EQ(older.runs.load(), 1);
  });
}

int depth_reached(int left, std::vector<Thread*>& threads) {
  if (left == 0) {
    return 0;
  }
  if (threads.empty() || threads.back() != self()) {
    threads.push_back(self());
  }
  volatile char frame[512];
  frame[0] = 1;
  int below = 0;
  Branch branch{[&] { below = depth_reached(left - 1, threads); }};
  branch.join();
  return below + frame[0];
}

TEST(Seed, DeepRecursionGoesOnOnFurtherStacks) {
  const TestTeam team{1};
  std::vector<Thread*> threads;
  int depth = 0;
  team.run([&] { depth = depth_reached(2'000, threads); });
  EXPECT_EQ(depth, 2'000);
  EXPECT_GT(threads.size(), 1U);  // More than 1 MB of frames, on stacks of 60 KiB.
}

TEST(Seed, OfAThreadThatWentToAnotherWorkerIsStillJoined) {
  const TestTeam team{2};
  team.run([] {
    stay_on(0, 1);
    std::vector<Note> notes(100);
    for (Note& note : notes) {
      note.plant();
    }
    stay_on(1, 1);
    for (Note& note : notes) {
      join(note.seed);
      EXPECT_EQ(note.runs.load(), 1);
    }
  });
}

}  // namespace
}  // namespace sterna::threads
