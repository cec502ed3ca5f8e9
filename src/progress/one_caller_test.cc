// One caller and those that come after it, on real threads: what one thread changes without locks
// before, and all with them after, is never lost, whatever the first one does when they come.
#include "progress/one_caller.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/spin_lock.h"
#include "progress/completion.h"
#include "progress/progress.h"

namespace sterna::progress {
namespace {

/// What a runtime is here: a number, and whether its lock must be taken. Both plain, for tsan.
class Counted {
 public:
  Counted() { check(threads::register_process_barrier(), "this kernel has membarrier"); }

  OneCaller& caller() noexcept { return caller_; }
  /// In a call.
  void count() noexcept {
    if (takes_locks_) {
      const SpinGuard guard{lock_};
      ++number_;
    } else {
      ++number_;
    }
  }
  void call() noexcept {
    caller_.enter();
    count();
    caller_.leave();
  }
  /// After all calls.
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] int shared() const noexcept { return shared_; }

 private:
  static void share(void* self) noexcept {
    auto& counted = *static_cast<Counted*>(self);
    counted.takes_locks_ = true;
    ++counted.shared_;
  }

  SpinLock lock_;
  int number_ = 0;
  int shared_ = 0;
  bool takes_locks_ = false;
  OneCaller caller_{share, this};  // Inside, as MPI_Init is.
};

TEST(OneCaller, OneThreadIsNeverShared) {
  Counted counted;
  counted.call();  // A call in a call.
  counted.caller().leave();
  for (int i = 0; i < 1000; ++i) {
    counted.call();
  }
  ASSERT_TRUE(counted.caller().try_enter_briefly());
  counted.caller().leave_briefly();
  EXPECT_EQ(counted.number(), 1001);
  EXPECT_FALSE(counted.caller().is_shared());
}

TEST(OneCaller, ThreadsThatBeginAtOnceLoseNothing) {
  constexpr int kThreads = 3;
  constexpr int kCalls = 2000;
  for (int round = 0; round < 20; ++round) {
    Counted counted;
    counted.caller().leave();
    std::atomic<int> ready{0};
    const auto run = [&] {
      ++ready;
      while (ready.load() <= kThreads) {
        std::this_thread::yield();
      }
      for (int i = 0; i < kCalls; ++i) {
        if (counted.caller().try_enter_briefly()) {
          counted.count();
          counted.caller().leave_briefly();
        } else {
          counted.call();
        }
      }
    };
    std::vector<std::thread> others;
    for (int i = 0; i < kThreads; ++i) {
      others.emplace_back(run);
    }
    run();
    for (std::thread& other : others) {
      other.join();
    }
    EXPECT_EQ(counted.number(), (kThreads + 1) * kCalls);
    EXPECT_EQ(counted.shared(), 1);
    EXPECT_TRUE(counted.caller().is_shared());
    EXPECT_FALSE(counted.caller().try_enter_briefly());
  }
}

TEST(OneCaller, WhoPollsInACallGivesWay) {
  Counted counted;
  std::atomic<bool> has_called{false};
  std::thread other{[&] {
    counted.call();
    has_called = true;
  }};
  while (!has_called.load()) {
    counted.caller().give_way();
    counted.count();
  }
  other.join();
  counted.count();
  counted.caller().leave();
  EXPECT_EQ(counted.shared(), 1);
}

TEST(OneCaller, WhoIsAwayHoldsNobodyUpAndComesBackToWhatIsThen) {
  Counted counted;
  counted.call();
  {
    const OneCaller::Away away{&counted.caller()};
    counted.call();  // Code of the program, which calls again.
    std::thread{[&] { counted.call(); }}.join();
    counted.call();
  }
  counted.count();
  counted.caller().leave();
  EXPECT_EQ(counted.number(), 5);
  EXPECT_EQ(counted.shared(), 1);
  const OneCaller::Away nobody{nullptr};
}

TEST(OneCaller, WhoComesBackIsTheOneCallerStill) {
  Counted counted;
  {
    const OneCaller::Away away{&counted.caller()};
  }
  counted.caller().leave();
  EXPECT_FALSE(counted.caller().is_shared());
  counted.call();
  EXPECT_FALSE(counted.caller().is_shared());
}

TEST(OneCaller, TheOneCallerSharesByItselfInsideAndOutside) {
  for (const bool is_inside : {true, false}) {
    Counted counted;
    if (!is_inside) {
      counted.caller().leave();
    }
    counted.caller().share();
    counted.caller().share();
    EXPECT_EQ(counted.shared(), 1);
    counted.call();
    counted.caller().leave();
    std::thread{[&] { counted.call(); }}.join();
    EXPECT_EQ(counted.number(), 2);
  }
}

TEST(OneCaller, ACallThatBeganBeforeThereWasOneEndsWithoutHarm) {
  Counted counted;
  counted.caller().leave();
  counted.caller().leave();
  counted.call();
  EXPECT_FALSE(counted.caller().is_shared());
}

TEST(OneCaller, AWaitInProgressGivesWay) {
  Counted counted;
  auto progress = Progress::open();
  ASSERT_TRUE(progress.has_value());
  progress.value()->give_way_for(counted.caller());
  Completion done;
  std::thread other{[&] {
    counted.call();  // Before that the wait has no end.
    done.complete();
  }};
  EXPECT_EQ(done.wait_for(*progress.value(), {}), threads::Wake::signalled);
  counted.caller().leave();
  other.join();
  EXPECT_EQ(counted.shared(), 1);
}

TEST(OneCaller, ASleepInProgressHoldsNobodyUp) {
  Counted counted;
  auto progress = Progress::open({.spin_ns = 0});
  ASSERT_TRUE(progress.has_value());
  progress.value()->give_way_for(counted.caller());
  Completion done;
  std::thread other{[&] {
    while (progress.value()->counters().sleeps == 0) {
      std::this_thread::yield();
    }
    counted.call();
    done.complete();
  }};
  EXPECT_EQ(done.wait_for(*progress.value(), {}), threads::Wake::signalled);
  counted.caller().leave();
  other.join();
  EXPECT_EQ(counted.shared(), 1);
}

}  // namespace
}  // namespace sterna::progress
