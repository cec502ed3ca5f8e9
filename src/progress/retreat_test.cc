// When a caller leaves the looking to workers that need what comes, for how long, and that it comes
// back where nobody looks: the rule with what is given, and a wait beside one who looks.
#include "progress/retreat.h"

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <unistd.h>

#include <gtest/gtest.h>

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

/// Never lets anybody sleep for the network: who waits runs, or yields, all the time, unless it has
/// retreated. Knows who looks. To others than `waiter` something comes each time.
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
      task = ::gettid();
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
  [[nodiscard]] bool is_asleep() const {
    std::ifstream file{"/proc/self/task/" + std::to_string(task) + "/stat"};
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(')');  // "7 (name) S": proc_pid_stat(5).
    return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
  }
  /// We look, as a worker that finds work each time; until the waiter does not.
  void look_until_it_sleeps() {
    while (!is_asleep()) {
      progress->gave_work();
      (void)progress->poll(threads::SchedulingPoint::idle);
    }
  }

  std::unique_ptr<Progress> progress = std::move(Progress::open().value());
  WatchedSource source;
  Completion completion;
  std::atomic<pid_t> task{0};
  std::thread waiter;
};

TEST_F(RetreatOfAWait, BeginsWhereWorkersFindWorkAndEndsWithWhatIsWaitedFor) {
  look_until_it_sleeps();
}

TEST_F(RetreatOfAWait, EndsWhenNobodyLooksAnyMore) {
  look_until_it_sleeps();
  const std::uint64_t looks = source.looks;
  while (source.looks == looks) {  // Else for ever, until the limit of the test.
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace sterna::progress
