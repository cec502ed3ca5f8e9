// What the code of a program asks for with the border in it: a birth, a yield.
#include "threads/user_calls.h"

#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

TEST(UserCalls, ThreadsOfTheProgramAreInTheRuntimeWhileTheyYieldAndNowhereElse) {
  const TestTeam team{1};
  struct Turns {
    Thread* threads[2] = {};
    int done[2] = {};

    void take(int mine) {
      Thread& me = *self();
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(me.in_user);
        EXPECT_FALSE(threads[1 - mine]->in_user);  // Not begun, in its yield, or ended.
        EXPECT_LE(done[1 - mine] - done[mine], 1);
        ++done[mine];
        yield_in_user_code(me);
      }
    }
  } turns;
  team.run([&] {
    const auto go = [&](int index, Entry entry) {
      auto thread = team->spawn({.is_user_code = true}, entry, &turns);
      check(thread.has_value(), "the thread starts");
      turns.threads[index] = thread.value();
    };
    go(0, [](void* its) { static_cast<Turns*>(its)->take(0); });
    go(1, [](void* its) { static_cast<Turns*>(its)->take(1); });
    join(*turns.threads[0]);
    join(*turns.threads[1]);
  });
  EXPECT_EQ(turns.done[0], 100);
  EXPECT_EQ(turns.done[1], 100);
  EXPECT_EQ(team->live_thread_count(), 0U);
}

TEST(UserCalls, ABirthAndItsJoinCrossTheBorderBothWays) {
  const TestTeam team{1};
  struct Parent {
    Team& team;
    int children = 0;

    Born bear(Thread& me) {
      const Born born = try_spawn_in_user_code(team, me, count, this);
      if (born.thread != nullptr) {
        EXPECT_FALSE(me.in_user);
        if (!try_leave_birth(me)) {
          leave_birth(me);
        }
      }
      EXPECT_TRUE(me.in_user);
      return born;
    }
    /// Which way joins `born`: that of the next to run, or the other one.
    bool joins_at_once(Thread& me, const Born& born) {
      const auto address = reinterpret_cast<std::uintptr_t>(born.thread);
      const auto number = static_cast<std::uint16_t>(born.id);
      JoinOutcome outcome = JoinOutcome::timed_out;
      // What is not there, and what was in the slot before: nothing happens.
      const volatile std::uintptr_t nowhere[] = {0, 64};
      EXPECT_FALSE(try_join_in_user_code(me, nowhere[0], number, outcome));
      EXPECT_FALSE(try_join_in_user_code(me, nowhere[1], number, outcome));
      const auto other = static_cast<std::uint16_t>(number + 1);
      EXPECT_FALSE(try_join_in_user_code(me, address, other, outcome));
      EXPECT_TRUE(me.in_user);
      const int before = children;
      const bool is_next = try_join_in_user_code(me, address, number, outcome);
      EXPECT_EQ(children > before, is_next);
      if (!is_next) {
        outcome = join_in_user_code(me, *born.thread);
      }
      EXPECT_EQ(outcome, JoinOutcome::ended);
      EXPECT_TRUE(me.in_user);
      return is_next;
    }
    void run() {
      Thread& me = *self();
      std::uint64_t former = 0;
      for (int i = 0; i < 100; ++i) {
        const Born born = bear(me);
        ASSERT_NE(born.thread, nullptr);
        EXPECT_EQ(born.id, born.thread->id);
        EXPECT_NE(born.id, former);
        former = born.id;
        EXPECT_TRUE(joins_at_once(me, born));
      }
      const Born first = bear(me);
      const Born second = bear(me);
      ASSERT_TRUE(first.thread != nullptr && second.thread != nullptr);
      EXPECT_FALSE(joins_at_once(me, second));
      EXPECT_FALSE(joins_at_once(me, first));  // It has ended.
      const Born born = bear(me);
      ASSERT_NE(born.thread, nullptr);
      detach(*born.thread);
      EXPECT_NE(join_in_user_code(me, *born.thread), JoinOutcome::ended);
      EXPECT_TRUE(me.in_user);
      yield_in_user_code(me);
    }
    static void count(void* its) {
      EXPECT_TRUE(self()->in_user);
      ++static_cast<Parent*>(its)->children;
    }
  } parent{*team};
  team.run([&] {
    // Those that have ended leave their slots at hand: for the parent and two children.
    Thread* former[3] = {};
    for (Thread*& one : former) {
      one = team->spawn({}, [](void*) {}, nullptr).value();
    }
    for (Thread* const one : former) {
      join(*one);
    }
    auto thread = team->spawn(
        {.is_user_code = true}, [](void* its) { static_cast<Parent*>(its)->run(); }, &parent);
    join(*thread.value());
  });
  EXPECT_EQ(parent.children, 103);
  EXPECT_EQ(team->live_thread_count(), 0U);
}

}  // namespace
}  // namespace sterna::threads
