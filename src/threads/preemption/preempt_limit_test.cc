// Preemptions that do not happen: one that would need a kernel thread more than
// TeamOptions::carriers_max, while everything still ends; one within the normal class.
#include <atomic>
#include <cstdint>

#include <gtest/gtest.h>

#include "threads/carriers/border.h"
#include "threads/preemption/computing.h"
#include "threads/preemption/preempt.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

/// One thread computes, a more urgent one interrupts it and computes too, and the most urgent one
/// becomes ready meanwhile.
struct Ladder {
  TestTeam team;
  bool has_room;  // For both of the lower ones to be preempted at once.
  std::atomic<int> waiting{0};
  std::atomic<int> computing{0};  // Of the two lower ones.
  std::atomic<bool> is_woken{false};
  std::atomic<int> order{0};
  int low_at = 0;
  int middle_at = 0;
  int high_at = 0;

  Ladder(std::uint32_t carriers_max, bool has_its_room)
      : team{1,
             {.steal = false,
              .tick_ns = kMs,
              .preempt = PreemptMode::communication,
              .carriers_max = carriers_max}},
        has_room{has_its_room} {}

  void wait() {
    const RuntimeEntry entry;
    ++waiting;
    park();
  }
  void run() {
    auto computes = [&] {
      ++computing;
      compute_until([&] { return order.load() == 2; });
      low_at = ++order;
    };
    auto interrupts = [&] {
      wait();
      ++computing;
      compute_until([&] { return is_woken.load(); });
      const std::uint64_t end = now_ns() + 20 * kMs;  // The ticker looks some times.
      compute_until([&] { return has_room ? order.load() == 1 : now_ns() >= end; });
      middle_at = ++order;
    };
    auto hurries = [&] {
      wait();
      high_at = ++order;
    };
    Thread* const high =
        team.go(hurries, {.priority = kPriorityRealTime + 1, .is_user_code = true});
    Thread* const middle =
        team.go(interrupts, {.priority = kPriorityRealTime, .is_user_code = true});
    compute_until([&] { return waiting.load() == 2; });
    Thread* const low = team.go(computes, {.is_user_code = true});
    compute_until([&] { return computing.load() == 1; });
    unpark(*middle);
    compute_until([&] { return computing.load() == 2; });
    unpark(*high);
    is_woken = true;
    for (Thread* const thread : {high, middle, low}) {
      join(*thread);
    }
  }
};

TEST(PreemptLimit, WithCarriersToSpareEachInterruptsTheOneBelow) {
  Ladder ladder{8, true};
  ladder.run();
  EXPECT_EQ(ladder.high_at, 1);
  EXPECT_EQ(ladder.middle_at, 2);
  EXPECT_EQ(ladder.low_at, 3);
}

TEST(PreemptLimit, TheLastCarrierIsNotGivenAway) {
  Ladder ladder{2, false};
  ladder.run();
  EXPECT_EQ(ladder.middle_at, 1);
  EXPECT_EQ(ladder.high_at, 2);
  EXPECT_EQ(ladder.low_at, 3);
  EXPECT_LE(ladder.team->state()->preemptor->preempted_count.load(), 1U);
  EXPECT_LE(ladder.team->state()->carriers.size(), 2U);
}

TEST(PreemptLimit, WithOneCarrierNobodyIsInterrupted) {
  TestTeam team{
      1,
      {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::communication, .carriers_max = 1}};
  std::atomic<bool> is_waiting{false};
  std::atomic<bool> is_computing{false};
  std::atomic<bool> is_woken{false};
  std::atomic<bool> is_done{false};
  bool was_done = false;
  auto hurries = [&] {
    const RuntimeEntry entry;
    is_waiting = true;
    park();
    was_done = is_done;
  };
  auto computes = [&] {
    is_computing = true;
    compute_until([&] { return is_woken.load(); });
    const std::uint64_t end = now_ns() + 20 * kMs;
    compute_until([&] { return now_ns() >= end; });
    is_done = true;
  };
  Thread* const high = team.go(hurries, {.priority = kPriorityRealTime + 1, .is_user_code = true});
  compute_until([&] { return is_waiting.load(); });
  Thread* const low = team.go(computes, {.is_user_code = true});
  compute_until([&] { return is_computing.load(); });
  unpark(*high);
  is_woken = true;
  join(*high);
  join(*low);
  EXPECT_TRUE(was_done);
  EXPECT_EQ(team->state()->preemptor->preempted_count.load(), 0U);
}

TEST(PreemptNice, ThreadsInterruptNobodyOfTheirClassWhoComputes) {
  TestTeam team{1, {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::communication}};
  std::atomic<bool> is_waiting{false};
  bool has_computed = false;
  bool had_computed = false;
  auto is_nice = [&] {
    is_waiting = true;
    {
      const RuntimeEntry entry;
      park();
    }
    had_computed = has_computed;
  };
  Thread* const nice = team.go(is_nice, {.priority = kPriorityNormal + 1, .is_user_code = true});
  auto computes = [&] {
    {
      const RuntimeEntry entry;
      unpark(*nice);
    }
    const std::uint64_t end = now_ns() + 20 * kMs;  // The ticker looks some times.
    compute_until([&] { return now_ns() >= end; });
    has_computed = true;
  };
  while (!is_waiting) {
    sleep_for(kMs);
  }
  join(*team.go(computes, {.is_user_code = true}));
  join(*nice);
  EXPECT_TRUE(had_computed);
}

TEST(PreemptNice, ThreadsComeNextWhenASliceIsOver) {
  TestTeam team{1,
                {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<bool> is_waiting{false};
  std::atomic<int> step{0};
  int nice_at = 0;
  int other_at = 0;
  auto is_nice = [&] {
    is_waiting = true;
    {
      const RuntimeEntry entry;
      park();
    }
    nice_at = ++step;
  };
  auto is_equal = [&] { other_at = ++step; };
  Thread* const nice = team.go(is_nice, {.priority = kPriorityNormal + 1, .is_user_code = true});
  while (!is_waiting) {
    sleep_for(kMs);
  }
  Thread* other = nullptr;
  auto computes = [&] {
    {
      const RuntimeEntry entry;
      disable_preemption();
      other = team.go(is_equal, {.is_user_code = true});
      unpark(*nice);
      enable_preemption();
    }
    compute_until([&] { return step.load() == 2; });  // It never gives way of itself.
  };
  join(*team.go(computes, {.is_user_code = true}));
  join(*nice);
  join(*other);
  EXPECT_EQ(nice_at, 1);
  EXPECT_EQ(other_at, 2);
}

}  // namespace
}  // namespace sterna::threads
