// Who is taken to wait at once, and when no longer.
#include "net/transfer/wait_habit.h"

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

void start_and_wait(WaitHabit& habit, std::uint64_t& now_ns, std::uint64_t after_ns) {
  habit.started(now_ns);
  now_ns += after_ns;
  ASSERT_TRUE(habit.is_open());
  habit.waits(now_ns);
  EXPECT_FALSE(habit.is_open());
}

TEST(WaitHabit, NeedsTwoWaitsAtOnceInARowAndEndsWithOneLateOne) {
  WaitHabit habit;
  std::uint64_t now_ns = 1'000'000;
  EXPECT_FALSE(habit.waits_at_once());
  start_and_wait(habit, now_ns, 200);
  EXPECT_FALSE(habit.waits_at_once());
  start_and_wait(habit, now_ns, 200);
  EXPECT_TRUE(habit.waits_at_once());
  start_and_wait(habit, now_ns, 100'000);
  EXPECT_FALSE(habit.waits_at_once());
  start_and_wait(habit, now_ns, 200);
  EXPECT_FALSE(habit.waits_at_once());
}

TEST(WaitHabit, OnlyWhatIsBetweenTheLastStartAndTheWaitCounts) {
  WaitHabit habit;
  std::uint64_t now_ns = 1'000'000;
  for (int i = 0; i < 2; ++i) {
    habit.started(now_ns);
    now_ns += 100'000;  // Before another one.
    start_and_wait(habit, now_ns, 200);
  }
  EXPECT_TRUE(habit.waits_at_once());
}

TEST(WaitHabit, WhatTheCallsThemselvesTakeIsNoComputation) {
  WaitHabit habit;
  for (std::uint64_t now_ns = 1'000'000; now_ns <= 2'000'000; now_ns += 1'000'000) {
    habit.started(now_ns);
    habit.was_away(now_ns + 50'000, now_ns + 50'300);
    habit.waits(now_ns + 90'000);
  }
  EXPECT_TRUE(habit.waits_at_once());
  habit.started(3'000'000);
  habit.was_away(3'000'000, 3'100'000);
  habit.waits(3'100'100);
  EXPECT_FALSE(habit.waits_at_once());
}

TEST(WaitHabit, WhoWaitsForOneOfTwoIsAboutToWaitForTheOther) {
  WaitHabit habit;
  std::uint64_t now_ns = 1'000'000;
  start_and_wait(habit, now_ns, 200);
  EXPECT_FALSE(habit.is_about_to_wait()) << "that is no habit yet";
  start_and_wait(habit, now_ns, 200);
  EXPECT_TRUE(habit.is_about_to_wait()) << "for what came first, and now for what it had started";
  habit.ended();
  EXPECT_FALSE(habit.is_about_to_wait());
  habit.started(now_ns);
  EXPECT_TRUE(habit.is_about_to_wait());
}

TEST(WaitHabit, WhatEndsWithinItsCallTellsOfComputationAsWell) {
  WaitHabit habit;
  std::uint64_t now_ns = 1'000'000;
  start_and_wait(habit, now_ns, 200);
  start_and_wait(habit, now_ns, 200);
  habit.started(now_ns);
  habit.ended();
  EXPECT_TRUE(habit.is_open());
  habit.was_away(now_ns + 10'000, now_ns + 110'000);
  habit.was_away(now_ns + 110'200, now_ns + 110'300);  // After a wait for what had ended.
  habit.waits(now_ns + 120'000);
  EXPECT_FALSE(habit.waits_at_once());
}

TEST(WaitHabit, ComputesForTheShorterOneOfTheLastTwo) {
  WaitHabit habit;
  std::uint64_t now_ns = 1'000'000;
  const auto compute_for = [&](std::uint64_t ns) {
    habit.started(now_ns);
    habit.was_away(now_ns + 5'000, now_ns + 5'000 + ns);
    now_ns += ns + 10'000;
    habit.waits(now_ns);
    return habit.computes_ns();
  };
  EXPECT_EQ(habit.computes_ns(), 0U);
  EXPECT_EQ(compute_for(100'000), 0U);  // Once is no habit.
  EXPECT_EQ(compute_for(80'000), 80'000U);
  EXPECT_EQ(compute_for(90'000), 80'000U);
  EXPECT_EQ(compute_for(90'000), 90'000U);
  EXPECT_EQ(compute_for(200), 200U);
  EXPECT_EQ(compute_for(90'000), 200U);
}

}  // namespace
}  // namespace sterna::net
