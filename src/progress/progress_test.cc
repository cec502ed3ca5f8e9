// Progress and completions: with a team, without one, and between both.
#include "progress/progress.h"

#include <array>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/random.h"
#include "progress/completion.h"
#include "threads/team_fixture.h"

namespace sterna::progress {
namespace {

/// A pipe: each byte that arrives completes the completion of that number.
class PipeSource final : public Source {
 public:
  explicit PipeSource(std::span<Completion> completions) : completions_{completions} {
    check(::pipe2(ends_, O_NONBLOCK | O_CLOEXEC) == 0, "a pipe opens");
  }
  ~PipeSource() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  std::uint32_t poll() noexcept override {
    unsigned char byte = 0;
    std::uint32_t count = 0;
    while (count < 16 && ::read(ends_[0], &byte, 1) == 1) {
      completions_[byte].complete();
      ++count;
    }
    return count;
  }
  int fd() noexcept override { return ends_[0]; }
  bool prepare_sleep() noexcept override {
    ++prepared;
    return true;
  }
  void end_sleep() noexcept override { --prepared; }

  void send(unsigned char number) const { check(::write(ends_[1], &number, 1) == 1, "it is sent"); }

  int prepared = 0;

 private:
  std::span<Completion> completions_;
  int ends_[2];
};

class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Progress::open();
    ASSERT_TRUE(opened);
    progress = std::move(opened.value());
    ASSERT_TRUE(progress->add(source));
  }
  void TearDown() override {
    progress->remove(source);
    EXPECT_EQ(source.prepared, 0);
  }

  std::array<Completion, 64> completions;
  PipeSource source{completions};
  std::unique_ptr<Progress> progress;
};

TEST_F(ProgressTest, PollHandlesEvents) {
  EXPECT_EQ(progress->poll(), 0U);
  source.send(0);
  source.send(1);
  EXPECT_EQ(progress->poll(), 2U);
  EXPECT_TRUE(completions[0].done());
  EXPECT_FALSE(completions[2].done());
}

TEST_F(ProgressTest, TickPollsOnlyAfterAnIntervalWithoutAPoll) {
  using threads::SchedulingPoint;
  (void)progress->poll(SchedulingPoint::tick);
  source.send(0);
  EXPECT_EQ(progress->poll(SchedulingPoint::tick), 1U);
  source.send(1);
  EXPECT_EQ(progress->poll(), 1U);
  source.send(2);
  EXPECT_EQ(progress->poll(SchedulingPoint::tick), 0U) << "somebody has polled since";
  EXPECT_EQ(progress->poll(SchedulingPoint::tick), 1U) << "and nobody since then";
  for (unsigned char i = 3; i < 40; ++i) {
    source.send(i);
  }
  EXPECT_GT(progress->poll(SchedulingPoint::tick), 16U) << "goes on while events come";
}

TEST_F(ProgressTest, TickLeavesThePollToWhoSleeps) {
  std::thread sleeper{[&] { completions[0].wait(*progress); }};
  while (progress->counters().sleeps == 0) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(progress->poll(threads::SchedulingPoint::tick), 0U);
  }
  EXPECT_EQ(progress->counters().ticks, 0U);
  source.send(0);
  sleeper.join();
}

TEST_F(ProgressTest, KernelThreadSleepsUntilItsCompletion) {
  std::thread sender{[&] {
    while (progress->counters().sleeps == 0) {
      std::this_thread::yield();
    }
    source.send(5);
  }};
  completions[5].wait(*progress);
  EXPECT_TRUE(completions[5].done());
  sender.join();
}

TEST_F(ProgressTest, WaitEndsAtItsDeadlineAndMayBeRepeated) {
  const auto wake = completions[1].wait_for(*progress, {.deadline_ns = now_ns() + 3'000'000});
  EXPECT_EQ(wake, threads::Wake::timed_out);
  source.send(1);
  completions[1].wait(*progress);
}

TEST_F(ProgressTest, CompletionFromAnotherKernelThreadEndsTheKernelSleep) {
  std::thread other{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    completions[9].complete();
  }};
  completions[9].wait(*progress);
  other.join();
}

TEST_F(ProgressTest, SeveralKernelThreadsWaitAndOneSleepsForTheNetwork) {
  std::vector<std::thread> waiters;
  for (unsigned char i = 0; i < 6; ++i) {
    waiters.emplace_back([&, i] { completions[i].wait(*progress); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (unsigned char i = 6; i-- > 0;) {
    source.send(i);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (auto& waiter : waiters) {
    waiter.join();
  }
}

TEST_F(ProgressTest, SleepDoesNotBeginWhenTheWordHasChanged) {
  // The wake-up that came with the change has ended another sleep: nothing else would end this one.
  const std::atomic<std::uint32_t> word{0};
  EXPECT_TRUE(progress->sleep(now_ns() + 3'600'000'000'000, word, 2));
  EXPECT_EQ(progress->counters().sleeps, 0U);
}

TEST_F(ProgressTest, WaitAnyReturnsTheFirstThatIsDone) {
  Completion* const wanted[] = {&completions[3], nullptr, &completions[4]};
  EXPECT_EQ(Completion::wait_any(*progress, wanted, {.deadline_ns = now_ns() + 1'000'000}), 3U);
  source.send(4);
  EXPECT_EQ(Completion::wait_any(*progress, wanted), 2U);
}

class ProgressTeamTest : public ProgressTest, public testing::WithParamInterface<std::uint32_t> {
 protected:
  void SetUp() override {
    ProgressTest::SetUp();
    team = std::make_unique<threads::TestTeam>(GetParam(),
                                               threads::TeamOptions{.idle_hook = progress.get()});
  }
  void TearDown() override {
    team.reset();
    ProgressTest::TearDown();
  }

  std::unique_ptr<threads::TestTeam> team;
};
INSTANTIATE_TEST_SUITE_P(Workers, ProgressTeamTest, testing::Values(1, 2, 4));

TEST_P(ProgressTeamTest, ParkedThreadsAreWokenByEventsWhileWorkersSleep) {
  std::vector<threads::Thread*> started;
  auto waiter = [&, next = std::make_shared<std::atomic<int>>(0)] {
    const int mine = next->fetch_add(1);
    completions[mine].wait(*progress);
  };
  for (int i = 0; i < 20; ++i) {
    started.push_back(team->go(waiter));
  }
  for (unsigned char i = 0; i < 20; ++i) {
    if (i % 5 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // All fall asleep.
    }
    source.send(i);
  }
  for (threads::Thread* const thread : started) {
    join(*thread);
  }
}

// Where processes outnumber processors a thread that is alone gives the processor away for a while
// before it parks. Here for an hour: what ends that must be another thread, or the deadline.
TEST_P(ProgressTeamTest, WhoYieldsBeforeItParksMakesWayForOthersAndForTheDeadline) {
  auto crowded = Progress::open({.spin_ns = 3'600'000'000'000, .is_oversubscribed = true});
  ASSERT_TRUE(crowded);
  auto waiter = [&] {
    EXPECT_EQ(completions[1].wait_for(*crowded.value(), {.deadline_ns = now_ns() + 2'000'000}),
              threads::Wake::timed_out);
    completions[0].wait(*crowded.value());
  };
  auto completer = [&] { completions[0].complete(); };
  threads::Thread* const first = team->go(waiter);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  threads::Thread* const second = team->go(completer);
  join(*first);
  join(*second);
}

TEST_P(ProgressTeamTest, InterruptedWaitLeavesTheCompletionUsable) {
  auto waiter = [&] {
    EXPECT_EQ(completions[0].wait_for(*progress, {.is_interruptible = true}),
              threads::Wake::interrupted);
    EXPECT_FALSE(completions[0].done());
    completions[0].wait(*progress);
  };
  threads::Thread* const thread = team->go(waiter);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  unpark(*thread);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  source.send(0);
  join(*thread);
}

TEST_P(ProgressTeamTest, AWaitForACompletionAloneEndsWithItAndLeavesTheToken) {
  bool has_token = false;
  std::atomic<bool> has_ended{false};
  auto waiter = [&] {
    completions[0].wait(*progress);
    has_ended.store(true);
    EXPECT_TRUE(completions[0].done());
    has_token = threads::park_until(now_ns());
  };
  threads::Thread* const thread = team->go(waiter);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  unpark(*thread);  // Ends nothing that is not interruptible.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(has_ended.load());
  completions[0].complete();
  join(*thread);
  EXPECT_TRUE(has_token);
}

/// Who completes comes while the waiter looks, publishes itself, leaves, or has left.
TEST_P(ProgressTeamTest, PlainWaitersAndCompletersRaceWithoutLoss) {
  constexpr int kRounds = threads::kSanitizedTests ? 500 : 20000;
  std::array<std::atomic<Completion*>, 3> mail{};
  std::atomic<int> waiters_left{3};
  const auto complete_all = [&] {
    while (waiters_left.load() > 0) {
      for (auto& slot : mail) {
        if (Completion* const completion = slot.exchange(nullptr)) {
          completion->complete();
        }
      }
      threads::yield();
    }
  };
  std::vector<threads::Thread*> started;
  std::atomic<std::size_t> next{0};
  auto waiter = [&] {
    auto& slot = mail[next.fetch_add(1)];
    for (int round = 0; round < kRounds; ++round) {
      Completion completion;
      slot.store(&completion);
      completion.wait(*progress);
      check(completion.done(), "nothing else ends such a wait");
    }
    waiters_left.fetch_sub(1);
  };
  for (int i = 0; i < 3; ++i) {
    started.push_back(team->go(waiter));
  }
  auto user = [&] { complete_all(); };
  started.push_back(team->go(user));
  std::thread kernel{complete_all};
  for (threads::Thread* const thread : started) {
    join(*thread);
  }
  kernel.join();
}

TEST_P(ProgressTeamTest, WaitersTimersAndCompletersRaceWithoutLoss) {
  constexpr int kRounds = threads::kSanitizedTests ? 100 : 2000;
  std::array<std::atomic<Completion*>, 4> mail{};
  std::atomic<int> rounds_left{kRounds * 2};
  struct Waiter {
    Progress* progress;
    std::atomic<Completion*>* mail;
    std::atomic<int>* rounds_left;
    void operator()() const {
      for (int round = 0; round < kRounds; ++round) {
        Completion one;
        Completion two;
        mail[0].store(&one);
        mail[1].store(&two);
        Completion* const both[] = {&one, &two};
        while (!one.done() || !two.done()) {
          Completion* const left[] = {one.done() ? nullptr : both[0],
                                      two.done() ? nullptr : both[1]};
          (void)Completion::wait_any(*progress, left, {.deadline_ns = now_ns() + 30'000});
        }
        rounds_left->fetch_sub(1);
      }
    }
  } first{progress.get(), &mail[0], &rounds_left}, second{progress.get(), &mail[2], &rounds_left};
  threads::Thread* const a = team->go(first);
  std::thread kernel{[&] { second(); }};
  std::vector<std::thread> completers;
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    completers.emplace_back([&, seed] {
      Random random{seed};
      while (rounds_left.load() > 0) {
        if (Completion* const completion = mail[random.below(4)].exchange(nullptr)) {
          completion->complete();
        }
        std::this_thread::yield();
      }
    });
  }
  join(*a);
  kernel.join();
  for (auto& thread : completers) {
    thread.join();
  }
}

}  // namespace
}  // namespace sterna::progress
