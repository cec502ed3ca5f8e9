// Who waits without being let sleep leaves its processor to whom it waits for.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <sched.h>

#include <gtest/gtest.h>

#include "base/test_real_time.h"
#include "progress/completion.h"
#include "progress/progress.h"

namespace sterna::progress {
namespace {

/// Has something left to do all the time, so that nobody may sleep; or something comes each time.
class BusySource final : public Source {
 public:
  explicit BusySource(std::uint32_t events) noexcept : events_{events} {}
  std::uint32_t poll() noexcept override { return events_; }
  bool prepare_sleep() noexcept override { return false; }

 private:
  const std::uint32_t events_;
};

class BusyWait : public testing::TestWithParam<std::uint32_t> {};

// Without yields it never ends: of threads of one priority none takes turns.
TEST_P(BusyWait, LetsACompleterOfTheSamePriorityHaveTheProcessor) {
  const int processor = ::sched_getcpu();
  const auto progress = std::move(Progress::open().value());
  BusySource source{GetParam()};
  ASSERT_TRUE(progress->add(source));
  Completion completion;
  std::atomic<bool> waits{false};
  std::atomic<bool> may_rule{true};
  std::thread waiter{[&] {
    may_rule = rule(processor);
    waits = true;
    if (may_rule) {
      completion.wait(*progress);
    }
  }};
  std::thread completer{[&] {
    const bool rules = rule(processor);
    while (!waits) {
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    may_rule = may_rule && rules;
    completion.complete();
  }};
  completer.join();
  waiter.join();
  progress->remove(source);
  if (!may_rule) {
    GTEST_SKIP() << "this user has no real-time policy (ulimit -r)";
  }
}

INSTANTIATE_TEST_SUITE_P(OfEvents, BusyWait, testing::Values(0U, 1U));

}  // namespace
}  // namespace sterna::progress
