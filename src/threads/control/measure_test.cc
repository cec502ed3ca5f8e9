// The time of threads that somebody looks at, and that nobody pays when nobody does.
#include "threads/control/measure.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "threads/control/control.h"
#include "threads/control/roster.h"
#include "threads/flags.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kTurnNs = 100'000;

void compute_for(std::uint64_t ns) {
  for (const std::uint64_t end = now_ns() + ns; now_ns() < end;) {
  }
}

/// Computes in turns until it is told to end.
struct Computing {
  std::atomic<bool>& is_over;
  std::atomic<int> turns{0};
  void operator()() {
    for (; !is_over.load(); ++turns) {
      compute_for(kTurnNs);
      yield();
    }
  }
  void wait_for_turns(int more) const {
    for (const int before = turns; turns < before + more;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

bool is_measured(const Thread& thread) {
  return (flags_of(thread) & (ThreadFlag::measured | ThreadFlag::accounted)) != 0;
}

TEST(Measure, ThreadsAreChargedWithTheirTurnsOnceSomebodyLooks) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  Computing computing[2] = {{is_over}, {is_over}};
  auto waits = [] { park(); };
  Thread* const one = team.go(computing[0]);
  Thread* const other = team.go(computing[1]);
  Thread* const idle = team.go(waits);
  computing[0].wait_for_turns(2);
  EXPECT_FALSE(is_measured(*one));
  (void)measure(*one);
  (void)measure(*other);
  EXPECT_EQ(measure(*idle), 0U);
  computing[1].wait_for_turns(2);
  EXPECT_TRUE(is_measured(*one));
  const std::uint64_t before[] = {measure(*one), measure(*other)};
  computing[0].wait_for_turns(20);
  // 19 turns at least of each are between the two looks.
  EXPECT_GE(measure(*one), before[0] + 18 * kTurnNs);
  EXPECT_GE(measure(*other), before[1] + 18 * kTurnNs);
  EXPECT_EQ(measure(*idle), 0U);
  is_over = true;
  unpark(*idle);
  for (Thread* const thread : {one, other, idle}) {
    join(*thread);
  }
}

TEST(Measure, WhoNeverLeavesItsProcessorHasAllOfIt) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  std::atomic<bool> runs{false};
  auto computes = [&] {
    runs = true;
    while (!is_over) {
    }
  };
  Thread* const thread = team.go(computes);
  while (!runs) {
    std::this_thread::yield();
  }
  EXPECT_EQ(measure(*thread), 0U);
  const std::uint64_t begin = now_ns();
  compute_for(5'000'000);
  const std::uint64_t least = now_ns() - begin;
  EXPECT_GE(measure(*thread), least * 9 / 10);  // The rate of the cycles is measured, too.
  EXPECT_FALSE(is_measured(*thread));           // Nobody has taken it from a queue since.
  is_over = true;
  join(*thread);
}

TEST(Measure, WhoYieldsToNobodyIsMeasuredFromThenOn) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  Computing computing{is_over};
  Thread* const thread = team.go(computing);
  computing.wait_for_turns(1);
  (void)measure(*thread);
  computing.wait_for_turns(2);
  EXPECT_TRUE(is_measured(*thread));
  const std::uint64_t before = measure(*thread);
  computing.wait_for_turns(10);
  EXPECT_GE(measure(*thread), before + 8 * kTurnNs);
  is_over = true;
  join(*thread);
}

TEST(Measure, SwitchesAreUsualOnesAgainWhenNobodyLooks) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  Computing computing[2] = {{is_over}, {is_over}};
  Thread* const one = team.go(computing[0]);
  Thread* const other = team.go(computing[1]);
  (void)measure(*one);
  computing[0].wait_for_turns(2);
  EXPECT_TRUE(is_measured(*one));
  team->state()->measured_until = 0;  // As if the time had passed.
  computing[0].wait_for_turns(2);
  EXPECT_FALSE(is_measured(*one));
  EXPECT_EQ(measure(*one), 0U) << "it begins anew";
  computing[0].wait_for_turns(2);
  EXPECT_TRUE(is_measured(*one));
  is_over = true;
  join(*one);
  join(*other);
}

TEST(Measure, ALookChangesNothingOfYieldTo) {
  TestTeam team{1};
  bool was_taken = false;
  team.run([&] {
    std::atomic<bool> has_run{false};
    auto runs = [&] { has_run = true; };
    Thread* const thread = team.go(runs);
    (void)measure(*thread);
    was_taken = yield_to(*thread);
    EXPECT_TRUE(has_run);
    join(*thread);
  });
  EXPECT_TRUE(was_taken);
}

TEST(Measure, TheNextThreadInTheSlotIsAUsualOne) {
  TestTeam team{1};
  team.run([&] {
    auto yields = [] { yield(); };
    for (int i = 0; i < 4; ++i) {
      Thread* const thread = team.go(yields);
      EXPECT_FALSE(is_measured(*thread));
      EXPECT_FALSE(has(thread->hold.load(), Hold::measured));
      (void)measure(*thread);
      join(*thread);
    }
  });
}

TEST(Measure, TheRosterTellsItToWhoAsks) {
  TestTeam team{1};
  std::atomic<bool> is_over{false};
  Computing computing{is_over};
  Thread* const thread = team.go(computing);
  computing.wait_for_turns(1);
  ThreadInfo info[1];
  ASSERT_EQ(list_threads(*team, info), 1U);
  computing.wait_for_turns(3);
  EXPECT_FALSE(is_measured(*thread)) << "who does not ask changes nothing";
  ASSERT_EQ(list_threads(*team, info, Measuring::yes), 1U);
  computing.wait_for_turns(3);
  ASSERT_EQ(list_threads(*team, info, Measuring::yes), 1U);
  EXPECT_GT(info[0].cpu_ns, kTurnNs);
  is_over = true;
  join(*thread);
}

}  // namespace
}  // namespace sterna::threads
