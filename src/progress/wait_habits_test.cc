// Of several callers: who is taken to wait at once, and when no longer.
#include "progress/wait_habits.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "progress/completion.h"
#include "progress/progress.h"

namespace sterna::progress {
namespace {

constexpr std::uintptr_t kMe = 0x7fff'1000;
constexpr std::uintptr_t kOther = 0x7fff'2000;

class WaitHabitsTest : public testing::Test {
 protected:
  void start_and_wait(std::uint64_t after_ns, bool is_alone = true, std::uintptr_t who = kMe) {
    habits.started(who, now_ns);
    EXPECT_TRUE(habits.of(who).is_open);
    now_ns += after_ns;
    habits.waits(who, is_alone, now_ns);
    EXPECT_FALSE(habits.of(who).is_open);
  }
  bool waits_at_once(std::uintptr_t who = kMe) const { return habits.of(who).waits_at_once; }

  WaitHabits habits;
  std::uint64_t now_ns = 1'000'000;
};

TEST_F(WaitHabitsTest, NeedTwoWaitsAtOnceInARowAndEndWithOneLateOne) {
  EXPECT_FALSE(waits_at_once());
  start_and_wait(200);
  EXPECT_FALSE(waits_at_once());
  start_and_wait(200);
  EXPECT_TRUE(waits_at_once());
  start_and_wait(200);
  EXPECT_TRUE(waits_at_once());
  start_and_wait(100'000);
  EXPECT_FALSE(waits_at_once());
  start_and_wait(200);
  EXPECT_FALSE(waits_at_once());
}

TEST_F(WaitHabitsTest, AreSteadyAfterSixteen) {
  for (int i = 0; i < 15; ++i) {
    start_and_wait(200);
    EXPECT_FALSE(habits.of(kMe).is_steady);
  }
  start_and_wait(200);
  EXPECT_TRUE(habits.of(kMe).is_steady);
  start_and_wait(200);
  EXPECT_TRUE(habits.of(kMe).is_steady);
  start_and_wait(100'000);
  EXPECT_FALSE(habits.of(kMe).is_steady);
}

TEST_F(WaitHabitsTest, WhoLeavesItsProcessorToOthersLeavesWhatItStartedToThem) {
  start_and_wait(200);
  start_and_wait(200);
  start_and_wait(200, false);
  EXPECT_FALSE(waits_at_once());
}

TEST_F(WaitHabitsTest, WaitsForNothingThatWasStartedSayNothing) {
  start_and_wait(200);
  start_and_wait(200);
  habits.waits(kMe, false, now_ns + 1'000'000);
  EXPECT_TRUE(waits_at_once());
}

TEST_F(WaitHabitsTest, AreEachCallersOwn) {
  for (int i = 0; i < 2; ++i) {
    start_and_wait(200);
    start_and_wait(100'000, true, kOther);
  }
  EXPECT_TRUE(waits_at_once());
  EXPECT_FALSE(waits_at_once(kOther));
}

// A million callers have fewer words: nobody is taken for another one for long.
TEST_F(WaitHabitsTest, WhoComesUponTheWordOfAnotherBeginsAnew) {
  start_and_wait(200);
  start_and_wait(200);
  for (std::uintptr_t who = 1; who <= 1'000'000; ++who) {
    habits.started(who * 64, now_ns);
  }
  EXPECT_FALSE(waits_at_once());
}

// The clock of waits goes through 2^32 ns every four seconds.
TEST_F(WaitHabitsTest, LastOverTheEndOfTheirClock) {
  now_ns = (std::uint64_t{1} << 32) - 100;
  start_and_wait(200);
  start_and_wait(200);
  EXPECT_TRUE(waits_at_once());
}

TEST(ProgressHabits, AreLearntFromWaitsForCompletions) {
  ManualClock clock{1'000'000};
  const auto progress = std::move(Progress::open({.clock = &clock}).value());
  const auto wait_after = [&](std::uint64_t ns) {
    Completion completion;
    progress->has_started();
    EXPECT_TRUE(progress->habit_of_caller().is_open);
    clock.advance(ns);
    EXPECT_EQ(completion.wait_for(*progress, {.deadline_ns = 1}), threads::Wake::timed_out);
    EXPECT_FALSE(progress->habit_of_caller().is_open);
  };
  wait_after(100);
  wait_after(100);
  EXPECT_TRUE(progress->habit_of_caller().waits_at_once);
  std::thread{[&] { EXPECT_FALSE(progress->habit_of_caller().waits_at_once); }}.join();
  wait_after(100'000);
  EXPECT_FALSE(progress->habit_of_caller().waits_at_once);
}

TEST(ProgressHabits, AreLearntFromWaitsForOneOfSeveral) {
  ManualClock clock{1'000'000};
  const auto progress = std::move(Progress::open({.clock = &clock}).value());
  for (int i = 0; i < 2; ++i) {
    Completion first;
    Completion second;
    Completion* const both[] = {&first, &second};
    progress->has_started();
    EXPECT_EQ(Completion::wait_any(*progress, both, {.deadline_ns = 1}), 2U);
  }
  EXPECT_TRUE(progress->habit_of_caller().waits_at_once);
}

}  // namespace
}  // namespace sterna::progress
