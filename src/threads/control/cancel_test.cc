// Cancellation: every cancellation point with a thread that waits already and one that comes later,
// cleanups, and the outcomes of joins.
#include "threads/control/cancel.h"

#include <thread>
#include <vector>

#include "base/annotate.h"
#include "threads/sync/alarm.h"
#include "threads/sync/barrier.h"
#include "threads/sync/condition.h"
#include "threads/sync/key.h"
#include "threads/sync/once.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

// Unchecked: as a cleanup it is called where clang cannot see that the mutex is held.
void unlock_mutex(void* mutex) STERNA_LOCKS_UNCHECKED {
  static_cast<Mutex*>(mutex)->unlock();
}

class CancelTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  /// Cancels threads that wait in `wait`, or are about to, many times.
  template <typename Wait>
  void cancel_in(Wait wait) {
    for (int i = 0; i < 40; ++i) {
      std::atomic<bool> has_begun{false};
      std::atomic<int> cleaned{0};
      auto function = [&] {
        Cleanup cleanup{[](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &cleaned};
        push_cleanup(cleanup);
        has_begun = true;
        wait();
        ADD_FAILURE() << "a cancelled wait does not return";
      };
      Thread* const thread = team.go(function, {.cancellable = true});
      while (i % 2 == 0 && !has_begun) {
        std::this_thread::yield();
      }
      if (i % 4 == 0) {
        team.run([] { sleep_for(100'000); });
      }
      cancel(*thread);
      EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
      EXPECT_EQ(cleaned, 1);
    }
  }

  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, CancelTest, testing::Values(1, 2, 4));

TEST_P(CancelTest, ParkEnds) {
  cancel_in([] {
    for (;;) {
      park();
    }
  });
}

TEST_P(CancelTest, SleepEnds) {
  cancel_in([] { sleep_for(60'000'000'000); });
}

TEST_P(CancelTest, TestCancelEnds) {
  cancel_in([] {
    for (;;) {
      test_cancel();
      yield();
    }
  });
}

TEST_P(CancelTest, SemaphoreEndsAndStaysWhole) {
  Semaphore semaphore;
  cancel_in([&] { semaphore.acquire(); });
  semaphore.release();
  EXPECT_TRUE(semaphore.try_acquire());
  EXPECT_FALSE(semaphore.try_acquire());
}

TEST_P(CancelTest, ConditionEndsWithTheMutexHeld) {
  Mutex mutex;
  Condition condition;
  cancel_in([&] {
    mutex.lock();
    Cleanup unlock{unlock_mutex, &mutex};
    push_cleanup(unlock);
    for (;;) {
      condition.wait(mutex);
    }
  });
  EXPECT_TRUE(mutex.try_lock());
  unlock_mutex(&mutex);
}

TEST_P(CancelTest, JoinEndsAndTheOtherOneCanBeJoined) {
  Semaphore semaphore;
  auto other = [&] { semaphore.acquire(); };
  Thread* const joined = team.go(other);
  cancel_in([&] { join(*joined); });
  semaphore.release();
  EXPECT_EQ(try_join_until(*joined, kNever), JoinOutcome::ended);
}

TEST_P(CancelTest, BarrierThatYieldsDoesNotEnd) {
  Barrier barrier{2, BarrierWait::yield};
  std::atomic<int> passed{0};
  auto function = [&] {
    (void)barrier.arrive_and_wait();
    ++passed;
    test_cancel();
    ADD_FAILURE() << "it is cancelled here";
  };
  Thread* const thread = team.go(function, {.cancellable = true});
  while (!barrier.is_used()) {
    std::this_thread::yield();
  }
  cancel(*thread);
  // Until it has left the processor to wait, which is when it would end.
  EXPECT_EQ(try_join_until(*thread, team->now_ns() + 20'000'000), JoinOutcome::timed_out);
  (void)barrier.arrive_and_wait();
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
  EXPECT_EQ(passed, 1);
}

TEST_P(CancelTest, DisarmingDoesNotEndWithTheMutexHeld) {
  Alarms alarms{*team};
  std::atomic<bool> is_called{false};
  Semaphore go;
  struct Call {
    std::atomic<bool>* is_called;
    Semaphore* go;
  } call{&is_called, &go};
  Alarm alarm;
  alarm.function = [](void* argument) {
    const Call& its = *static_cast<Call*>(argument);
    *its.is_called = true;
    its.go->acquire();
  };
  alarm.argument = &call;
  ASSERT_TRUE(alarms.arm(alarm, 0));
  while (!is_called) {
    std::this_thread::yield();
  }
  std::atomic<bool> has_returned{false};
  auto function = [&] {
    (void)alarms.disarm(alarm);  // Waits for the call.
    has_returned = true;
    test_cancel();
  };
  Thread* const thread = team.go(function, {.cancellable = true});
  cancel(*thread);
  const JoinOutcome early = try_join_until(*thread, team->now_ns() + 20'000'000);
  EXPECT_EQ(early, JoinOutcome::timed_out) << "it waits for the call, whatever it is asked";
  go.release();
  if (early == JoinOutcome::timed_out) {
    EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
  }
  EXPECT_TRUE(has_returned);
  alarms.disarm_if_alone();
  while (team->live_thread_count() != 0) {
    std::this_thread::yield();
  }
}

TEST_P(CancelTest, SignalThatRacesWithTheCancelIsTakenOrLeft) {
  for (int i = 0; i < 200; ++i) {
    Semaphore semaphore;
    std::atomic<int> taken{0};
    auto function = [&] {
      semaphore.acquire();
      ++taken;
    };
    Thread* const thread = team.go(function, {.cancellable = true});
    std::thread releaser{[&] { semaphore.release(); }};
    cancel(*thread);
    const JoinOutcome outcome = try_join_until(*thread, kNever);
    releaser.join();
    EXPECT_EQ(outcome == JoinOutcome::ended ? 1 : 0, taken);
    EXPECT_EQ(semaphore.try_acquire(), taken == 0);
  }
}

TEST_P(CancelTest, ThreadThatIsNotCancellableGoesOn) {
  Semaphore semaphore;
  auto function = [&] {
    const bool was = set_cancellable(false);
    EXPECT_TRUE(was);
    semaphore.acquire();
    test_cancel();
    (void)set_cancellable(true);
    test_cancel();
    ADD_FAILURE() << "it is cancelled here";
  };
  Thread* const thread = team.go(function, {.cancellable = true});
  cancel(*thread);
  EXPECT_EQ(try_join_until(*thread, team->now_ns() + 1'000'000), JoinOutcome::timed_out);
  semaphore.release();
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
}

TEST_P(CancelTest, OnceWhoseCallerIsCancelledInsideHappensForTheNext) {
  Once once;
  std::atomic<int> begun{0};
  auto first = [&] {
    once.call([&] {
      ++begun;
      park();
    });
  };
  Thread* const thread = team.go(first, {.cancellable = true});
  while (begun == 0) {
    sleep_for(1000);
  }
  cancel(*thread);
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
  EXPECT_FALSE(once.is_done());
  team.run([&] { once.call([&] { ++begun; }); });
  EXPECT_EQ(begun, 2);
  EXPECT_TRUE(once.is_done());
}

TEST_P(CancelTest, CleanupThatADestructorOfAKeyLeavesBehindIsDropped) {
  static std::atomic<int> cleaned{0};
  cleaned = 0;
  auto key = create_key(*team, [](void*) {
    Cleanup cleanup{[](void*) { ++cleaned; }, nullptr};
    push_cleanup(cleanup);
  });
  ASSERT_TRUE(key.has_value());
  for (int i = 0; i < 3; ++i) {  // One after the other in one slot.
    team.run([&] { EXPECT_TRUE(set_specific(key.value(), &cleaned)); });
  }
  EXPECT_EQ(cleaned, 0);
  delete_key(*team, key.value());
}

TEST_P(CancelTest, CleanupsRunInnermostFirstAndBeforeKeys) {
  static std::vector<int> order;
  order.clear();
  auto key = create_key(*team, [](void*) { order.push_back(0); });
  ASSERT_TRUE(key);
  auto function = [&] {
    const auto note = [](void* number) { order.push_back(*static_cast<int*>(number)); };
    int numbers[] = {1, 2, 3, 4};
    Cleanup cleanups[4];
    for (int i = 0; i < 4; ++i) {
      cleanups[i] = {note, &numbers[i]};
      push_cleanup(cleanups[i]);
    }
    EXPECT_TRUE(set_specific(key.value(), &order));
    EXPECT_TRUE(pop_cleanup(true));
    EXPECT_TRUE(pop_cleanup(false));
    cancel(*self());
    test_cancel();
  };
  EXPECT_EQ(try_join_until(*team.go(function, {.cancellable = true}), kNever),
            JoinOutcome::cancelled);
  EXPECT_EQ(order, (std::vector<int>{4, 2, 1, 0}));
  delete_key(*team, key.value());
}

TEST_P(CancelTest, MisuseOfJoinIsTold) {
  Semaphore semaphore;
  auto function = [&] { semaphore.acquire(); };
  Thread* const thread = team.go(function);
  auto joiner = [&] { join(*thread); };
  Thread* const first = team.go(joiner);
  while (thread->joiner.load() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::joined_already);
  EXPECT_EQ(try_detach(*thread), JoinOutcome::joined_already);
  semaphore.release();
  join(*first);
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::joined_already);
  Thread* const detached = team.go(function);
  EXPECT_EQ(try_detach(*detached), JoinOutcome::ended);
  EXPECT_EQ(try_join_until(*detached, kNever), JoinOutcome::detached);
  semaphore.release();
  while (team->live_thread_count() != 0) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace sterna::threads
