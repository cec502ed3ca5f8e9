// Threads that run on any set of workers only: whatever else happens, never outside it.
#include "threads/queues/worker_set.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/random.h"
#include "threads/carriers/carrier.h"
#include "threads/control/control.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint32_t kWorkers = 4;

std::uint32_t here() {
  return worker_index(*self()->worker.load());
}

Result<> restrict(Thread& thread, std::uint64_t set) {
  return set_workers(thread, std::span{&set, 1});
}

TEST(WorkerSets, OfOneselfCountAtOnce) {
  const TestTeam team{kWorkers};
  auto function = [&] {
    EXPECT_EQ(workers_of(*self())[0], 0b1111U);
    for (const std::uint64_t set : {0b0101U, 0b1010U, 0b1000U, 0b0001U, 0b1001U, 0b0110U}) {
      ASSERT_TRUE(restrict(*self(), set));
      EXPECT_EQ(workers_of(*self())[0], set);
      for (int i = 0; i < 200; ++i) {
        ASSERT_NE(set >> here() & 1, 0U) << "worker " << here() << " for set " << set;
        if (i % 20 == 0) {
          sleep_for(1000);
        } else {
          yield();
        }
      }
    }
    ASSERT_TRUE(set_workers(*self(), {}));
    EXPECT_EQ(workers_of(*self())[0], 0b1111U);
    stay_on(1, 2);
    EXPECT_EQ(workers_of(*self())[0], 0b0110U);
    EXPECT_TRUE(here() == 1 || here() == 2);
    ASSERT_TRUE(restrict(*self(), 0b1001)) << "a set takes the place of a place";
    EXPECT_TRUE(here() == 0 || here() == 3);
  };
  team.run(function);
}

TEST(WorkerSets, WhatCannotBeMeantIsRefusedInWords) {
  const TestTeam team{2};
  auto function = [&] {
    const auto refused = [&](std::uint64_t set, Errc code, const char* word) {
      const Result<> result = restrict(*self(), set);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, code);
      EXPECT_NE(result.error().text.find(word), std::string::npos) << result.error().text;
    };
    refused(0, Errc::invalid_argument, "empty");
    refused(0b0101, Errc::invalid_argument, "worker 2 is in the set, but there are 2");
    ASSERT_TRUE(team->disable(1));
    refused(0b10, Errc::refused, "disabled");
    team->enable(1);
    EXPECT_EQ(workers_of(*self())[0], 0b11U) << "as before";
    const std::uint64_t words[17] = {1};
    EXPECT_FALSE(set_workers(*self(), words));
  };
  team.run(function);
}

TEST(WorkerSets, OneThatWaitsBehindAnotherGoesAtOnce) {
  const TestTeam team{2, {.steal = false}};
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_begun{false};
  std::atomic<std::uint32_t> ran_on{99};
  auto computes = [&] {
    has_begun = true;
    while (!is_over.load()) {
    }
  };
  auto notes = [&] { ran_on = here(); };
  Thread* const first = team.go(computes, {.worker = 0, .bound = true});
  while (!has_begun.load()) {
    std::this_thread::yield();
  }
  Thread* const second = team.go(notes, {.worker = 0, .bound = true});
  ASSERT_TRUE(restrict(*second, 0b10));
  join(*second);
  EXPECT_EQ(ran_on.load(), 1U);
  is_over = true;
  join(*first);
}

TEST(WorkerSets, ThreadsThatSleepOrAreHeldObeyWhenTheyGoOn) {
  const TestTeam team{2};
  Semaphore semaphore;
  std::atomic<std::uint32_t> ran_on{99};
  auto waits = [&] {
    semaphore.acquire();
    ran_on = here();
  };
  for (const std::uint32_t target : {0U, 1U, 0U, 1U}) {
    Thread* const thread = team.go(waits);
    sleep_for(100'000);
    ASSERT_TRUE(restrict(*thread, std::uint64_t{1} << target));
    semaphore.release();
    join(*thread);
    EXPECT_EQ(ran_on.load(), target);
    auto notes = [&] { ran_on = here(); };
    Thread* const held = team.go(notes, {.held = true});
    ASSERT_TRUE(restrict(*held, std::uint64_t{2} >> target));
    unhold(*held);
    join(*held);
    EXPECT_EQ(ran_on.load(), 1 - target);
  }
}

TEST(WorkerSets, OneThatLeavesItsWorkersProcessorFindsAnotherOfItsSet) {
  const TestTeam team{3};
  std::atomic<bool> is_over{false};
  std::atomic<long> on[3] = {};
  auto looks = [&] {
    while (!is_over.load()) {
      ++on[here()];
      yield();
    }
  };
  Thread* const thread = team.go(looks, {.held = true});
  ASSERT_TRUE(restrict(*thread, 0b101));
  unhold(*thread);
  for (const std::uint32_t gone : {0U, 2U, 0U}) {
    ASSERT_TRUE(team->disable(gone));
    sleep_for(5'000'000);
    const long before = on[2 - gone].load();
    while (on[2 - gone].load() == before) {
      std::this_thread::yield();
    }
    team->enable(gone);
  }
  // Both are gone: it goes on as what is bound does, on a worker of its set.
  ASSERT_TRUE(team->disable(0));
  ASSERT_TRUE(team->disable(2));
  const long before = on[0] + on[2];
  while (on[0] + on[2] == before) {
    std::this_thread::yield();
  }
  is_over = true;
  join(*thread);
  EXPECT_EQ(on[1].load(), 0);
}

/// Threads that do what threads do, and look where they are; others that change their sets. Who
/// changes a set waits until the thread has seen it, so that "outside its set" is well defined.
struct Roamer {
  std::atomic<std::uint64_t> set{0b1111};      // What it may be on now.
  std::atomic<std::uint64_t> ordered{0b1111};  // What comes: either may be true meanwhile.
  std::atomic<std::uint64_t> looks{0};
  std::atomic<bool>* is_over = nullptr;
  std::atomic<int>* outside = nullptr;
  Thread* thread = nullptr;

  void operator()() {
    Random random{reinterpret_cast<std::uintptr_t>(this)};
    while (!is_over->load()) {
      switch (random.below(8)) {
        case 0:
          sleep_for(1000 * random.below(50));
          break;
        case 1: {
          const bool has_left = enter_blocking();
          leave_blocking();
          (void)has_left;
          break;
        }
        case 2:
          unpark(*self());
          park();
          break;
        default:
          yield();
      }
      const std::uint64_t bit = std::uint64_t{1} << here();
      if ((set.load() & bit) == 0 && (ordered.load() & bit) == 0) {
        ++*outside;
      }
      ++looks;
    }
  }
};

TEST(WorkerSets, NobodyRunsOutsideWhateverHappens) {
  const TestTeam team{kWorkers};
  std::atomic<bool> is_over{false};
  std::atomic<int> outside{0};
  std::vector<std::unique_ptr<Roamer>> roamers;
  for (int i = 0; i < 12; ++i) {
    auto& one = *roamers.emplace_back(std::make_unique<Roamer>());
    one.is_over = &is_over;
    one.outside = &outside;
    one.thread = team.go(one, {.priority = static_cast<std::uint8_t>(i % 4 == 3 ? 3 : 2)});
  }
  Random random{4711};
  constexpr int kRounds = kSanitizedTests ? 60 : 300;
  for (int round = 0; round < kRounds; ++round) {
    Roamer& one = *roamers[random.below(roamers.size())];
    const std::uint64_t set = 1 + random.below(15);
    one.ordered = set;
    const Result<> done = restrict(*one.thread, set);
    ASSERT_TRUE(done || done.error().code == Errc::refused);
    if (!done) {
      one.ordered = one.set.load();
      continue;
    }
    EXPECT_EQ(workers_of(*one.thread)[0], set);
    if (random.below(8) == 0) {
      Thread* const list[] = {one.thread};
      ASSERT_TRUE(hold(list, kNever));
      unhold(*one.thread);
    }
    const std::uint64_t seen = one.looks.load();
    while (one.looks.load() < seen + 3) {
      std::this_thread::yield();
    }
    one.set = set;
    if (random.below(4) == 0) {
      const auto worker = static_cast<std::uint32_t>(random.below(kWorkers));
      if (team->is_enabled(worker)) {
        (void)team->disable(worker);
      } else {
        team->enable(worker);
      }
    }
  }
  is_over = true;
  for (const auto& one : roamers) {
    join(*one->thread);
  }
  EXPECT_EQ(outside.load(), 0);
}

/// Others give way to a thread by name, from every worker, while its set changes, and goes.
TEST(WorkerSets, WhoGivesWayToAThreadDoesNotTakeItOutOfItsSet) {
  const TestTeam team{kWorkers};
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> set{0b1111};
  std::atomic<std::uint64_t> looks{0};
  std::atomic<int> outside{0};
  Semaphore end;
  auto runs = [&] {
    while (!is_over.load()) {
      outside += (set.load() >> here() & 1) != 0 ? 0 : 1;
      ++looks;
      yield();
    }
    end.acquire();  // It does not end while others name it.
  };
  Thread* const thread = team.go(runs);
  auto gives_way = [&] {
    while (!is_over.load()) {
      (void)yield_to(*thread);
    }
  };
  std::vector<Thread*> others;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    others.push_back(team.go(gives_way, {.worker = i, .bound = true}));
  }
  // An order counts when the thread has seen it; it comes from one set to none and to another.
  const auto order = [&](std::span<const std::uint64_t> words) {
    ASSERT_TRUE(set_workers(*thread, words));
    const std::uint64_t seen = looks.load();
    while (looks.load() < seen + 2) {
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
  };
  constexpr int kRounds = kSanitizedTests ? 20 : 100;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t one = std::uint64_t{1} << round % kWorkers;
    order(std::span{&one, 1});
    set = one;
    std::this_thread::sleep_for(std::chrono::microseconds{200});
    set = 0b1111;
    order({});
  }
  is_over = true;
  for (Thread* const one : others) {
    join(*one);
  }
  end.release();
  join(*thread);
  EXPECT_EQ(outside.load(), 0);
}

/// It waits where somebody who gave way to it has brought it, but may not begin: its order counts
/// for the queue in which it is, not for that from which it came.
TEST(WorkerSets, WhoWasTakenFromItsWorkerAndWaitsObeysWhereItIs) {
  const TestTeam team{2, {.steal = false}};
  for (const std::uint32_t target : {0U, 1U}) {
    std::atomic<bool> has_begun{false};
    std::atomic<bool> may_end{false};
    std::atomic<std::uint32_t> ran_on{99};
    auto waits = [&] {
      has_begun = true;
      while (!may_end.load()) {
        yield();
      }
      ran_on = here();
    };
    Thread* const thread = team.go(waits, {.worker = 0});
    auto gives_way = [&] {
      while (!has_begun.load()) {
        yield();
      }
      ASSERT_EQ(hold_all(*team, kNever), HoldAll::held);
      EXPECT_FALSE(yield_to(*thread)) << "nobody else runs now";
      ASSERT_TRUE(restrict(*thread, std::uint64_t{1} << target));
      may_end = true;
      ASSERT_TRUE(unhold_all(*team));
    };
    Thread* const other = team.go(gives_way, {.worker = 1, .bound = true});
    join(*thread);
    join(*other);
    EXPECT_EQ(ran_on.load(), target);
  }
}

}  // namespace
}  // namespace sterna::threads
