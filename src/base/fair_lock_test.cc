// The fair lock: one at a time, in the order in which they asked.
#include "base/fair_lock.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sterna {
namespace {

TEST(FairLock, WhoComesAgainAndAgainLetsThoseInWhoHaveAsked) {
  FairLock lock;
  std::vector<int> order;  // Guard: lock.
  for (int round = 0; round < 50; ++round) {
    lock.lock();
    std::thread other{[&] {
      const FairGuard guard{lock};
      order.push_back(2);
    }};
    while (lock.asker_count() < 2) {
      std::this_thread::yield();
    }
    lock.unlock();
    lock.lock();  // At once, again.
    order.push_back(1);
    lock.unlock();
    other.join();
    ASSERT_EQ(order, (std::vector<int>{2, 1}));
    order.clear();
  }
  EXPECT_EQ(lock.asker_count(), 0U);
}

TEST(FairLock, AdmitsOneAtATime) {
  FairLock lock;
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 300; ++j) {
        const FairGuard guard{lock};
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(count, 1200U);
}

}  // namespace
}  // namespace sterna
