// Deadlines that come while every worker has a thread that computes, or sleeps in the kernel: a
// tick finds them. As in preempt_test.cc, what would hang without it is the method.
#include <atomic>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "threads/carriers/border.h"
#include "threads/control/cancel.h"
#include "threads/preemption/computing.h"
#include "threads/preemption/preempt.h"
#include "threads/seeds/seed.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

void sleep_in_user_code(std::uint64_t duration_ns) {
  const RuntimeEntry entry;
  sleep_for(duration_ns);
}

class Pipe {
 public:
  Pipe() { check(pipe(ends_) == 0, "a pipe opens"); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void read_one() const {
    char byte = 0;
    while (read(ends_[0], &byte, 1) != 1) {  // Interrupted by a signal.
    }
  }
  void write_one() const { EXPECT_EQ(write(ends_[1], "", 1), 1); }

 private:
  int ends_[2] = {};
};

class Deadline : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestTeam{1, {.tick_ns = kMs, .take_over = true}}->can_preempt()) {
      GTEST_SKIP() << "the system has no membarrier";
    }
  }
};

class Deadlines : public Deadline, public testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Workers, Deadlines, testing::Values(1, 2, 4));

TEST_P(Deadlines, ComeWhileAllWorkersSleepInTheKernel) {
  TestTeam team{GetParam(), {.steal = false, .tick_ns = kMs, .take_over = true}};
  const Pipe pipe;
  auto reads = [&] { pipe.read_one(); };
  auto writes = [&] {
    sleep_in_user_code(5 * kMs);
    for (std::uint32_t i = 0; i < GetParam(); ++i) {
      pipe.write_one();
    }
  };
  std::vector<Thread*> threads{team.go(writes, {.worker = 0, .is_user_code = true})};
  for (std::uint32_t i = 0; i < GetParam(); ++i) {
    threads.push_back(team.go(reads, {.worker = i, .is_user_code = true}));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST_P(Deadlines, ComeWhileAllWorkersCompute) {
  TestTeam team{GetParam(),
                {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<bool> is_over{false};
  auto computes = [&] { compute_until([&] { return is_over.load(); }); };
  auto ends_it = [&] {
    sleep_in_user_code(5 * kMs);
    is_over = true;
  };
  std::vector<Thread*> threads{team.go(ends_it, {.worker = 0, .is_user_code = true})};
  for (std::uint32_t i = 0; i < GetParam(); ++i) {
    threads.push_back(team.go(computes, {.worker = i, .is_user_code = true}));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST_F(Deadline, OfAHigherPriorityInterruptsWhoHasNoSlices) {
  TestTeam team{1, {.tick_ns = kMs, .preempt = PreemptMode::communication}};
  std::atomic<bool> is_over{false};
  auto computes = [&] { compute_until([&] { return is_over.load(); }); };
  auto ends_it = [&] {
    sleep_in_user_code(5 * kMs);
    is_over = true;
  };
  Thread* const urgent =
      team.go(ends_it, {.priority = kPriorityRealTime, .is_user_code = true});
  join(*team.go(computes, kUser));
  join(*urgent);
}

TEST_F(Deadline, ThatIsFarAwayKeepsNoTickerAwake) {
  TestTeam team{1, {.tick_ns = kMs, .take_over = true}};
  auto sleeps = [] { sleep_in_user_code(3'600'000 * kMs); };
  Thread* const thread = team.go(sleeps, {.cancellable = true, .is_user_code = true});
  while (team->state()->next_timer_ns() == kNever ||
         !team->state()->tickers[0]->is_resting() || !team->state()->tickers[1]->is_resting()) {
    sleep_for(kMs);
  }
  cancel(*thread);
  join(*thread);
}

TEST_F(Deadline, SeedsOfWhoSleepsInTheKernelRunMeanwhile) {
  TestTeam team{1, {.tick_ns = kMs, .take_over = true}};
  const Pipe pipe;
  auto plants = [&] {
    Seed seed;
    {
      const RuntimeEntry entry;
      plant(seed, [](void* its) { static_cast<const Pipe*>(its)->write_one(); },
            const_cast<Pipe*>(&pipe));
    }
    pipe.read_one();
    const RuntimeEntry entry;
    join(seed);
  };
  join(*team.go(plants, kUser));
}

// One worker, which looks at its timers at every 64th switch only.
TEST(PassedDeadline, IsKnownAfterOneTurnOfTheOthers) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  int turns = 0;
  auto others = [&] {
    while (!is_over) {
      ++turns;
      yield();
    }
  };
  auto asks = [&] {
    while (turns == 0) {
      yield();
    }
    int before = turns;
    sleep_for(0);
    EXPECT_EQ(turns - before, 1);
    before = turns;
    EXPECT_FALSE(park_until(team->now_ns()));
    EXPECT_EQ(turns - before, 1);
    before = turns;
    unpark(*self());
    EXPECT_TRUE(park_until(0)) << "what is there is taken, whatever the deadline";
    EXPECT_EQ(turns, before);
    is_over = true;
  };
  Thread* const turning = team.go(others);
  join(*team.go(asks));
  join(*turning);
}

}  // namespace
}  // namespace sterna::threads
