// Threads that are preempted in a mode of their own. As in preempt_test.cc, what would hang without
// it is the method.
#include <atomic>

#include <gtest/gtest.h>

#include "threads/preemption/computing.h"
#include "threads/preemption/preempt.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

TEST(Preempt, OneThreadHasSlicesWhereTheOthersHaveNone) {
  for (const PreemptMode mode : {PreemptMode::none, PreemptMode::communication}) {
    TestTeam team{
        1, {.steal = false, .tick_ns = kMs, .preempt = mode, .slice_ns = kMs, .take_over = true}};
    std::atomic<bool> is_done{false};
    auto computes = [&] { compute_until([&] { return is_done.load(); }); };
    auto ends_it = [&] { is_done = true; };
    Thread* const first =
        team.go(computes, {.preemption = Preemption::slice, .is_user_code = true});
    EXPECT_EQ(preemption_of(*first), Preemption::slice);
    join(*team.go(ends_it, kUser));
    join(*first);
    // The next thread of its slot, as the others, until it is given slices, too.
    is_done = false;
    Thread* const second = team.go(computes, kUser);
    EXPECT_EQ(preemption_of(*second), Preemption::as_team);
    Thread* const third = team.go(ends_it, kUser);
    sleep_for(20 * kMs);
    EXPECT_FALSE(is_done.load());
    set_preemption(*second, Preemption::slice);
    join(*third);
    join(*second);
  }
}

TEST(Preempt, OneThreadIsInterruptedByHigherOnesOnlyWhereTheOthersHaveSlices) {
  TestTeam team{1,
                {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<bool> is_done{false};
  std::atomic<bool> is_interrupted{false};
  bool was_interrupted = false;
  auto computes = [&] {
    compute_until([&] { return is_interrupted.load(); });
    for (const std::uint64_t end = now_ns() + 20 * kMs; now_ns() < end;) {
    }
    is_done = true;
  };
  auto waits = [&] { was_interrupted = is_done.load(); };
  auto interrupts_it = [&] { is_interrupted = true; };
  Thread* const first =
      team.go(computes, {.preemption = Preemption::communication, .is_user_code = true});
  Thread* const second = team.go(waits, kUser);
  Thread* const third =
      team.go(interrupts_it, {.priority = kPriorityRealTime, .is_user_code = true});
  join(*first);
  join(*second);
  join(*third);
  EXPECT_TRUE(was_interrupted) << "its equal ran after it had ended";
}

}  // namespace
}  // namespace sterna::threads
