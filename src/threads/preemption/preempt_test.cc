// Preemption and take-over. What would hang without them is the method: a thread that computes
// until another one of its worker has done something, which it can only do if it gets the worker.
#include "threads/preemption/preempt.h"

#include <array>
#include <atomic>

#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "threads/carriers/border.h"
#include "threads/carriers/carrier.h"
#include "threads/preemption/computing.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

TeamOptions with(PreemptMode mode) {
  return {.steal = false, .tick_ns = kMs, .preempt = mode, .slice_ns = kMs};
}

void compute_for(std::uint64_t duration_ns) {
  const std::uint64_t end = now_ns() + duration_ns;
  compute_until([&] { return now_ns() >= end; });
}

TEST(Preempt, AThreadThatComputesGivesWayAfterItsSlice) {
  TestTeam team{1, with(PreemptMode::slice)};
  std::atomic<int> turn{0};
  auto plays = [&](int mine) {
    return [&turn, mine] {
      for (int round = 0; round < 20; ++round) {
        compute_until([&] { return turn.load() % 3 == mine; });
        turn.fetch_add(1);
      }
    };
  };
  auto a = plays(0);
  auto b = plays(1);
  auto c = plays(2);
  std::array<Thread*, 3> threads{team.go(a, kUser), team.go(b, kUser), team.go(c, kUser)};
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(turn.load(), 60);
  EXPECT_GE(team->state()->preemptor->preempted_count.load(), 40U);
}

TEST(Preempt, WithoutIt_AThreadThatComputesKeepsItsWorker) {
  TestTeam team{1, {.steal = false, .tick_ns = kMs, .take_over = true}};
  std::atomic<bool> is_done{false};
  bool was_done = false;
  auto computes = [&] {
    compute_for(20 * kMs);
    is_done = true;
  };
  auto waits = [&] { was_done = is_done; };
  Thread* const first = team.go(computes, kUser);
  Thread* const second = team.go(waits, kUser);
  join(*first);
  join(*second);
  EXPECT_TRUE(was_done);
  EXPECT_EQ(team->state()->preemptor->preempted_count.load(), 0U);
}

TEST(Preempt, AThreadThatIsNotPreemptibleKeepsItsWorker) {
  TestTeam team{1, with(PreemptMode::slice)};
  std::atomic<bool> is_done{false};
  std::atomic<bool> is_late{false};
  bool was_done = false;
  auto computes = [&] {
    compute_for(20 * kMs);
    is_done = true;
  };
  auto waits = [&] { was_done = is_done; };
  Thread* const first = team.go(computes, {.preemption = Preemption::none, .is_user_code = true});
  Thread* const second = team.go(waits, kUser);
  join(*first);
  join(*second);
  EXPECT_TRUE(was_done);
  // The same for a while only, of a thread that is.
  is_done = false;
  std::atomic<bool> is_inside{false};
  std::atomic<bool> is_other_there{false};
  auto computes_twice = [&] {
    disable_preemption();
    is_inside = true;
    compute_until([&] { return is_other_there.load(); });
    compute_for(20 * kMs);
    is_done = true;
    enable_preemption();
    compute_until([&] { return is_late.load(); });
  };
  auto waits_again = [&] {
    was_done = is_done;
    is_late = true;
  };
  Thread* const third = team.go(computes_twice, kUser);
  compute_until([&] { return is_inside.load(); });  // Before that it may be preempted.
  Thread* const fourth = team.go(waits_again, kUser);
  is_other_there = true;
  join(*third);
  join(*fourth);
  EXPECT_TRUE(was_done);
}

TEST(Preempt, OthersForbidAndAllowIt) {
  TestTeam team{1, with(PreemptMode::slice)};
  std::atomic<bool> is_done{false};
  auto computes = [&] { compute_until([&] { return is_done.load(); }); };
  auto ends_it = [&] { is_done = true; };
  Thread* const first = team.go(computes, {.preemption = Preemption::none, .is_user_code = true});
  EXPECT_EQ(preemption_of(*first), Preemption::none);
  Thread* const second = team.go(ends_it, kUser);
  sleep_for(20 * kMs);
  EXPECT_FALSE(is_done.load()) << "it was born so";
  set_preemption(*first, Preemption::as_team);
  EXPECT_EQ(preemption_of(*first), Preemption::as_team);
  join(*second);
  join(*first);
  // One that was born without, and the next thread of its slot is as usual again.
  is_done = false;
  Thread* const third = team.go(computes, kUser);
  EXPECT_EQ(preemption_of(*third), Preemption::as_team);
  set_preemption(*third, Preemption::none);
  sleep_for(5 * kMs);  // What was on its way has come.
  Thread* const fourth = team.go(ends_it, kUser);
  sleep_for(20 * kMs);
  EXPECT_FALSE(is_done.load());
  set_preemption(*third, Preemption::as_team);
  join(*fourth);
  join(*third);
}

TEST(Preempt, AThreadInTheRuntimeIsLeftAlone) {
  TestTeam team{1, with(PreemptMode::slice)};
  std::atomic<bool> is_done{false};
  bool was_done = false;
  std::atomic<bool> is_inside{false};
  std::atomic<bool> is_other_there{false};
  auto computes = [&] {
    const RuntimeEntry entry;
    is_inside = true;
    compute_until([&] { return is_other_there.load(); });
    compute_for(20 * kMs);
    is_done = true;
  };
  auto waits = [&] { was_done = is_done; };
  Thread* const first = team.go(computes, kUser);
  compute_until([&] { return is_inside.load(); });  // Before that it may be preempted.
  Thread* const second = team.go(waits, kUser);
  is_other_there = true;
  join(*first);
  join(*second);
  EXPECT_TRUE(was_done);
}

TEST(Preempt, SwitchesAndPreemptionsMix) {
  TestTeam team{2, {.tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<std::uint32_t> seed{0};
  std::atomic<std::uint64_t> sum{0};
  auto works = [&] {
    std::uint32_t state = seed.fetch_add(1) + 1;
    for (int i = 0; i < 300; ++i) {
      state = state * 1664525 + 1013904223;
      compute_for((state >> 16) % 200'000);
      const RuntimeEntry entry;
      if (state % 3 == 0) {
        yield();
      } else if (state % 16 == 1) {
        sleep_for(10'000);
      } else if (state % 16 == 2) {
        auto adds = [&] { sum += 1; };
        join(*team.go(adds, kUser));
      }
      sum += 1;
    }
  };
  std::array<Thread*, 8> threads;
  for (Thread*& thread : threads) {
    thread = team.go(works, kUser);
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_GE(sum.load(), 2400U);
}

TEST(Preempt, TheInterruptedThreadIsTheNextOfItsOwn) {
  TestTeam team{1, with(PreemptMode::communication)};
  std::atomic<int> step{0};
  std::atomic<bool> is_waiting{false};
  int urgent_at = 0;
  int other_at = 0;
  auto communicates = [&] {
    is_waiting = true;
    {
      const RuntimeEntry entry;
      park();
    }
    urgent_at = ++step;
  };
  auto computes = [&] {
    compute_until([&] { return step.load() == 1; });
    compute_for(5 * kMs);
    ++step;
  };
  auto other = [&] { other_at = ++step; };
  Thread* const urgent =
      team.go(communicates, {.priority = kPriorityRealTime, .is_user_code = true});
  while (!is_waiting) {
    sleep_for(kMs);
  }
  Thread* const first = team.go(computes, kUser);
  Thread* const second = team.go(other, kUser);
  sleep_for(10 * kMs);
  unpark(*urgent);
  join(*urgent);
  join(*first);
  join(*second);
  EXPECT_EQ(urgent_at, 1);
  EXPECT_EQ(other_at, 3);  // The thread that computed went on before it: 2.
}

TEST(TakeOver, OthersGoOnWhileAThreadSleepsInTheKernel) {
  TestTeam team{1, {.steal = false, .tick_ns = kMs, .take_over = true}};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  char got = 0;
  for (int round = 0; round < 5; ++round) {
    auto reads = [&] { EXPECT_EQ(::read(ends[0], &got, 1), 1); };
    auto writes = [&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); };
    Thread* const reader = team.go(reads, kUser);
    Thread* const writer = team.go(writes, kUser);
    join(*reader);
    join(*writer);
    EXPECT_EQ(std::exchange(got, '\0'), 'x');
  }
  EXPECT_GE(team->state()->preemptor->taken_count.load(), 5U);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(TakeOver, ABlockingRegionLetsOthersGoOnAtOnce) {
  TestTeam team{1};  // No ticker.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  char got = 0;
  for (int round = 0; round < 50; ++round) {
    auto reads = [&] {
      EXPECT_TRUE(enter_blocking());
      EXPECT_EQ(::read(ends[0], &got, 1), 1);
      leave_blocking();
    };
    auto writes = [&] { EXPECT_EQ(::write(ends[1], "x", 1), 1); };
    const ThreadOptions options{.is_user_code = round % 2 != 0};
    Thread* const reader = team.go(reads, options);
    Thread* const writer = team.go(writes, options);
    join(*reader);
    join(*writer);
    EXPECT_EQ(std::exchange(got, '\0'), 'x');
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(TakeOver, WhoHoldsAForeignLockGetsTheWorkerBack) {
  TestTeam team{1, with(PreemptMode::slice)};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> inside{0};
  std::atomic<int> count{0};
  auto locks = [&] {
    for (int i = 0; i < 10; ++i) {
      pthread_mutex_lock(&mutex);
      EXPECT_EQ(inside.fetch_add(1), 0);
      compute_for(3 * kMs);
      inside.fetch_sub(1);
      pthread_mutex_unlock(&mutex);
      ++count;
    }
  };
  std::array<Thread*, 4> threads;
  for (Thread*& thread : threads) {
    thread = team.go(locks, kUser);
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(count.load(), 40);
}

TEST(TakeOver, WhoHoldsALockThatTheRuntimeWantsGoesOnWithoutAWorker) {
  TestTeam team{1, with(PreemptMode::slice)};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> inside{0};
  std::atomic<int> holders{2};
  int count = 0;
  auto holds = [&] {
    for (int i = 0; i < 10; ++i) {
      pthread_mutex_lock(&mutex);
      EXPECT_EQ(inside.fetch_add(1), 0);
      compute_for(3 * kMs);  // It is preempted here, with the lock.
      inside.fetch_sub(1);
      pthread_mutex_unlock(&mutex);
      compute_for(kMs);
    }
    --holders;
  };
  auto wants = [&] {  // In the runtime: nobody can take its worker over.
    while (holders.load() != 0) {
      pthread_mutex_lock(&mutex);
      EXPECT_EQ(inside.load(), 0);
      pthread_mutex_unlock(&mutex);
      ++count;
      yield();
    }
  };
  std::array<Thread*, 3> threads{team.go(holds, kUser), team.go(wants), team.go(holds, kUser)};
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_GE(count, 1);
}

TEST(TakeOver, SleepsOfManyThreadsOverlap) {
  TestTeam team{2, {.tick_ns = kMs, .take_over = true}};
  std::atomic<int> asleep{0};
  std::atomic<int> most{0};
  auto sleeps = [&] {
    const int now = ++asleep;
    for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    // Until all of them are here: no worker has the time to wait for one alone.
    while (most.load() < 12) {
      const timespec time{.tv_sec = 0, .tv_nsec = 20'000'000};
      ::nanosleep(&time, nullptr);
    }
    --asleep;
  };
  std::array<Thread*, 12> threads;
  for (Thread*& thread : threads) {
    thread = team.go(sleeps, kUser);
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(most.load(), 12);
}

}  // namespace
}  // namespace sterna::threads
