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

    void run() {
      Thread& me = *self();
      std::uint64_t former = 0;
      for (int i = 0; i < 100; ++i) {
        const Born born = spawn_plain(team, me, count, this);
        EXPECT_TRUE(me.in_user);
        ASSERT_NE(born.thread, nullptr);
        EXPECT_EQ(born.id, born.thread->id);
        EXPECT_NE(born.id, former);
        former = born.id;
        EXPECT_EQ(join_in_user_code(me, *born.thread), JoinOutcome::ended);
        EXPECT_TRUE(me.in_user);
      }
      const Born born = spawn_plain(team, me, count, this);
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
    // Those that have ended leave their slots at hand.
    Thread* const former[] = {team->spawn(
                                      {}, [](void*) {}, nullptr)
                                  .value(),
                              team->spawn({}, [](void*) {}, nullptr).value()};
    join(*former[0]);
    join(*former[1]);
    auto thread = team->spawn(
        {.is_user_code = true}, [](void* its) { static_cast<Parent*>(its)->run(); }, &parent);
    join(*thread.value());
  });
  EXPECT_EQ(parent.children, 101);
  EXPECT_EQ(team->live_thread_count(), 0U);
}

}  // namespace
}  // namespace sterna::threads
