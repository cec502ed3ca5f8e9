// Who looks again and again at what no completion announces sleeps between two looks.
#include "runtime/safe_point.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "progress/progress.h"

namespace sterna::runtime {
namespace {

TEST(WaitBetweenLooks, KernelThreadLooksAtFirstThenSleeps) {
  auto progress = progress::Progress::open();
  ASSERT_TRUE(progress);
  RankContext rank;
  rank.progress = progress.value().get();
  std::uint32_t round = 0;
  for (; round < 64; ++round) {
    wait_between_looks(rank, round, kNever);
  }
  EXPECT_EQ(rank.progress->counters().naps, 0U);
  EXPECT_GE(rank.progress->counters().polls, 64U);  // The network advances.
  // A nap may be over before it sleeps, on a machine that is busy.
  while (rank.progress->counters().naps < 32 && round < 10'000) {
    wait_between_looks(rank, round, kNever);
    ++round;
  }
  EXPECT_EQ(rank.progress->counters().naps, 32U);
  EXPECT_LT(round, 10'000U);
}

TEST(WaitBetweenLooks, ThatIsOverSleepsNoLonger) {
  auto progress = progress::Progress::open();
  ASSERT_TRUE(progress);
  RankContext rank;
  rank.progress = progress.value().get();
  for (std::uint32_t round = 0; round < 1'000; ++round) {
    wait_between_looks(rank, round + 1'000, now_ns());
  }
  EXPECT_EQ(rank.progress->counters().naps, 0U);
}

}  // namespace
}  // namespace sterna::runtime
