// Mutexes that are biased to a worker (sync/mutex.h): they become so, stay mutexes, and are
// ordinary ones again for whoever comes from elsewhere.
#include <atomic>
#include <thread>
#include <vector>

#include "threads/control/control.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

constexpr int kEnough = 1200;  // Uses by one worker after which a mutex is biased, even again.

bool can_bias() {
  return home_of(*self()) != nullptr;  // Not without membarrier.
}

void use(Mutex& mutex, int count) {
  for (int i = 0; i < count; ++i) {
    const MutexGuard guard{mutex};
  }
}

// Takes it once.
bool is_free(Mutex& mutex) STERNA_LOCKS_UNCHECKED {
  if (!mutex.try_lock()) {
    return false;
  }
  mutex.unlock();
  return true;
}

TEST(MutexBias, ComesWithUseByOneWorkerOnlyAndGoesWithAnotherOne) {
  const TestTeam team{1};
  Mutex mutex;
  team.run([&] {
    use(mutex, 100);
    EXPECT_FALSE(mutex.is_biased());
    use(mutex, kEnough);
    EXPECT_EQ(mutex.is_biased(), can_bias());
  });
  use(mutex, 1);  // This kernel thread.
  EXPECT_FALSE(mutex.is_biased());
  use(mutex, 5 * kEnough);
  EXPECT_FALSE(mutex.is_biased());
}

TEST(MutexBias, IsTheSameForWhoSaysWhichThreadCalls) {
  const TestTeam team{1};
  Mutex mutex;
  team.run([&]() STERNA_LOCKS_UNCHECKED {
    Thread& me = *self();
    for (int i = 0; i < 2 * kEnough; ++i) {  // Both ways, in both states.
      EXPECT_TRUE(i % 2 == 0 ? mutex.try_lock_as(me) : mutex.try_lock());
      i % 3 == 0 ? mutex.unlock_as(me) : mutex.unlock();
    }
    EXPECT_EQ(mutex.is_biased(), can_bias());
    EXPECT_TRUE(mutex.try_lock_as(me));
    EXPECT_FALSE(mutex.try_lock_as(me));
    mutex.unlock_as(me);
    EXPECT_TRUE(is_free(mutex));
  });
  mutex.lock();  // By this kernel thread: no bias, and a waiter.
  std::atomic<bool> has_waited{false};
  auto wait = [&] {
    use(mutex, 1);
    has_waited = true;
  };
  Thread* const waiter = team.go(wait);
  team.run([&] { EXPECT_FALSE(mutex.try_lock_as(*self())); });
  mutex.unlock();
  join(*waiter);
  EXPECT_TRUE(has_waited);
  team.run([&]() STERNA_LOCKS_UNCHECKED {
    EXPECT_TRUE(mutex.try_lock_as(*self()));
    Thread* const second = team.go(wait);
    yield();  // It waits.
    mutex.unlock_as(*self());
    join(*second);
  });
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexBias, ThatIsTakenAwayAgainAndAgainDoesNotComeBack) {
  const TestTeam team{1};
  Mutex mutex;
  int bias_count = 0;
  for (int i = 0; i < 6; ++i) {
    team.run([&] {
      use(mutex, kEnough);
      bias_count += mutex.is_biased() ? 1 : 0;
    });
    use(mutex, 1);
  }
  team.run([&] { EXPECT_EQ(bias_count, can_bias() ? 3 : 0); });
}

TEST(MutexBias, ThreadsOfTheWorkerWaitForEachOther) {
  const TestTeam team{1};
  Mutex mutex;
  int count = 0;
  std::atomic<bool> is_inside{false};
  auto function = [&] {
    for (int i = 0; i < 4 * kEnough; ++i) {
      const MutexGuard guard{mutex};
      EXPECT_FALSE(is_inside.exchange(true));
      ++count;
      i % 64 == 0 ? yield() : void();
      is_inside = false;
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(team.go(function));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(count, 16 * kEnough);
  team.run([&] {
    use(mutex, kEnough);
    EXPECT_EQ(mutex.is_biased(), can_bias());  // To wait at home costs it nothing.
  });
}

TEST(MutexBias, HeldOneIsTakenByNobodyAndIsHandedOver) {
  const TestTeam team{1};
  Mutex mutex;
  int guarded = 0;
  std::atomic<int> at{0};
  auto holder = [&] {
    use(mutex, kEnough);
    mutex.lock();
    EXPECT_EQ(mutex.is_biased(), can_bias());
    at = 1;
    while (at != 2) {
      yield();
    }
    guarded = 1;
    mutex.unlock();
  };
  Thread* const thread = team.go(holder);
  while (at != 1) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_until(now_ns() + 1'000'000));
  at = 2;
  mutex.lock();
  EXPECT_EQ(guarded, 1);
  mutex.unlock();
  join(*thread);
  EXPECT_TRUE(is_free(mutex));
}

TEST(MutexBias, HolderMayGoToAnotherWorker) {
  const TestTeam team{2};
  Mutex mutex;
  std::atomic<bool> is_over{false};
  auto wait = [&] {
    while (!is_over) {
      yield();  // So that it is not alone where it is.
    }
  };
  Thread* const others[] = {team.go(wait, {.worker = 0, .bound = true}),
                            team.go(wait, {.worker = 1, .bound = true})};
  auto move = [&] {
    for (std::uint32_t i = 0; i < 6; ++i) {
      stay_on(i % 2, 1);
      use(mutex, kEnough);
      mutex.lock();
      stay_on((i + 1) % 2, 1);
      EXPECT_FALSE(mutex.try_lock());
      mutex.unlock();
    }
    is_over = true;
  };
  join(*team.go(move));
  join(*others[0]);
  join(*others[1]);
}

TEST(MutexBias, OutlivesTheWorkerAndTheTeam) {
  Mutex mutex;
  for (int i = 0; i < 3; ++i) {
    const TestTeam team{1};
    team.run([&] { use(mutex, kEnough); });
  }
  EXPECT_TRUE(is_free(mutex));  // With no team at all.
  const TestTeam first{1};
  auto second = Team::open({.worker_count = 1, .iso_space = &first.space()});
  first.run([&] { use(mutex, kEnough); });
  join(*second.value()
            ->spawn(
                {}, [](void* its) { use(*static_cast<Mutex*>(its), kEnough); }, &mutex)
            .value());
  first.run([&] { use(mutex, 1); });
  EXPECT_FALSE(mutex.is_biased());
}

TEST(MutexBias, ConditionGivesItBackWherever) {
  const TestTeam team{2};
  Mutex mutex;
  Condition condition;
  int turn = 0;
  const auto play = [&](int me) {
    use(mutex, kEnough);
    for (int i = 0; i < 200; ++i) {
      const MutexGuard guard{mutex};
      while (turn % 2 != me) {
        condition.wait(mutex);
      }
      ++turn;
      condition.broadcast();
    }
  };
  for (const std::uint32_t other : {0U, 1U}) {
    turn = 0;
    auto even = [&] { play(0); };
    auto odd = [&] { play(1); };
    Thread* const threads[] = {team.go(even, {.worker = 0, .bound = true}),
                               team.go(odd, {.worker = other, .bound = true})};
    join(*threads[0]);
    join(*threads[1]);
    EXPECT_EQ(turn, 400);
  }
}

/// Bursts of uses here and there, so that many mutexes gain and lose their bias at every moment.
TEST(MutexBias, BurstsFromEverywhereExcludeEachOther) {
  constexpr int kMutexes = kSanitizedTests ? 20 : 200;
  const TestTeam team{2};
  struct Guarded {
    Mutex mutex;
    long count = 0;
  };
  std::vector<Guarded> all(kMutexes);
  auto function = [&] {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (int use = 0; use < 1000; ++use) {
        const MutexGuard guard{all[i].mutex};
        ++all[i].count;
        use % 333 == 0 ? yield() : void();
      }
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(team.go(function));
  }
  std::thread foreign{function};
  foreign.join();
  for (Thread* const thread : threads) {
    join(*thread);
  }
  for (const Guarded& one : all) {
    EXPECT_EQ(one.count, 5000);
  }
}

}  // namespace
}  // namespace sterna::threads
