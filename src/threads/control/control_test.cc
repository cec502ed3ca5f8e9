// What threads may do to each other: priorities, yield_to, places, the list of threads;
// and what belongs to each: errno, name, guard.
#include "threads/control/control.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/syscall.h"
#include "threads/control/cancel.h"
#include "threads/control/roster.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class ControlTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, ControlTest, testing::Values(1, 2, 4));

TEST(Priorities, HigherOnesRunFirstAndEqualOnesInTurn) {
  const TestTeam team{1};
  std::vector<int> order;
  struct Note {
    std::vector<int>* order;
    int priority;
    void operator()() const {
      order->push_back(priority);
      yield();
      order->push_back(priority);
    }
  };
  std::vector<Note> notes;
  for (const int priority : {2, 0, 7, 1, 3, 2, 7}) {
    notes.push_back({&order, priority});
  }
  team.run([&] {
    std::vector<Thread*> threads;
    for (Note& note : notes) {
      threads.push_back(team.go(note, {.priority = static_cast<std::uint8_t>(note.priority)}));
    }
    for (Thread* const thread : threads) {
      join(*thread);
    }
  });
  EXPECT_EQ(order, (std::vector<int>{7, 7, 7, 7, 3, 3, 2, 2, 2, 2, 1, 1, 0, 0}));
}

TEST(Priorities, EachLevelComesInItsTurn) {
  const TestTeam team{1};
  std::vector<int> order;
  std::vector<int> expected;
  struct Note {
    std::vector<int>* order;
    int level;
    void operator()() const { order->push_back(level); }
  };
  std::vector<Note> notes;
  for (int i = 0; i < kPriorityCount; ++i) {
    expected.push_back(kPriorityCount - 1 - i);
    notes.push_back({&order, i * 7 % kPriorityCount});  // In a mixed order, each once.
  }
  team.run([&] {
    std::vector<Thread*> threads;
    for (Note& note : notes) {
      threads.push_back(team.go(note, {.priority = static_cast<std::uint8_t>(note.level)}));
    }
    for (Thread* const thread : threads) {
      join(*thread);
    }
  });
  EXPECT_EQ(order, expected);
}

TEST(Priorities, ChangeOfOneThatWaitsInAQueueCountsAtOnce) {
  const TestTeam team{1};
  std::vector<int> order;
  team.run([&] {
    auto first = [&] { order.push_back(1); };
    auto second = [&] { order.push_back(2); };
    Thread* const slow = team.go(first);
    Thread* const fast = team.go(second);
    set_priority(*fast, kPriorityRealTime);
    set_priority(*slow, kPriorityIdle);
    join(*slow);
    join(*fast);
  });
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(YieldTo, GivesTheProcessorToThatOneFirst) {
  const TestTeam team{1};
  std::vector<int> order;
  team.run([&] {
    auto first = [&] { order.push_back(1); };
    auto second = [&] { order.push_back(2); };
    Thread* const one = team.go(first);
    Thread* const two = team.go(second);
    EXPECT_TRUE(yield_to(*two));
    EXPECT_FALSE(yield_to(*two));  // It has ended; the call is a yield.
    join(*one);
    join(*two);
  });
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(YieldTo, FindsOneThatWasWokenBehindAThreadThatComputes) {
  const TestTeam team{2, {.steal = false}};
  Semaphore wake;
  std::atomic<bool> is_waiting{false};
  std::atomic<bool> has_run{false};
  std::atomic<bool> is_computing{false};
  std::atomic<bool> is_over{false};
  auto waits = [&] {
    is_waiting = true;
    wake.acquire();
    has_run = true;
  };
  auto computes = [&] {
    is_computing = true;
    while (!is_over.load()) {
    }
  };
  Thread* const woken = team.go(waits, {.worker = 1});
  while (!is_waiting.load()) {
    std::this_thread::yield();
  }
  // It runs there when the other one has left the processor: it waits, as its list says.
  Thread* const computing = team.go(computes, {.worker = 1, .bound = true});
  while (!is_computing.load()) {
    std::this_thread::yield();
  }
  auto gives_way = [&] {
    wake.release();  // Into the inbox of a worker that does not look there.
    EXPECT_TRUE(yield_to(*woken));
    EXPECT_TRUE(has_run.load());
  };
  join(*team.go(gives_way, {.worker = 0, .bound = true}));
  is_over = true;
  join(*computing);
  join(*woken);
}

TEST_P(ControlTest, ThreadsYieldToEachOtherAcrossWorkersWithoutLoss) {
  constexpr int kThreads = 6;
  Thread* threads[kThreads];
  Semaphore start;
  std::atomic<int> sum{0};
  auto function = [&] {
    start.acquire();
    for (int i = 0; i < 300; ++i) {
      (void)yield_to(*threads[(i * 7 + static_cast<int>(self()->id.load())) % kThreads]);
      sum.fetch_add(1);
    }
    start.acquire();  // Nobody ends while others name it.
  };
  for (Thread*& thread : threads) {
    thread = team.go(function);
  }
  start.release(kThreads);
  while (sum.load() < 300 * kThreads) {
    std::this_thread::yield();
  }
  start.release(kThreads);
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST(Places, BoundThreadStaysWithinItsWorkers) {
  const TestTeam team{4};
  std::atomic<int> outside{0};
  auto function = [&] {
    for (int i = 0; i < 200; ++i) {
      const std::uint32_t index = worker_index(*this_worker());
      outside += index == 1 || index == 2 ? 0 : 1;
      i % 10 == 0 ? sleep_for(10'000) : yield();
    }
  };
  auto mover = [&] {
    stay_on(1, 2);
    function();
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < 8; ++i) {
    threads.push_back(i % 2 == 0
                          ? team.go(function, {.worker = 1, .worker_count = 2, .bound = true})
                          : team.go(mover));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(outside, 0);
}

TEST(Places, ThreadThatHandlesAnExceptionTakesItAlong) {
  const TestTeam team{2};
  auto function = [] {
    for (std::uint32_t i = 0; i < 20; ++i) {
      try {
        throw i;
      } catch (const std::uint32_t& caught) {
        stay_on(i % 2, 1);
        EXPECT_EQ(worker_index(*this_worker()), i % 2);
        EXPECT_TRUE(has_live_exception());
        try {
          throw;
        } catch (std::uint32_t again) {
          EXPECT_EQ(again, i);
        }
        EXPECT_EQ(caught, i);
      }
      EXPECT_FALSE(has_live_exception());
    }
  };
  Thread* const threads[] = {team.go(function), team.go(function), team.go(function)};
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST(Places, UrgentBoundThreadKeepsNoOtherFromAnIdleWorker) {
  const TestTeam team{2};
  std::atomic<bool> has_run{false};
  auto bound = [] {};
  auto free = [&] { has_run = true; };
  auto computes = [&] {
    Thread* const first = team.go(bound, {.worker = 0, .priority = kPrioritySystem, .bound = true});
    Thread* const second = team.go(free);
    while (!has_run.load()) {
    }
    join(*first);
    join(*second);
  };
  join(*team.go(computes, {.worker = 0, .bound = true}));
}

TEST_P(ControlTest, EachThreadHasItsOwnErrno) {
  auto function = [&] {
    const int mine = static_cast<int>(self()->id.load() % 100) + 1;
    set_last_error_number(mine);
    for (int i = 0; i < 100; ++i) {
      i % 20 == 0 ? sleep_for(10'000) : yield();
      EXPECT_EQ(last_error_number(), mine);
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < 10; ++i) {
    threads.push_back(team.go(function));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  team.run([] { EXPECT_EQ(last_error_number(), 0); });
}

TEST_P(ControlTest, ListShowsWhoIsThereAndHow) {
  Semaphore semaphore;
  auto waiter = [&] { semaphore.acquire(); };
  Thread* const blocked = team.go(waiter, {.name = "blocked"});
  Thread* const held = team.go(waiter, {.name = "held", .held = true});
  const auto find = [&](Thread* thread) {
    std::vector<ThreadInfo> infos(list_threads(*team, {}) + 4);
    infos.resize(std::min(infos.size(), list_threads(*team, infos)));
    const auto at = std::ranges::find(infos, thread, &ThreadInfo::thread);
    return at == infos.end() ? ThreadInfo{} : *at;
  };
  while (find(blocked).state != ThreadState::blocked) {
    std::this_thread::yield();
  }
  EXPECT_STREQ(find(blocked).name, "blocked");
  EXPECT_EQ(find(held).state, ThreadState::held);
  EXPECT_STREQ(find(held).name, "held");
  team.run([&] { EXPECT_EQ(find(self()).state, ThreadState::running); });
  unhold(*held);
  semaphore.release(2);
  join(*blocked);
  join(*held);
  EXPECT_EQ(list_threads(*team, {}), 0U);
}

TEST_P(ControlTest, CallAfterExitComesBeforeTheJoinerGoesOn) {
  std::atomic<int> calls{0};
  auto function = [&] {
    call_after_exit([](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls);
  };
  for (int i = 1; i <= 20; ++i) {
    if (i % 2 == 0) {
      join(*team.go(function));
    } else {
      team.run([&] { join(*team.go(function)); });
    }
    EXPECT_EQ(calls, i);
  }
}

TEST_P(ControlTest, GuardIsBelowTheStackAndLeavesWithTheThread) {
  StackUse guarded;
  auto look = [&] { guarded = stack_use(*self()); };
  join(*team.go(look, {.guard_bytes = 16 * memory::kPageBytes}));
  EXPECT_GE(guarded.bytes, kDefaultStackBytes);
  EXPECT_GT(guarded.used_bytes, 0U);
  EXPECT_LT(guarded.used_bytes, guarded.bytes);
  // The same slot without the guard: its lowest bytes can be used.
  auto touch = [&] {
    const StackUse use = stack_use(*self());
    EXPECT_GE(use.bytes, kDefaultStackBytes);
    *reinterpret_cast<volatile char*>(use.base) = 1;
  };
  for (int i = 0; i < 4; ++i) {
    join(*team.go(touch, {.stack_bytes = kDefaultStackBytes + 16 * memory::kPageBytes}));
  }
}

}  // namespace
}  // namespace sterna::threads
