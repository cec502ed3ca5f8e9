// Seeds as threads: with options that make them one from the start, cancelled, ending their thread,
// and seeds of planters that are cancelled. (In bubbles: tests/capi/seeds.c.)
#include <array>
#include <atomic>

#include "threads/control/cancel.h"
#include "threads/control/control.h"
#include "threads/life/life.h"
#include "threads/seeds/seed.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

/// Records who ran it.
struct Note {
  Seed seed;
  std::atomic<Thread*> runner{nullptr};
  std::atomic<int> runs{0};
  void plant() { threads::plant(seed, run, this); }
  void plant(const ThreadOptions& options) { threads::plant(seed, options, run, this); }
  static void run(void* note) {
    auto& its = *static_cast<Note*>(note);
    its.runner.store(self());
    its.runs.fetch_add(1);
  }
};

TEST(SeedThread, WithOptionsOfAThreadIsOneFromTheStart) {
  const TestTeam team{2};
  team.run([] {
    Note named;
    named.plant({.name = "named"});
    ASSERT_NE(named.seed.thread, nullptr);
    join(named.seed);
    EXPECT_NE(named.runner.load(), self());
    Note bound;
    bound.plant({.worker = 1, .bound = true});
    ASSERT_NE(bound.seed.thread, nullptr);
    join(bound.seed);
    Note held;
    held.plant({.held = true});
    EXPECT_FALSE(withdraw(held.seed));
    unhold(*held.seed.thread);
    join(held.seed);
    Note plain;
    plain.plant({.stack_bytes = 16 * 1024});
    EXPECT_EQ(plain.seed.thread, nullptr);
    join(plain.seed);
    for (const Note* const note : {&named, &bound, &held, &plain}) {
      EXPECT_EQ(note->runs.load(), 1);
    }
  });
}

TEST(SeedThread, ThatIsAThreadCanBeCancelled) {
  const TestTeam team{1};
  team.run([] {
    Seed seed;
    plant(seed, {.cancellable = true}, [](void*) { park(); }, nullptr);
    yield();
    cancel(*seed.thread);
    EXPECT_EQ(try_join(seed), JoinOutcome::cancelled);
  });
}

TEST(SeedThread, StolenThatEndsItsThreadIsJoinedAsEnded) {
  const TestTeam team{1};
  team.run([] {
    Seed seed;
    std::atomic<int> begun{0};
    const auto wait_for = [&](int count) {  // Until it has become a thread: here nobody joins it.
      while (begun.load() < count) {
        sleep_for(1'000'000);
      }
    };
    plant(
        seed,
        [](void* count) {
          ++*static_cast<std::atomic<int>*>(count);
          end_current(*self());
        },
        &begun);
    wait_for(1);
    EXPECT_EQ(try_join(seed), JoinOutcome::ended);
    plant(
        seed,
        [](void* count) {
          ++*static_cast<std::atomic<int>*>(count);
          (void)set_cancellable(true);
          cancel(*self());
          test_cancel();
        },
        &begun);
    wait_for(2);
    EXPECT_EQ(try_join(seed), JoinOutcome::cancelled);
  });
}

TEST(SeedThread, OfACancelledPlanterRunsBeforeItsFrameGoes) {
  const TestTeam team{2};
  static std::atomic<int> runs{0};
  runs.store(0);
  auto planter = [] {
    std::array<Seed, 40> seeds;
    for (Seed& seed : seeds) {
      plant(seed, [](void*) { runs.fetch_add(1); }, nullptr);
    }
    park();
    ADD_FAILURE() << "it was cancelled";
  };
  Thread* const thread = team.go(planter, {.cancellable = true});
  cancel(*thread);
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
  EXPECT_EQ(runs.load(), 40);
}

TEST(SeedThread, JoinIsNoCancellationPoint) {
  const TestTeam team{1};
  auto planter = [&] {
    Semaphore go_on;
    Seed seed;
    plant(seed, [](void* its) { static_cast<Semaphore*>(its)->acquire(); }, &go_on);
    cancel(*self());
    auto other = [&] { go_on.release(); };
    Thread* const releaser = team.go(other);
    join(seed);  // Inline; it waits, and our order waits.
    (void)set_cancellable(false);
    join(*releaser);
    (void)set_cancellable(true);
    test_cancel();
    ADD_FAILURE() << "it was cancelled";
  };
  EXPECT_EQ(try_join_until(*team.go(planter, {.cancellable = true}), kNever),
            JoinOutcome::cancelled);
}

}  // namespace
}  // namespace sterna::threads
