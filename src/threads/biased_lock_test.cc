// The biased lock on real processors: exclusion is for the model; here is who gets in, and who
// gives up.
#include "threads/biased_lock.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "threads/sanitizer.h"

namespace sterna::threads {
namespace {

TEST(BiasedLock, ItsOwnerGetsInHoweverManyThievesThereAre) {
  BiasedLock lock{register_process_barrier()};
  std::atomic<bool> is_over{false};
  long count = 0;  // Guard: lock.
  std::atomic<long> stolen{0};
  std::vector<std::thread> thieves;
  for (int i = 0; i < 4; ++i) {
    thieves.emplace_back([&] {
      while (!is_over.load()) {
        if (lock.try_lock_from_outside()) {
          ++count;
          stolen.fetch_add(1, std::memory_order_relaxed);
          lock.unlock_from_outside();
        }
      }
    });
  }
  while (stolen.load() < 100) {
    std::this_thread::yield();
  }
  constexpr long kSections = kSanitized ? 20'000 : 200'000;
  for (long i = 0; i < kSections; ++i) {
    lock.lock();
    ++count;
    lock.unlock();
  }
  is_over = true;
  for (std::thread& thief : thieves) {
    thief.join();
  }
  EXPECT_EQ(count, kSections + stolen.load());
}

TEST(BiasedLock, AThiefThatGivesUpLeavesItAsItWas) {
  BiasedLock lock{register_process_barrier()};
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

}  // namespace
}  // namespace sterna::threads
