// The biased lock on real processors: exclusion is for the model; here is who gets in, and who
// gives up.
#include "threads/queues/biased_lock.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace sterna::threads {
namespace {

/// With the barrier, and as on a system without.
class BiasedLockTest : public ::testing::TestWithParam<bool> {
 protected:
  BiasedLock lock{GetParam() && register_process_barrier()};
};
INSTANTIATE_TEST_SUITE_P(Barrier, BiasedLockTest, ::testing::Bool());

TEST_P(BiasedLockTest, AnOwnerThatWaitsIsTheNext) {
  constexpr int kRounds = 10;
  std::atomic<int> round{0};     // The thief is inside.
  std::atomic<int> begun{0};     // The owner is about to wait.
  std::atomic<int> has_been{0};  // The owner was inside.
  int overtaken = 0;
  std::thread thief{[&] {
    for (int i = 1; i <= kRounds; ++i) {
      while (!lock.try_lock_from_outside()) {
      }
      round = i;
      while (begun.load() < i) {
        std::this_thread::yield();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{5});  // It waits by now.
      lock.unlock_from_outside();
      // As others would that come all the time.
      if (lock.try_lock_from_outside()) {
        overtaken += has_been.load() < i ? 1 : 0;
        lock.unlock_from_outside();
      }
      while (has_been.load() < i) {
        std::this_thread::yield();
      }
    }
  }};
  for (int i = 1; i <= kRounds; ++i) {
    while (round.load() < i) {
      std::this_thread::yield();
    }
    begun = i;
    lock.lock();
    has_been = i;
    lock.unlock();
  }
  thief.join();
  // An owner that was off its processor for 5 ms had not begun to wait.
  EXPECT_LE(overtaken, kRounds / 2);
}

TEST_P(BiasedLockTest, AThiefThatGivesUpLeavesItAsItWas) {
  lock.lock();
  std::thread{[&] {
    EXPECT_FALSE(lock.try_lock_from_outside(0));
    EXPECT_FALSE(lock.try_lock_from_outside(2000));
  }}.join();
  lock.unlock();
  lock.lock();  // It would wait for a thief that is still announced.
  lock.unlock();
  std::thread{[&] {
    ASSERT_TRUE(lock.try_lock_from_outside(0));
    lock.unlock_from_outside();
  }}.join();
}

TEST_P(BiasedLockTest, OneAtATimeIsInside) {
  std::uint64_t inside = 0;  // Guard: lock.
  std::atomic<std::uint64_t> entries{0};
  std::atomic<bool> is_over{false};
  const auto steal = [&] {
    while (!is_over) {
      if (lock.try_lock_from_outside()) {
        ++inside;
        lock.unlock_from_outside();
        ++entries;
      }
      std::this_thread::yield();
    }
  };
  std::thread thieves[] = {std::thread{steal}, std::thread{steal}};
  for (int i = 0; i < 20'000 || entries < 20; ++i) {
    if (i % 2 != 0 || !lock.lock_at_once()) {
      lock.lock();
    }
    ++inside;
    lock.unlock();
    ++entries;
  }
  is_over = true;
  for (std::thread& thief : thieves) {
    thief.join();
  }
  EXPECT_EQ(inside, entries);
}

}  // namespace
}  // namespace sterna::threads
