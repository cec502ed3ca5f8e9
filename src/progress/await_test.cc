// How long who waits polls before it sleeps, on a clock that goes on with each look: no time is
// measured, and nobody sleeps in the kernel. And, on the clock of the machine, how often in all.
#include <algorithm>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "progress/completion.h"
#include "progress/progress.h"
#include "threads/team_fixture.h"
#include "threads/this_thread.h"

namespace sterna::progress {
namespace {

constexpr std::uint64_t kPriceNs = 20'000;
constexpr std::uint64_t kLookNs = 25;
constexpr std::uint64_t kWakeUpNs = 5'000;

/// Answers after a time, or after so many looks. Who would sleep is told that the time has passed.
class AnswerSource final : public Source {
 public:
  explicit AnswerSource(ManualClock& clock) : clock_{clock} {}

  std::uint32_t poll() noexcept override {
    ++looks;
    clock_.advance(kLookNs);
    if (awaited_ == nullptr || clock_.now_ns() < due_ns_ || looks < due_looks_) {
      return 0;
    }
    std::exchange(awaited_, nullptr)->complete();
    return 1;
  }
  bool prepare_sleep() noexcept override {
    if (awaited_ == nullptr) {
      return true;
    }
    ++sleeps;
    clock_.advance(kWakeUpNs + std::max(due_ns_, clock_.now_ns()) - clock_.now_ns());
    due_looks_ = 0;
    return false;
  }
  void answer_in(std::uint64_t ns, std::uint64_t after_looks, Completion& completion) {
    due_ns_ = clock_.now_ns() + ns;
    due_looks_ = looks + after_looks;
    awaited_ = &completion;
  }

  std::uint64_t looks = 0;
  std::uint32_t sleeps = 0;

 private:
  ManualClock& clock_;
  Completion* awaited_ = nullptr;
  std::uint64_t due_ns_ = 0;
  std::uint64_t due_looks_ = 0;
};

class AwaitTest : public testing::Test {
 protected:
  void open(std::uint64_t spin_ns, bool is_oversubscribed) {
    auto opened = Progress::open(
        {.spin_ns = spin_ns, .is_oversubscribed = is_oversubscribed, .clock = &clock});
    ASSERT_TRUE(opened);
    progress = std::move(opened.value());
    ASSERT_TRUE(progress->add(source));
  }
  void TearDown() override { progress->remove(source); }

  void await(int count, std::uint64_t ns, std::uint64_t looks = 0) {
    for (int i = 0; i < count; ++i) {
      Completion completion;
      source.answer_in(ns, looks, completion);
      completion.wait(*progress);
    }
  }

  ManualClock clock{1'000'000};
  AnswerSource source{clock};
  std::unique_ptr<Progress> progress;
};

TEST_F(AwaitTest, ForAnswersThatAreNearNobodySleeps) {
  open(kPriceNs, false);
  await(64, 12'000);
  EXPECT_EQ(source.sleeps, 0U);
  EXPECT_EQ(progress->counters().naps, 0U);
  EXPECT_GE(progress->counters().polls_for_ns, 3'000U);
  EXPECT_LT(progress->counters().polls_for_ns, kPriceNs);
}

TEST_F(AwaitTest, ForAnswersThatAreFarOneSleepsAtOnce) {
  open(kPriceNs, false);
  await(64, 1'000'000);
  EXPECT_EQ(source.sleeps, 64U);
  EXPECT_EQ(progress->counters().naps, 64U);
  EXPECT_EQ(progress->counters().polls_for_ns, 0U);
  // One in 32 polls for the whole price, to see whether they are far still: 800 looks.
  const std::uint64_t looks = source.looks;
  await(32, 1'000'000);
  EXPECT_LT(source.looks - looks, 800U + 32 * 340);
}

TEST_F(AwaitTest, WhenAnswersComeNearItPollsAgain) {
  open(kPriceNs, false);
  await(200, 1'000'000);
  await(400, 10'000);
  const std::uint32_t sleeps = source.sleeps;
  await(100, 10'000);
  EXPECT_EQ(source.sleeps, sleeps);
}

TEST_F(AwaitTest, OfNearAndFarAnswersOnlyTheFarOnesAreSleptFor) {
  open(kPriceNs, false);
  for (int i = 0; i < 200; ++i) {
    await(1, 10'000);
    await(1, 2'000'000);
  }
  const std::uint32_t sleeps = source.sleeps;
  await(20, 10'000);
  EXPECT_EQ(source.sleeps, sleeps);
  await(20, 2'000'000);
  EXPECT_EQ(source.sleeps, sleeps + 20);
}

TEST_F(AwaitTest, WhereTheEndIsKnownToBeNearItIsPolledFor) {
  open(kPriceNs, false);
  await(200, 100'000);
  EXPECT_EQ(progress->counters().polls_for_ns, 0U);
  std::uint32_t sleeps = source.sleeps;
  for (int i = 0; i < 20; ++i) {
    progress->expect_within(150'000);
    await(1, 100'000);
  }
  EXPECT_EQ(source.sleeps, sleeps);
  // It was wrong: then what is usual, from there on.
  progress->expect_within(150'000);
  clock.advance(1'000'000);
  for (int i = 0; i < 20; ++i) {
    progress->expect_within(50'000);
    await(1, 100'000);
  }
  EXPECT_EQ(source.sleeps, sleeps + 20);
  // One after the other, and not for ever.
  clock.advance(1'000'000);
  for (int i = 0; i < 3; ++i) {
    progress->expect_within(300'000);
  }
  sleeps = source.sleeps;
  await(1, 800'000);
  EXPECT_EQ(source.sleeps, sleeps);
  clock.advance(1'000'000);
  for (int i = 0; i < 30; ++i) {
    progress->expect_within(300'000);
  }
  await(1, 1'500'000);
  EXPECT_EQ(source.sleeps, sleeps + 1);
  clock.advance(1'000'000);
  progress->expect_within(3'000'000);
  await(1, 500'000);
  EXPECT_EQ(source.sleeps, sleeps + 2) << "what takes so long is slept for";
}

TEST_F(AwaitTest, WhoIsToSleepAtOnceDoesSoWhateverIsExpected) {
  open(0, false);
  progress->expect_within(500'000);
  await(3, 50'000);
  EXPECT_EQ(source.sleeps, 3U);
}

TEST_F(AwaitTest, WhereProcessesOutnumberProcessorsNothingIsExpected) {
  open(kPriceNs, true);
  await(64, 0, 1'000);
  const std::uint32_t sleeps = source.sleeps;
  progress->expect_within(900'000);
  await(3, 0, 1'000);
  EXPECT_EQ(source.sleeps, sleeps + 3);
}

TEST_F(AwaitTest, TheSettingIsTheBound) {
  open(0, false);
  await(3, 50'000);
  EXPECT_EQ(source.sleeps, 3U);
  EXPECT_LT(source.looks, 2'000U) << "the first look of a wait, and no more";
}

TEST_F(AwaitTest, WhereProcessesOutnumberProcessorsYieldsAreCountedNotTime) {
  open(kPriceNs, true);
  // However long the others take: it is they who have the processor.
  await(100, 0, 4);
  EXPECT_EQ(source.sleeps, 0U);
  EXPECT_GE(progress->counters().yields_for, 3U);
  EXPECT_LE(progress->counters().yields_for, 5U);
  EXPECT_EQ(progress->counters().polls_for_ns, kPriceNs) << "which nothing was learnt about";
}

TEST_F(AwaitTest, WhereYieldsDoNotHelpNoneAreMade) {
  open(kPriceNs, true);
  await(64, 0, 1'000);
  EXPECT_EQ(source.sleeps, 64U);
  EXPECT_EQ(progress->counters().yields_for, 0U);
  const std::uint64_t looks = source.looks;
  await(32, 0, 1'000);
  EXPECT_LT(source.looks - looks, 32U * 4 + 25);
}

TEST_F(AwaitTest, AThreadAloneOnItsWorkerLearnsTheSame) {
  open(kPriceNs, true);
  const threads::TestTeam team{1, {.spin_ns = 0, .idle_hook = progress.get()}};
  auto waiter = [&] {
    await(64, 0, 1'000);
    EXPECT_EQ(progress->counters().yields_for, 0U);
    await(4'000, 0, 4);
    EXPECT_GE(progress->counters().yields_for, 2U);
    EXPECT_LE(progress->counters().yields_for, 6U);
  };
  team.run(waiter);
}

// A processor that does nothing but poll does it a million times in that time; a slow one less.
constexpr std::uint64_t kLongNs = 200'000'000;
constexpr std::uint64_t kFewPolls = 50'000;

TEST(WaitInVain, OfAKernelThreadBurnsNoProcessor) {
  auto progress = Progress::open({});
  ASSERT_TRUE(progress);
  Completion never;
  do {  // On a busy machine the time may be over before it has looked for long enough to sleep.
    const std::uint64_t polls = progress.value()->counters().polls;
    EXPECT_EQ(never.wait_for(*progress.value(), {.deadline_ns = now_ns() + kLongNs}),
              threads::Wake::timed_out);
    EXPECT_LT(progress.value()->counters().polls - polls, kFewPolls);
  } while (progress.value()->counters().sleeps == 0);
}

TEST(WaitInVain, OfAThreadBurnsNoProcessor) {
  for (const bool is_oversubscribed : {false, true}) {
    auto progress = Progress::open({.is_oversubscribed = is_oversubscribed});
    ASSERT_TRUE(progress);
    const threads::TestTeam team{2, {.idle_hook = progress.value().get()}};
    auto waiter = [&] {
      Completion never;
      EXPECT_EQ(never.wait_for(*progress.value(), {.deadline_ns = now_ns() + kLongNs}),
                threads::Wake::timed_out);
    };
    team.run(waiter);
    EXPECT_LT(progress.value()->counters().polls, kFewPolls);
  }
}

TEST(WaitInVain, NobodySleepsInTheKernelWhileAThreadIsReady) {
  auto progress = Progress::open({});
  ASSERT_TRUE(progress);
  const threads::TestTeam team{1, {.spin_ns = 0, .idle_hook = progress.value().get()}};
  auto waiters = [&] {
    Completion done;
    auto other = [&] {
      for (int i = 0; i < 2'000; ++i) {
        threads::yield();
      }
      done.complete();
    };
    const std::uint64_t sleeps = progress.value()->counters().sleeps;
    threads::Thread* const thread = team.go(other);
    done.wait(*progress.value());
    join(*thread);
    EXPECT_EQ(progress.value()->counters().sleeps, sleeps);
  };
  team.run(waiters);
}

}  // namespace
}  // namespace sterna::progress
