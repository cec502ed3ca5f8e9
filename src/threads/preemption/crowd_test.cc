// How far apart ticks are: what a share says, and the share of a team beside other processes on one
// processor. Nothing is timed: a share that is never seen never ends the test.
#include "threads/preemption/crowd.h"

#include <atomic>
#include <csignal>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(Crowd, WhoHadHalfOfWhatItWantedNeedsHalfOfTheTicks) {
  EXPECT_EQ(intervals_for({4 * kMs, 0}), 1U);
  EXPECT_EQ(intervals_for({3 * kMs, 1 * kMs}), 1U);
  EXPECT_EQ(intervals_for({2 * kMs, 2 * kMs}), 2U);
  EXPECT_EQ(intervals_for({1 * kMs, 4 * kMs}), 5U);
}

TEST(Crowd, TicksComeAtLastHoweverLittleItHad) {
  EXPECT_EQ(intervals_for({1, 1'000'000 * kMs}), kIntervalsMax);
  EXPECT_EQ(intervals_for({0, 4 * kMs}), kIntervalsMax);
}

/// This process, and those it makes, run on one processor meanwhile.
class OneProcessor {
 public:
  OneProcessor() noexcept {
    (void)sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    (void)sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { (void)sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

/// Processes that compute until it ends.
class Others {
 public:
  explicit Others(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // Whatever becomes of the test.
        for (;;) {
          asm volatile("");
        }
      }
      children_.push_back(child);
    }
  }
  ~Others() { end(); }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;

  void end() {
    for (const pid_t child : children_) {
      (void)kill(child, SIGKILL);
      (void)waitpid(child, nullptr, 0);
    }
    children_.clear();
  }

 private:
  std::vector<pid_t> children_;
};

/// A thread that computes, looked at as a ticker does.
class CrowdOfTeam : public testing::Test {
 protected:
  void SetUp() override {
    team.run([] {});  // The worker has its kernel thread.
    // A kernel without CONFIG_SCHED_INFO: nothing could tell the share, and ticks come at their
    // usual interval, as ever.
    if (!share_of(*state().workers[0]->carrier.load())) {
      GTEST_SKIP() << "the system does not tell how long a kernel thread waited for a processor";
    }
  }
  TeamState& state() { return *team->state(); }
  std::uint32_t look() {
    usleep(4'000);
    return crowd.look(now_ns(), state());
  }

  OneProcessor one_;
  TestTeam team{1};
  Crowd crowd{1};
  std::atomic<bool> is_over{false};
};

TEST_F(CrowdOfTeam, TicksAreRareBesideOthersAndComeBackWhenThoseEnd) {
  Others others{5};
  auto compute = [&] {
    while (!is_over) {
    }
  };
  Thread* const thread = team.go(compute);
  while (look() < 3) {
  }
  others.end();
  while (look() != 1) {
  }
  is_over = true;
  join(*thread);
}

TEST_F(CrowdOfTeam, WhoSleepsInTheKernelKeepsItsTicks) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto wait = [&] {
    char byte;
    while (read(ends[0], &byte, 1) != 1) {
    }
  };
  Thread* const thread = team.go(wait);
  while (!is_asleep(*state().workers[0]->carrier.load()) || state().sleeper_count != 0) {
    usleep(100);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(look(), 1U);
  }
  ASSERT_EQ(write(ends[1], "", 1), 1);
  join(*thread);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(CrowdOfTeam, TeamWithNothingToDoHasNoShare) {
  Others others{2};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(look(), 1U);
  }
}

}  // namespace
}  // namespace sterna::threads
