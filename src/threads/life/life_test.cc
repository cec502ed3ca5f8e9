// What one thread leaves in a slot, and the next one must not find: births set little of it anew.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "base/syscall.h"
#include "threads/control/cancel.h"
#include "threads/control/control.h"
#include "threads/flags.h"
#include "threads/seeds/seed.h"
#include "threads/sync/key.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

void do_nothing(void*) {}

Thread* spawn_usual(const TestTeam& team, Entry entry, void* argument) {
  auto thread = team->spawn(entry, argument);
  check(thread.has_value(), "the thread starts");
  return thread.value();
}

class LifeTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, LifeTest, testing::Values(1, 2, 8));

TEST_P(LifeTest, OneWithoutOptionsIsAsOneWithTheUsualOnes) {
  team.run([&] {
    // Not run before they were looked at.
    auto held = team->spawn({.held = true}, do_nothing, nullptr);
    ASSERT_TRUE(held);
    Thread* const usual = spawn_usual(team, do_nothing, nullptr);
    Thread* const thread = held.value();
    EXPECT_EQ(flags_of(*usual), flags_of(*thread));
    EXPECT_EQ(usual->stack_class, thread->stack_class);
    EXPECT_EQ(usual->priority, thread->priority);
    EXPECT_EQ(usual->is_cancellable, thread->is_cancellable);
    EXPECT_EQ(usual->team, thread->team);
    unhold(*thread);
    join(*thread);
    join(*usual);
  });
}

/// Joins `thread` `depth` frames further down, each of which has something to find again.
[[gnu::noinline]] int join_below(int depth, Thread& thread) {
  if (depth == 0) {
    join(thread);
    return 0;
  }
  const volatile int mine = depth;
  const int sum = join_below(depth - 1, thread);
  return sum + mine;
}

TEST_P(LifeTest, AJoinerGoesOnWhereItIsAndNotWhereItStartedTheThread) {
  team.run([&] {
    for (int depth = 0; depth < 20; ++depth) {
      Thread* const thread = spawn_usual(team, [](void*) { yield(); }, nullptr);
      yield();  // Starts it, on one worker, from here.
      EXPECT_EQ(join_below(depth, *thread), depth * (depth + 1) / 2);
    }
  });
}

TEST_P(LifeTest, AJoinerIsGivenTheThreadItJoinsWhoeverWakesIt) {
  team.run([&] {
    for (int i = 0; i < 100; ++i) {
      // The first waits in its midst until the second, which is between it and its joiner, ends.
      Thread* const first = spawn_usual(team, [](void*) { park(); }, nullptr);
      Thread* const second = spawn_usual(
          team, [](void* other) { unpark(*static_cast<Thread*>(other)); }, first);
      join(*first);
      join(*second);
      // Both slots are free again, and are two.
      Thread* const third = spawn_usual(team, do_nothing, nullptr);
      Thread* const fourth = spawn_usual(team, do_nothing, nullptr);
      EXPECT_NE(third, fourth);
      join(*third);
      join(*fourth);
    }
  });
}

TEST_P(LifeTest, NothingOfTheLastOneInASlotIsLeftForTheNext) {
  team.run([&] {
    for (int i = 0; i < 200; ++i) {
      Thread* const untidy = spawn_usual(
          team,
          [](void*) {
            set_last_error_number(EDOM);
            disable_preemption();
            unpark(*self());
          },
          nullptr);
      join(*untidy);
      std::uint64_t found = 1;
      Thread* const next = spawn_usual(
          team,
          [](void* sum) {
            const Thread& me = *self();
            *static_cast<std::uint64_t*>(sum) =
                static_cast<std::uint64_t>(last_error_number()) + me.wait_word +
                (preemption_of(me) == Preemption::as_team ? 0U : 1U) + me.preempt_off +
                (me.seeds != nullptr ? 1U : 0U) + me.end_flags +
                static_cast<std::uint64_t>(me.error_number);
          },
          &found);
      join(*next);
      ASSERT_EQ(found, 0U);
    }
  });
}

TEST_P(LifeTest, SeedsOfADestructorOfAKeyAreJoined) {
  struct Planter {
    Seed seed;
    std::atomic<int> runs{0};
    static void plant_one(void* planter) {
      auto& its = *static_cast<Planter*>(planter);
      plant(
          its.seed, [](void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); },
          &its.runs);
    }
  };
  auto key = create_key(*team, Planter::plant_one);
  ASSERT_TRUE(key);
  struct Argument {
    Key key;
    Planter planter;
  } argument{key.value(), {}};
  team.run([&] {
    Thread* const thread = spawn_usual(
        team,
        [](void* argument_of) {
          auto& its = *static_cast<Argument*>(argument_of);
          check(set_specific(its.key, &its.planter), "there is memory for a value");
        },
        &argument);
    join(*thread);
    EXPECT_EQ(argument.planter.runs, 1);
    bool has_seeds = true;
    join(*spawn_usual(
        team, [](void* has) { *static_cast<bool*>(has) = self()->seeds != nullptr; }, &has_seeds));
    EXPECT_FALSE(has_seeds);
  });
  delete_key(*team, key.value());
}

// More than a worker keeps, given back in any order: none is lost, none is given twice.
TEST_P(LifeTest, SlotsAreKeptAndUsedOnceEach) {
  team.run([&] {
    for (int round = 0; round < 4; ++round) {
      std::vector<Thread*> all(1500);
      for (Thread*& thread : all) {
        thread = spawn_usual(team, do_nothing, nullptr);
      }
      std::vector<Thread*> sorted = all;
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
      for (std::size_t i = 0; i < all.size(); ++i) {
        join(*all[i * 7 % all.size()]);  // 7 and 1500 have no common divisor.
      }
    }
  });
  EXPECT_EQ(team->live_thread_count(), 0U);
}

}  // namespace
}  // namespace sterna::threads
