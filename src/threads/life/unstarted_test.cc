// Threads that are made, named, and started later or never.
#include "threads/life/unstarted.h"

#include <atomic>

#include <gtest/gtest.h>

#include "threads/control/cancel.h"
#include "threads/control/control.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

void count_up(void* count) {
  static_cast<std::atomic<int>*>(count)->fetch_add(1, std::memory_order_relaxed);
}

class UnstartedTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  Thread& make(const ThreadOptions& options = {}, bool has_own_locals = false) {
    auto made = make_unstarted(*team, options, has_own_locals, count_up, &ran);
    check(made.has_value(), "the thread is made");
    return *made.value();
  }

  TestTeam team{GetParam()};
  std::atomic<int> ran{0};
};
INSTANTIATE_TEST_SUITE_P(Workers, UnstartedTest, testing::Values(1, 2, 8));

TEST_P(UnstartedTest, NobodyWaitsForItBeforeItsStartAndItsJoinerDoes) {
  for (const bool has_own_locals : {false, true}) {
    ran = 0;
    Thread& thread = make({.name = "later", .guard_bytes = 4096}, has_own_locals);
    EXPECT_EQ(team->live_thread_count(), 0U);
    EXPECT_EQ(try_join_until(thread, team->now_ns() + 1'000'000), JoinOutcome::timed_out);
    auto joins = [&] { EXPECT_EQ(try_join_until(thread, kNever), JoinOutcome::ended); };
    Thread* const joiner = team.go(joins);
    EXPECT_EQ(ran.load(), 0);
    start_unstarted(thread);
    join(*joiner);
    EXPECT_EQ(ran.load(), 1);
    EXPECT_EQ(team->live_thread_count(), 0U);
  }
}

TEST_P(UnstartedTest, WhatIsAskedBeforeItsStartCounts) {
  Thread& held = make();
  Thread* const one = &held;
  ASSERT_TRUE(hold({&one, 1}, kNever));
  set_priority(held, 20);
  start_unstarted(held);
  EXPECT_EQ(try_join_until(held, team->now_ns() + 1'000'000), JoinOutcome::timed_out);
  EXPECT_EQ(ran.load(), 0);
  EXPECT_EQ(held.priority.load(), 20);
  unhold(held);
  join(held);
  auto cancelled =
      make_unstarted(*team, {.cancellable = true}, false, [](void*) { park(); }, nullptr);
  ASSERT_TRUE(cancelled);
  cancel(*cancelled.value());
  start_unstarted(*cancelled.value());
  EXPECT_EQ(try_join_until(*cancelled.value(), kNever), JoinOutcome::cancelled);
}

TEST_P(UnstartedTest, EndsWithoutHavingRunAndLeavesNothing) {
  for (int i = 0; i < 100; ++i) {
    Thread& joined = make({}, i % 10 == 0);
    std::atomic<int> cancelled{0};
    auto joins = [&] {
      cancelled += try_join_until(joined, kNever) == JoinOutcome::cancelled ? 1 : 0;
    };
    Thread* const joiner = team.go(joins);
    end_unstarted(joined);
    join(*joiner);
    EXPECT_EQ(cancelled.load(), 1);
    Thread& later = make();
    end_unstarted(later);
    EXPECT_EQ(try_join_until(later, kNever), JoinOutcome::cancelled);
    Thread& detached = make();
    detach(detached);
    end_unstarted(detached);
    end_unstarted(make({.detached = true}));
    // The next one in those slots is a new thread.
    Thread& next = make();
    start_unstarted(next);
    EXPECT_EQ(try_join_until(next, kNever), JoinOutcome::ended);
  }
  EXPECT_EQ(ran.load(), 100);
  EXPECT_EQ(team->live_thread_count(), 0U);
}

}  // namespace
}  // namespace sterna::threads
