// Kernel threads exclude each other, also while a holder sleeps in the kernel.
#include "base/kernel_lock.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/annotate.h"

namespace sterna {
namespace {

TEST(KernelLock, LetsOneInAtATime) {
  KernelLock lock;
  int inside = 0;  // Guard: lock; so is `count`.
  int count = 0;
  int faults = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        const KernelGuard guard{lock};
        faults += ++inside == 1 ? 0 : 1;
        if (round % 50 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds{50});  // The others fall asleep.
        }
        ++count;
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(count, 4 * 500);
  EXPECT_EQ(faults, 0);
}

void take_twice(KernelLock& lock) STERNA_LOCKS_UNCHECKED {
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(KernelLock, IsNotTakenTwice) {
  KernelLock lock;
  take_twice(lock);
}

}  // namespace
}  // namespace sterna
