// Synchronisation: every primitive with user threads on 1 to 8 workers and with kernel threads at
// once.
#include <chrono>
#include <thread>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "base/syscall.h"
#include "threads/carriers/blocking.h"
#include "threads/sync/barrier.h"
#include "threads/sync/condition.h"
#include "threads/sync/key.h"
#include "threads/sync/mutex.h"
#include "threads/sync/once.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

constexpr int kRounds = kSanitizedTests ? 200 : 2000;

class SyncTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Runs `function` on that many user threads and two kernel threads, and waits.
  template <typename Function>
  void run_everywhere(int user_threads, int kernel_threads, Function& function) {
    std::vector<Thread*> threads;
    for (int i = 0; i < user_threads; ++i) {
      threads.push_back(team.go(function));
    }
    std::vector<std::thread> foreign;
    for (int i = 0; i < kernel_threads; ++i) {
      foreign.emplace_back([&] { function(); });
    }
    for (auto& thread : foreign) {
      thread.join();
    }
    for (Thread* const thread : threads) {
      join(*thread);
    }
  }

  /// Items that four threads make go one by one to three and a kernel thread, which await(i) them
  /// with `mutex` locked. tell(i, true) is called with it locked, after an item was made, and
  /// tell(i, false) without it then.
  template <typename Await, typename Tell>
  void hand_over(Mutex& mutex, Await await, Tell tell) {
    int items = 0;
    int taken = 0;
    auto consumer = [&] {
      for (int i = 0; i < kRounds; ++i) {
        const MutexGuard guard{mutex};
        while (items == 0) {
          await(i);
        }
        --items;
        ++taken;
      }
    };
    auto producer = [&] {
      for (int i = 0; i < kRounds; ++i) {
        {
          const MutexGuard guard{mutex};
          ++items;
          tell(i, true);
        }
        tell(i, false);
        if (i % 16 == 0) {
          yield();  // So that they wait, one or all.
        }
      }
    };
    std::vector<Thread*> producers;
    for (int i = 0; i < 4; ++i) {
      producers.push_back(team.go(producer));
    }
    run_everywhere(3, 1, consumer);
    for (Thread* const thread : producers) {
      join(*thread);
    }
    EXPECT_EQ(taken, 4 * kRounds);
    EXPECT_EQ(items, 0);
  }

  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, SyncTest, testing::Values(1, 2, 4, 8));

TEST_P(SyncTest, MutexAdmitsOneAtATime) {
  Mutex mutex;
  long count = 0;
  auto function = [&] {
    for (int i = 0; i < kRounds; ++i) {
      mutex.lock();
      const long seen = count;
      if (i % 16 == 0) {
        yield();  // The holder may change its worker.
      }
      count = seen + 1;
      mutex.unlock();
    }
  };
  run_everywhere(6, 2, function);
  EXPECT_EQ(count, 8L * kRounds);
}

TEST_P(SyncTest, MutexGivesUpAtTheDeadline) {
  Mutex mutex;
  mutex.lock();
  auto function = [&] { EXPECT_FALSE(mutex.try_lock_until(team->now_ns() + 2'000'000)); };
  run_everywhere(3, 1, function);
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
}

TEST_P(SyncTest, TimedLocksAndUnlocksRaceWithoutLoss) {
  Mutex mutex;
  long count = 0;
  std::atomic<long> taken{0};
  auto function = [&]() STERNA_LOCKS_UNCHECKED {
    for (int i = 0; i < kRounds / 10; ++i) {
      if (mutex.try_lock_until(team->now_ns() + 5'000)) {
        ++count;
        taken.fetch_add(1);
        yield();
        mutex.unlock();
      }
    }
  };
  run_everywhere(6, 1, function);
  EXPECT_EQ(count, taken.load());
  mutex.lock();
  mutex.unlock();
}

TEST_P(SyncTest, ConditionHandsItemsOver) {
  Mutex mutex;
  Condition has_item;
  hand_over(
      mutex, [&](int) STERNA_LOCKS_UNCHECKED { has_item.wait(mutex); },
      [&](int i, bool is_locked) {
        if (!is_locked) {
          i % 2 == 0 ? has_item.signal() : has_item.broadcast();
        }
      });
}

// Who waits alone is woken by way of its worker, which was noted when it began. Without broadcasts,
// which would make up for a signal that went astray; beside waits that give up meanwhile.
TEST_P(SyncTest, ConditionSignalsReachWhoWaitsAloneBesideWaitsThatEnd) {
  Mutex mutex;
  Condition has_item;
  hand_over(
      mutex,
      [&](int i) STERNA_LOCKS_UNCHECKED {
        if (i % 3 == 0) {
          (void)has_item.wait_until(mutex, team->now_ns() + 10'000);
        } else {
          has_item.wait(mutex);
        }
      },
      [&](int i, bool is_locked) {
        if (is_locked == (i % 2 == 0)) {
          has_item.signal();
        }
      });
}

TEST_P(SyncTest, ConditionGivesUpAtTheDeadlineWithTheMutex) {
  Mutex mutex;
  Condition never;
  auto function = [&] {
    const MutexGuard guard{mutex};
    EXPECT_FALSE(never.wait_until(mutex, team->now_ns() + 2'000'000));
    EXPECT_FALSE(mutex.try_lock());
  };
  run_everywhere(3, 1, function);
}

// However many there are it is one step, after those who wait have theirs.
TEST_P(SyncTest, UnitsOfASemaphoreAreReleasedAtOnce) {
  Semaphore units;
  std::atomic<int> ended{0};
  auto function = [&] {
    units.acquire();
    ended.fetch_add(1);
  };
  std::thread releaser{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    units.release(0);
    EXPECT_EQ(ended.load(), 0);
    for (int i = 0; i < 1000; ++i) {
      units.release(UINT32_MAX);
    }
  }};
  run_everywhere(3, 1, function);
  releaser.join();
  EXPECT_EQ(ended.load(), 4);
  EXPECT_TRUE(units.try_acquire());
}

TEST_P(SyncTest, SemaphoreUnitsAreNeitherLostNorDoubled) {
  Semaphore units{3};
  std::atomic<int> inside{0};
  std::atomic<bool> is_too_many{false};
  auto function = [&] {
    for (int i = 0; i < kRounds; ++i) {
      if (i % 8 != 0) {
        units.acquire();
      } else if (!units.try_acquire_until(team->now_ns() + 20'000)) {
        continue;
      }
      if (inside.fetch_add(1) >= 3) {
        is_too_many.store(true);
      }
      yield();
      inside.fetch_sub(1);
      units.release();
    }
  };
  run_everywhere(6, 2, function);
  EXPECT_FALSE(is_too_many.load());
  EXPECT_TRUE(units.try_acquire());
  EXPECT_TRUE(units.try_acquire());
  EXPECT_TRUE(units.try_acquire());
  EXPECT_FALSE(units.try_acquire());
}

TEST_P(SyncTest, BarrierLetsNobodyPassEarly) {
  constexpr int kThreads = 9;
  Barrier barrier{kThreads};
  std::atomic<int> arrived{0};
  std::atomic<int> last{0};
  std::atomic<bool> is_early{false};
  auto function = [&] {
    for (int round = 1; round <= kRounds / 10; ++round) {
      arrived.fetch_add(1);
      last.fetch_add(barrier.arrive_and_wait() ? 1 : 0);
      if (arrived.load() < round * kThreads) {
        is_early.store(true);
      }
      barrier.arrive_and_wait();
    }
  };
  run_everywhere(kThreads - 1, 1, function);
  EXPECT_FALSE(is_early.load());
  EXPECT_EQ(last.load(), kRounds / 10);
}

TEST_P(SyncTest, OnceHappensOnceBeforeAnyoneGoesOn) {
  Once once;
  std::atomic<int> calls{0};
  std::atomic<bool> is_early{false};
  auto function = [&] {
    once.call([&] {
      yield();
      calls.fetch_add(1);
    });
    is_early.store(is_early.load() || calls.load() != 1);
  };
  run_everywhere(6, 2, function);
  EXPECT_EQ(calls.load(), 1);
  EXPECT_FALSE(is_early.load());
}

TEST_P(SyncTest, EveryThreadHasItsOwnValueOfAKeyAndItsDestructorRuns) {
  auto key =
      create_key(*team, [](void* value) { static_cast<std::atomic<int>*>(value)->fetch_add(1); });
  ASSERT_TRUE(key);
  std::atomic<int> destroyed{0};
  auto function = [&] {
    EXPECT_EQ(get_specific(key.value()), nullptr);
    EXPECT_TRUE(set_specific(key.value(), &destroyed));
    yield();
    EXPECT_EQ(get_specific(key.value()), &destroyed);
  };
  run_everywhere(10, 0, function);
  EXPECT_EQ(destroyed.load(), 10);
  EXPECT_FALSE(set_specific(key.value(), nullptr));
  delete_key(*team, key.value());
}

TEST_P(SyncTest, AllKeysHaveValuesAndOthersMayLookAtThem) {
  std::vector<Key> keys;
  for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
    auto key = create_key(*team, nullptr);
    ASSERT_TRUE(key);
    keys.push_back(key.value());
  }
  EXPECT_FALSE(create_key(*team, nullptr));
  std::vector<int> values(kKeyCountMax);
  const auto is_right = [&](const Thread& owner) {
    for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
      if (specific_of(owner, keys[i]) != &values[i]) {
        return false;
      }
    }
    return true;
  };
  std::atomic<bool> is_set{false};
  std::atomic<bool> is_over{false};
  auto owner = [&] {
    for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
      EXPECT_EQ(get_specific(keys[i]), nullptr);
      EXPECT_TRUE(set_specific(keys[i], &values[i]));
    }
    EXPECT_TRUE(is_right(*self()));
    is_set.store(true);
    while (!is_over.load()) {
      yield();
    }
  };
  Thread* const thread = team.go(owner);
  auto looker = [&] {
    while (!is_set.load()) {
      EXPECT_TRUE(specific_of(*thread, keys[9]) == nullptr ||
                  specific_of(*thread, keys[9]) == &values[9]);
      yield();
    }
    EXPECT_TRUE(is_right(*thread));
    EXPECT_EQ(specific_of(*self(), keys[9]), nullptr) << "of its own it has none";
  };
  join(*team.go(looker));
  EXPECT_TRUE(is_right(*thread)) << "a kernel thread looks";
  delete_key(*team, keys[9]);
  EXPECT_EQ(specific_of(*thread, keys[9]), nullptr);
  is_over.store(true);
  join(*thread);
}

TEST_P(SyncTest, BlockingCallsLetOtherThreadsRun) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  char got = 0;
  long count = 0;
  auto reader = [&] {
    count = blocking([&] { return system_call([&] { return ::read(ends[0], &got, 1); }); });
  };
  auto writer = [&] {
    yield();
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  };
  Thread* const reads = team.go(reader);
  Thread* const writes = team.go(writer);
  join(*writes);
  join(*reads);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(got, 'x');
  team.run([&] {
    pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
    EXPECT_EQ(blocking([&] { return system_call([&] { return ::poll(&wanted, 1, 5); }); }), 0);
    EXPECT_EQ(blocking([] { return system_call([] { return ::close(-1); }); }), -EBADF);
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(SyncTest, ManyThreadsSleepInBlockingCallsAtOnce) {
  constexpr int kThreads = 30;
  std::atomic<int> asleep{0};
  auto function = [&] {
    (void)blocking([&] {
      for (++asleep; asleep < kThreads;) {  // Nobody leaves it before all are there.
        ::usleep(1'000);
      }
      return 0L;
    });
  };
  run_everywhere(kThreads, 0, function);
  EXPECT_EQ(asleep, kThreads);
}

}  // namespace
}  // namespace sterna::threads
