// Life of threads: creation, joining, yielding, parking, on 1 to 8 workers, woken by threads of the
// team and by kernel threads outside.
#include <ctime>
#include <thread>
#include <vector>

#include "base/random.h"
#include "threads/direct.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class TeamTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, TeamTest, testing::Values(1, 2, 4, 8));

TEST_P(TeamTest, ThreadRunsOnceAndIsJoined) {
  int runs = 0;
  team.run([&] { ++runs; });
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(team->live_thread_count(), 0U);
}

TEST_P(TeamTest, SelfIsTheThreadOnItsStackAndNullOutside) {
  EXPECT_EQ(self(), nullptr);
  EXPECT_EQ(self_if_any(), nullptr);
  EXPECT_EQ(this_worker(), nullptr);
  Thread* inside = nullptr;
  Thread* any = nullptr;
  auto function = [&] {
    inside = self();
    any = self_if_any();
  };
  for (const std::size_t stack_bytes : {kDefaultStackBytes, std::size_t{1} << 20}) {
    Thread* const thread = team.go(function, {.name = "a name", .stack_bytes = stack_bytes});
    join(*thread);
    EXPECT_EQ(inside, thread);
    EXPECT_EQ(any, thread);
  }
}

TEST(Alone, IsWhoeverHasNoOtherThreadBesideItAndAnyKernelThread) {
  const TestTeam team{1};
  EXPECT_TRUE(is_caller_alone());
  EXPECT_FALSE(is_thread_alone());
  bool is_alone_at_first = false;
  bool is_alone_later = true;
  team.run([&] {
    is_alone_at_first = is_caller_alone() && is_thread_alone();
    auto nothing = [] {};
    Thread* const other = team.go(nothing);
    is_alone_later = is_caller_alone() || is_thread_alone();
    join(*other);
  });
  EXPECT_TRUE(is_alone_at_first);
  EXPECT_FALSE(is_alone_later) << "another thread waits for the worker";
}

TEST_P(TeamTest, NamesAreCopiedCutAndInvented) {
  team.run([&] {
    auto nothing = [] {};
    char buffer[kNameBytes];
    Thread* const named = team.go(nothing, {.name = "0123456789012345678901234567890123456789"});
    EXPECT_EQ(display_name(*named, buffer), "0123456789012345678901234567890");
    Thread* const plain = team.go(nothing);
    EXPECT_EQ(display_name(*plain, buffer), "thread " + std::to_string(plain->id));
    join(*named);
    join(*plain);
  });
}

TEST_P(TeamTest, ThreadsSpawnAndJoinThreadsRecursively) {
  struct Node {
    const TestTeam* team;
    int depth;
    long sum = 0;
    void operator()() {
      if (depth == 0) {
        sum = 1;
        return;
      }
      Node left{team, depth - 1};
      Node right{team, depth - 1};
      Thread* const first = team->go(left);
      Thread* const second = team->go(right);
      join(*second);
      join(*first);
      sum = left.sum + right.sum;
    }
  };
  constexpr int kDepth = kSanitizedTests ? 7 : 12;
  Node root{&team, kDepth};
  team.run(root);
  EXPECT_EQ(root.sum, 1L << kDepth);
}

TEST_P(TeamTest, AThreadThatIsJoinedBeforeItRanMayEndAnywhere) {
  // Who joins is written before it runs first; then it moves as others do, and so does its joiner.
  std::atomic<int> wrong{0};
  auto creator = [&] {
    for (int i = 0; i < (kSanitizedTests ? 200 : 2000); ++i) {
      int value = 0;
      auto child = [&] {
        value = 1;
        yield();
        yield();
        ++value;
      };
      join(*team.go(child));
      wrong += value == 2 ? 0 : 1;
    }
  };
  team.run([&] {
    std::vector<Thread*> creators;
    for (std::uint32_t i = 0; i < 2 * GetParam(); ++i) {
      creators.push_back(team.go(creator));
    }
    for (Thread* const thread : creators) {
      join(*thread);
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(TeamTest, YieldingThreadsTakeTurns) {
  // On one worker, strictly; on several, all of them end.
  std::vector<int> order;
  team.run([&] {
    auto turn = [&] {
      for (int i = 0; i < 3; ++i) {
        if (GetParam() == 1) {
          order.push_back(static_cast<int>(self()->id));
        }
        yield();
      }
    };
    Thread* const a = team.go(turn);
    Thread* const b = team.go(turn);
    join(*a);
    join(*b);
  });
  if (GetParam() == 1) {
    ASSERT_EQ(order.size(), 6U);
    EXPECT_NE(order[0], order[1]);
    EXPECT_EQ(order[0], order[2]);
    EXPECT_EQ(order[1], order[3]);
  }
}

TEST_P(TeamTest, DetachedThreadsEndByThemselves) {
  std::atomic<int> ended{0};
  auto function = [&] { ended.fetch_add(1); };
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0) {
      (void)team.go(function, {.detached = true});
    } else {
      detach(*team.go(function));
    }
  }
  while (team->live_thread_count() != 0) {
    yield();
  }
  EXPECT_EQ(ended.load(), 200);
}

TEST_P(TeamTest, TokenGivenBeforeParkIsTakenAtOnce) {
  team.run([&] {
    unpark(*self());
    unpark(*self());
    park();  // Two tokens are one.
    EXPECT_FALSE(park_until(team->now_ns() + 1'000'000));
  });
}

TEST_P(TeamTest, BoundThreadStaysOnItsWorker) {
  const std::uint32_t home = GetParam() - 1;
  bool is_home = true;
  auto function = [&] {
    for (int i = 0; i < 1000; ++i) {
      is_home = is_home && worker_index(*self()->worker.load()) == home &&
                worker_index(*this_worker()) == home;
      yield();
    }
  };
  join(*team.go(function, {.worker = home, .bound = true}));
  EXPECT_TRUE(is_home);
}

// A ring of threads passes a token by park/unpark; kernel threads outside unpark at random.
TEST_P(TeamTest, ParkStormLosesNoWakeUp) {
  constexpr int kThreads = 16;
  constexpr int kRounds = kSanitizedTests ? 200 : 3000;
  struct Ring {
    Thread* threads[kThreads] = {};
    std::atomic<int> position{0};
    std::atomic<bool> is_over{false};
  } ring;
  struct Member {
    Ring* ring;
    int index;
    void operator()() const {
      for (int round = 0; round < kRounds; ++round) {
        while (ring->position.load(std::memory_order_acquire) != round * kThreads + index) {
          park();
        }
        ring->position.fetch_add(1, std::memory_order_release);
        unpark(*ring->threads[(index + 1) % kThreads]);
      }
    }
  };
  std::vector<Member> members;
  for (int i = 0; i < kThreads; ++i) {
    members.push_back({&ring, i});
  }
  for (int i = 0; i < kThreads; ++i) {
    // All are there before the first runs: it parks until unparked below.
    ring.position.store(-1);
    ring.threads[i] = team.go(members[i]);
  }
  ring.position.store(0);
  unpark(*ring.threads[0]);
  std::vector<std::thread> foreign;
  for (int i = 0; i < 2; ++i) {
    foreign.emplace_back([&, i] {
      Random random{static_cast<std::uint64_t>(i)};
      while (!ring.is_over.load(std::memory_order_acquire)) {
        unpark(*ring.threads[random.below(kThreads)]);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }
  while (ring.position.load() != kRounds * kThreads) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ring.is_over.store(true, std::memory_order_release);
  for (auto& thread : foreign) {
    thread.join();
  }
  for (Thread* const thread : ring.threads) {
    join(*thread);
  }
}

TEST_P(TeamTest, KernelThreadsSpawnAndJoinAtTheSameTime) {
  std::atomic<int> ended{0};
  auto function = [&] {
    yield();
    ended.fetch_add(1);
  };
  std::vector<std::thread> kernel_threads;
  for (int i = 0; i < 3; ++i) {
    kernel_threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) {
        join(*team.go(function));
      }
    });
  }
  for (auto& thread : kernel_threads) {
    thread.join();
  }
  EXPECT_EQ(ended.load(), 600);
}

TEST_P(TeamTest, ParkUntilEndsByDeadlineOrByToken) {
  team.run([&] {
    const std::uint64_t begin = team->now_ns();
    EXPECT_FALSE(park_until(begin + 5'000'000));
    EXPECT_GE(team->now_ns(), begin + 5'000'000);
    Thread* const me = self();
    auto waker = [&] { unpark(*me); };
    Thread* const other = team.go(waker);
    EXPECT_TRUE(park_until(team->now_ns() + 20'000'000'000));
    join(*other);
  });
}

TEST_P(TeamTest, SleepersWakeInTheOrderOfTheirDeadlines) {
  constexpr int kCount = 20;
  std::atomic<int> late{0};
  struct Sleeper {
    std::uint64_t ns;
    std::atomic<int>* late;
    const TestTeam* team;
    void operator()() const {
      const std::uint64_t begin = (*team)->now_ns();
      sleep_for(ns);
      late->fetch_add((*team)->now_ns() - begin < ns ? 1 : 0);
    }
  };
  std::vector<Sleeper> sleepers;
  for (int i = 0; i < kCount; ++i) {
    sleepers.push_back({static_cast<std::uint64_t>((i * 7) % kCount) * 500'000, &late, &team});
  }
  std::vector<Thread*> threads;
  for (auto& sleeper : sleepers) {
    threads.push_back(team.go(sleeper));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(late.load(), 0);
}

TEST_P(TeamTest, FrozenThreadGoesOnWhereItIsStarted) {
  std::vector<int> steps;
  struct Context {
    TestTeam* team;
    std::vector<int>* steps;
  } context{&team, &steps};
  auto function = [&] {
    steps.push_back(1);
    freeze(
        [](Thread& thread, void* argument) {
          auto& its = *static_cast<Context*>(argument);
          EXPECT_EQ(self(), nullptr);
          its.steps->push_back(2);
          (*its.team)->start(thread);
        },
        &context);
    steps.push_back(3);
  };
  join(*team.go(function));
  EXPECT_EQ(steps, (std::vector{1, 2, 3}));
}

TEST_P(TeamTest, IdleTeamUsesNoProcessor) {
  team.run([] {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto processor_ms = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
  };
  // Workers that had to wait for a processor may have looked for work in the first of the whiles.
  double used = 300;
  for (int i = 0; i < 20 && used >= 30; ++i) {
    const double before = processor_ms();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    used = processor_ms() - before;
  }
  EXPECT_LT(used, 30.0);
}

TEST(Team, MainIsAWorkerUntilStop) {
  TestTeam team{2, {.main_is_worker = true}};
  std::uint32_t worker = 9;
  auto function = [&] {
    worker = worker_index(*this_worker());
    team->stop();
  };
  Thread* const thread = team.go(function, {.worker = 0, .bound = true});
  team->run();
  EXPECT_EQ(worker, 0U);
  join(*thread);
}

TEST(Team, StuckThreadIsTakenByAnotherWorker) {
  // The first thread never leaves its worker; the second waits behind it.
  TestTeam team{2};
  std::atomic<bool> has_run{false};
  auto second = [&] { has_run.store(true); };
  auto first = [&] {
    Thread* const other = team.go(second);
    const std::uint64_t limit = now_ns() + 100'000'000'000;
    while (!has_run.load() && now_ns() < limit) {
    }
    EXPECT_TRUE(has_run.load());
    join(*other);
  };
  join(*team.go(first));
}

TEST(Team, NoWorkersIsAnError) {
  auto team = Team::open({.worker_count = 0});
  ASSERT_FALSE(team);
  EXPECT_NE(team.error().text.find("at least 1"), std::string::npos);
}

TEST(TeamDeathTest, JoiningADetachedThreadBreaksARule) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        TestTeam team{1};
        auto waits = [] { park(); };
        join(*team.go(waits, {.detached = true}));
      },
      "not when it is detached");
}

}  // namespace
}  // namespace sterna::threads
