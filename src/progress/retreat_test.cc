// When a caller leaves the looking to workers that need what comes, for how long, and that it comes
// back where nobody looks: the rule with what is given, and a wait beside one who looks.
#include "progress/retreat.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "progress/completion.h"
#include "progress/progress.h"

namespace sterna::progress {
namespace {

using enum Retreat::Meanwhile;

void find(Retreat& retreat, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) {
    retreat.note_work();
  }
}

TEST(Retreat, IsDueWhenWorkersFindWorkDuringOneWait) {
  Retreat retreat;
  find(retreat, 100);
  const Retreat::Wait wait{retreat};
  EXPECT_FALSE(wait.is_due()) << "that was before";
  find(retreat, Retreat::kFoundMin - 1);
  EXPECT_FALSE(wait.is_due());
  find(retreat, 1);
  EXPECT_TRUE(wait.is_due());
  EXPECT_FALSE(Retreat::Wait{retreat}.is_due()) << "the next wait begins anew";
}

TEST(Retreat, LastsTwiceAsLongEachTimeThatSomebodyLooks) {
  Retreat retreat;
  Retreat::Wait wait{retreat};
  find(retreat, Retreat::kFoundMin);
  std::uint64_t pause_ns = Retreat::kPauseNsMin;
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(wait.is_due());
    EXPECT_EQ(wait.pause_ns(), pause_ns);
    wait.is_back(somebody_looked);
    pause_ns = std::min(2 * pause_ns, Retreat::kPauseNsMax);
  }
  EXPECT_EQ(pause_ns, Retreat::kPauseNsMax);
  wait.is_back(nothing_came);
  EXPECT_FALSE(wait.is_due()) << "who looks or sleeps there may do so as any other";
  EXPECT_EQ(wait.pause_ns(), Retreat::kPauseNsMin);
}

TEST(Retreat, ComesLaterEachTimeThatNobodyHasLooked) {
  Retreat retreat;
  Retreat::Wait wait{retreat};
  std::uint32_t needed = Retreat::kFoundMin;
  for (int i = 0; i < 10; ++i) {
    find(retreat, needed - 1);
    EXPECT_FALSE(wait.is_due());
    find(retreat, 1);
    EXPECT_TRUE(wait.is_due());
    wait.is_back(nobody_looked);
    EXPECT_FALSE(wait.is_due());
    needed = std::min(2 * needed, Retreat::kFoundMax);
  }
  EXPECT_EQ(needed, Retreat::kFoundMax);
  find(retreat, needed);
  wait.is_back(somebody_looked);
  Retreat::Wait next{retreat};
  find(retreat, Retreat::kFoundMin);
  EXPECT_TRUE(next.is_due()) << "as soon as at first";
}

/// Never lets anybody sleep for the network; knows who looks. To others than `waiter` something
/// comes each time.
class WatchedSource final : public Source {
 public:
  std::uint32_t poll() noexcept override {
    if (std::this_thread::get_id() != waiter.load()) {
      return 1;
    }
    looks.fetch_add(1);
    return 0;
  }
  bool prepare_sleep() noexcept override { return false; }

  std::atomic<std::thread::id> waiter{};
  std::atomic<std::uint64_t> looks{0};  // By the waiter.
};

class RetreatOfAWait : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(progress->add(source));
    waiter = std::thread{[this] {
      source.waiter = std::this_thread::get_id();
      completion.wait(*progress);
    }};
    while (source.looks == 0) {
      std::this_thread::yield();
    }
  }
  void TearDown() override {
    completion.complete();
    waiter.join();
    progress->remove(source);
  }
  /// We look, as a worker that finds work each time; until the waiter has not looked for a while.
  void look_until_it_has_gone() {
    std::uint64_t looks = source.looks;
    for (std::uint64_t since_ns = now_ns(); now_ns() - since_ns < kGoneNs;) {
      progress->gave_work();
      (void)progress->poll(threads::SchedulingPoint::idle);
      if (const std::uint64_t now = source.looks; now != looks) {
        looks = now;
        since_ns = now_ns();
      }
      std::this_thread::yield();
    }
  }

  static constexpr std::uint64_t kGoneNs = 20'000'000;  // It would have the processor meanwhile.
  std::unique_ptr<Progress> progress = std::move(Progress::open().value());
  WatchedSource source;
  Completion completion;
  std::thread waiter;
};

TEST_F(RetreatOfAWait, LastsAsLongAsSomebodyLooksAndEndsWithWhatIsWaitedFor) {
  look_until_it_has_gone();
}

TEST_F(RetreatOfAWait, EndsWhenNobodyLooksAnyMore) {
  look_until_it_has_gone();
  const std::uint64_t looks = source.looks;
  while (source.looks == looks) {  // Else for ever, until the limit of the test.
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace sterna::progress
