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
        EXPECT_EQ(yield_in_user_code(me), 0);
      }
    }
  } turns;
  team.run([&] {
    const auto go = [&](int index, Entry entry) {
      auto thread = spawn_user_code(*team, entry, &turns);
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

}  // namespace
}  // namespace sterna::threads
