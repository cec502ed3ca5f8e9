// The synchronisation beyond mutex and semaphore: readers and writers, spin locks, both kinds of
// barriers and their halves, words, alarms; on 1 to 4 workers, with kernel threads.
#include <atomic>
#include <thread>
#include <vector>

#include "threads/control/cancel.h"
#include "threads/sync/alarm.h"
#include "threads/sync/barrier.h"
#include "threads/sync/rwlock.h"
#include "threads/sync/semaphore.h"
#include "threads/sync/word_wait.h"
#include "threads/sync/yielding_lock.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

constexpr int kRounds = kSanitizedTests ? 100 : 1000;

class LocksTest : public testing::TestWithParam<std::uint32_t> {
 protected:
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

  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, LocksTest, testing::Values(1, 2, 4));

TEST_P(LocksTest, ReadersShareAndWritersAreAlone) {
  for (const auto preference : {RwPreference::fair, RwPreference::readers, RwPreference::writers}) {
    RwLock lock{preference};
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
    std::atomic<int> turn{0};
    long written = 0;
    auto function = [&] {
      for (int i = 0; i < kRounds; ++i) {
        if (turn.fetch_add(1) % 4 == 0) {
          lock.lock();
          EXPECT_EQ(writers.fetch_add(1), 0);
          EXPECT_EQ(readers.load(), 0);
          ++written;
          i % 8 == 0 ? yield() : void();
          writers.fetch_sub(1);
          EXPECT_TRUE(lock.unlock());
        } else {
          lock.lock_shared();
          readers.fetch_add(1);
          EXPECT_EQ(writers.load(), 0);
          i % 8 == 0 ? yield() : void();
          readers.fetch_sub(1);
          EXPECT_TRUE(lock.unlock_shared());
        }
      }
    };
    run_everywhere(6, 2, function);
    EXPECT_EQ(written, 8L * kRounds / 4);
    EXPECT_FALSE(lock.is_used());
    EXPECT_FALSE(lock.unlock());
    EXPECT_FALSE(lock.unlock_shared());
  }
}

TEST_P(LocksTest, WriterThatGivesUpLetsReadersGoOn) {
  RwLock lock;
  Semaphore reading;
  lock.lock_shared();
  std::atomic<bool> gave_up{false};
  auto writer = [&] {
    EXPECT_FALSE(lock.lock(team->now_ns() + 30'000'000));
    gave_up = true;
  };
  Thread* const impatient = team.go(writer);
  // Until the writer waits; on a slow machine this may never see it.
  while (!gave_up && lock.try_lock_shared()) {
    EXPECT_TRUE(lock.unlock_shared());
    std::this_thread::yield();
  }
  auto reader = [&] {
    EXPECT_TRUE(lock.lock_shared());
    reading.release();
  };
  Thread* const patient = team.go(reader);
  reading.acquire();
  EXPECT_FALSE(lock.try_lock());
  join(*impatient);
  join(*patient);
  EXPECT_TRUE(lock.unlock_shared());
  EXPECT_TRUE(lock.unlock_shared());
  EXPECT_TRUE(lock.try_lock());
}

TEST_P(LocksTest, CancelledWriterLeavesTheLockToOthers) {
  RwLock lock;
  lock.lock_shared();
  auto writer = [&] { lock.lock(); };
  Thread* const thread = team.go(writer, {.cancellable = true});
  cancel(*thread);
  EXPECT_EQ(try_join_until(*thread, kNever), JoinOutcome::cancelled);
  EXPECT_TRUE(lock.try_lock_shared());
}

TEST_P(LocksTest, YieldingLockAdmitsOneAtATimeThoughHoldersYield) {
  YieldingLock lock;
  long count = 0;
  auto function = [&] {
    for (int i = 0; i < kRounds; ++i) {
      lock.lock();
      const long seen = count;
      i % 16 == 0 ? yield() : void();
      count = seen + 1;
      EXPECT_TRUE(lock.unlock());
    }
  };
  run_everywhere(6, 2, function);
  EXPECT_EQ(count, 8L * kRounds);
  const auto unlock_unheld = [&]() STERNA_LOCKS_UNCHECKED { return lock.unlock(); };
  EXPECT_FALSE(unlock_unheld());
}

TEST_P(LocksTest, BothKindsOfBarrierKeepRoundsApart) {
  for (const auto wait : {BarrierWait::sleep, BarrierWait::yield}) {
    Barrier barrier{7, wait};
    std::atomic<int> arrived{0};
    std::atomic<int> lasts{0};
    auto function = [&] {
      for (int i = 1; i <= kRounds; ++i) {
        arrived.fetch_add(1);
        if (i % 3 == 0) {
          const Barrier::Round round = barrier.arrive();
          lasts += round.is_last ? 1 : 0;
          barrier.wait(round);
        } else {
          lasts += barrier.arrive_and_wait() ? 1 : 0;
        }
        EXPECT_GE(arrived.load(), 7 * i);
      }
    };
    // A kernel thread that yields gets its processor back after a whole turn of the others.
    const bool yields = wait == BarrierWait::yield;
    run_everywhere(yields ? 7 : 6, yields ? 0 : 1, function);
    EXPECT_EQ(lasts, kRounds);
    EXPECT_FALSE(barrier.is_used());
  }
}

TEST_P(LocksTest, ParticipantThatLeavesReleasesThoseWhoWait) {
  Barrier barrier{3};
  auto function = [&] { barrier.arrive_and_wait(); };
  Thread* const one = team.go(function);
  Thread* const two = team.go(function);
  EXPECT_TRUE(barrier.add_count(-1));
  join(*one);
  join(*two);
  EXPECT_EQ(barrier.count(), 2U);
  EXPECT_FALSE(barrier.add_count(-2));
}

TEST_P(LocksTest, WordWaitMissesNoChange) {
  WordWait waits;
  std::atomic<std::uint64_t> word{0};
  auto function = [&] {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(kRounds);) {
      bool has_waited = false;
      EXPECT_EQ(waits.wait(word, ~std::uint64_t{0}, i, kNever, has_waited), Wake::signalled);
      i = std::max(i, word.load());
    }
  };
  std::thread changer{[&] {
    for (int i = 0; i < kRounds; ++i) {
      word.fetch_add(1);
      (void)waits.wake(UINT32_MAX);
    }
  }};
  run_everywhere(4, 1, function);
  changer.join();
  bool has_waited = true;
  EXPECT_EQ(waits.wait(word, 0xff00, 1, kNever, has_waited), Wake::signalled);
  EXPECT_FALSE(has_waited);
  EXPECT_EQ(waits.wake(1), 0U);
}

TEST_P(LocksTest, WordWaitTimesOutAndWakesAsManyAsAsked) {
  WordWait waits;
  std::atomic<std::uint64_t> word{5};
  auto impatient = [&] {
    bool has_waited = false;
    EXPECT_EQ(waits.wait(word, 7, 5, team->now_ns() + 1'000'000, has_waited), Wake::timed_out);
    EXPECT_TRUE(has_waited);
  };
  run_everywhere(2, 1, impatient);
  auto patient = [&] {
    bool has_waited = false;
    EXPECT_EQ(waits.wait(word, 7, 5, kNever, has_waited), Wake::signalled);
  };
  Thread* threads[] = {team.go(patient), team.go(patient), team.go(patient)};
  std::uint32_t woken = 0;
  while (woken < 3) {
    const std::uint32_t now = waits.wake(1);
    EXPECT_LE(now, 1U);
    woken += now;
    std::this_thread::yield();
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
}

TEST_P(LocksTest, AlarmsGoOffInOrderAndNotAfterTheyAreDisarmed) {
  Alarms alarms{*team};
  struct Note {
    std::vector<int>* order;
    Semaphore* called;
    int number;
    static void make(void* note) {
      auto& its = *static_cast<Note*>(note);
      its.order->push_back(its.number);
      its.called->release();
    }
  };
  std::vector<int> order;
  Semaphore called;
  Note notes[] = {{&order, &called, 0}, {&order, &called, 1}, {&order, &called, 2}};
  Alarm three[3];
  for (int i = 0; i < 3; ++i) {
    three[i].function = Note::make;
    three[i].argument = &notes[i];
  }
  // Until all are armed before the first of them is due, whatever else the machine does.
  for (std::uint64_t step_ns = 2'000'000, first_ns = 0; team->now_ns() >= first_ns; step_ns *= 2) {
    for (int i = 0; first_ns != 0 && i < 3; ++i) {
      if (!alarms.disarm(three[i])) {
        called.acquire();
      }
    }
    order.clear();
    const std::uint64_t now = team->now_ns();
    first_ns = now + step_ns;
    EXPECT_TRUE(alarms.arm(three[2], now + 100'000'000'000));
    EXPECT_TRUE(alarms.arm(three[1], first_ns + step_ns));
    EXPECT_TRUE(alarms.arm(three[0], first_ns));
    EXPECT_TRUE(alarms.arm(three[2], first_ns + 2 * step_ns));  // Changed.
  }
  for (int i = 0; i < 3; ++i) {
    called.acquire();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  three[0].period_ns = 300'000;
  EXPECT_TRUE(alarms.arm(three[0], 0));
  for (int i = 0; i < 5; ++i) {
    called.acquire();
  }
  EXPECT_TRUE(alarms.disarm(three[0]));
  const std::size_t count = order.size();
  EXPECT_FALSE(alarms.disarm(three[0]));
  team.run([] { sleep_for(2'000'000); });
  EXPECT_EQ(order.size(), count);
  while (team->live_thread_count() != 0) {  // Nothing is armed: its thread has ended.
    std::this_thread::yield();
  }
}

TEST_P(LocksTest, ACallThatArmsItsAlarmAgainIsTheLastOneForWhoDisarmsIt) {
  Alarms alarms{*team};
  struct Call {
    Alarms& alarms;
    Alarm alarm = {};
    std::atomic<bool> is_called{false};
    Semaphore go{};
    static void make(void* call) {
      auto& its = *static_cast<Call*>(call);
      its.is_called = true;
      its.go.acquire();
      EXPECT_TRUE(its.alarms.arm(its.alarm, self()->team->now_ns() + 100'000'000'000));
    }
  } call{.alarms = alarms};
  call.alarm.function = Call::make;
  call.alarm.argument = &call;
  ASSERT_TRUE(alarms.arm(call.alarm, 0));
  while (!call.is_called) {
    std::this_thread::yield();
  }
  auto disarms = [&] { (void)alarms.disarm(call.alarm); };
  Thread* const thread = team.go(disarms);
  sleep_for(5'000'000);  // It waits for the call: else there is nothing to see.
  call.go.release();
  join(*thread);
  EXPECT_FALSE(alarms.disarm(call.alarm));
  while (team->live_thread_count() != 0) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace sterna::threads
