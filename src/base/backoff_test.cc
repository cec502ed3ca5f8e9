// Who spins gives its processor away in the end: under a real-time policy nobody takes it.
#include "base/backoff.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

#include "base/spin_lock.h"
#include "base/test_real_time.h"

namespace sterna {
namespace {

// Without an end of spinning this never ends: of threads of one priority none takes turns.
TEST(Backoff, LetsAHolderOfTheSamePriorityHaveTheProcessor) {
  const int processor = ::sched_getcpu();
  SpinLock lock;
  std::atomic<int> step{0};  // 1: the lock is held; 2: its holder sleeps, or may have to.
  std::atomic<bool> may_rule{true};
  std::thread holder{[&] {
    may_rule = rule(processor);
    lock.lock();
    step = 1;
    // Behind the other one, which runs on this processor, when it wakes.
    while (may_rule && step != 2) {
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    lock.unlock();
  }};
  std::thread waiter{[&] {
    while (step != 1) {
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    if (may_rule && rule(processor)) {
      step = 2;
      const SpinGuard guard{lock};
    }
    step = 2;
  }};
  holder.join();
  waiter.join();
  if (!may_rule) {
    GTEST_SKIP() << "this user has no real-time policy (ulimit -r)";
  }
}

}  // namespace
}  // namespace sterna
