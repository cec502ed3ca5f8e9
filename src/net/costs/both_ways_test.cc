// When long messages are taken to come and go at the same time; and which eager ones are trials.
#include "net/costs/both_ways.h"

#include <gtest/gtest.h>

#include "net/costs/eager_trials.h"

namespace sterna::net {
namespace {

TEST(BothWays, OfAnExchangeAllDo) {
  BothWays both;
  EXPECT_EQ(both.share(), 0);
  int changes = 0;
  for (int i = 0; i < 100; ++i) {
    (void)both.sends();
    changes += both.receives(true) ? 1 : 0;
  }
  EXPECT_EQ(both.share(), 1);
  EXPECT_LE(changes, 6) << "each is a change of the cost model";
  EXPECT_FALSE(both.only_receives());
}

TEST(BothWays, OfAPingPongNoneDo) {
  BothWays both;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(both.sends());
    EXPECT_FALSE(both.receives(false));
  }
  EXPECT_EQ(both.share(), 0);
  EXPECT_FALSE(both.only_receives());
}

TEST(BothWays, WhoOnlySendsForgets) {
  BothWays both;
  for (int i = 0; i < 100; ++i) {
    (void)both.receives(true);
  }
  ASSERT_EQ(both.share(), 1);
  EXPECT_TRUE(both.only_receives());
  for (int i = 0; i < 100; ++i) {
    (void)both.sends();
  }
  EXPECT_EQ(both.share(), 0);
  EXPECT_FALSE(both.only_receives());
}

TEST(BothWays, OneBesideOthersChangesNothing) {
  BothWays both;
  for (int i = 0; i < 100; ++i) {
    (void)both.receives(true);
  }
  EXPECT_FALSE(both.receives(false));
  EXPECT_EQ(both.share(), 1);
}

TEST(EagerTrials, AreOneOfManySomeInARow) {
  constexpr std::uint32_t kCount = 5 * EagerTrials::kInARow * EagerTrials::kAnnouncedEvery;
  EagerTrials trials;
  EXPECT_FALSE(trials.is_announced(1 << 20)) << "nothing is known of the way yet";
  trials.begin_from(1000);
  constexpr std::uint32_t kAtFirst = 3 * EagerTrials::kInARow;  // Of the first share.
  std::uint32_t announced = 0;
  std::uint32_t measured = 0;
  std::uint32_t in_a_row = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    EXPECT_FALSE(trials.is_announced(999));
    const bool is_announced = trials.is_announced(1000);
    announced += is_announced ? 1 : 0;
    measured += trials.is_measured(1000) ? 1 : 0;
    EXPECT_TRUE(is_announced || in_a_row == 0 || in_a_row == EagerTrials::kInARow) << in_a_row;
    in_a_row = is_announced ? in_a_row + 1 : 0;
    EXPECT_LE(in_a_row, EagerTrials::kInARow);
    EXPECT_TRUE(i != EagerTrials::kAnnouncedEvery || announced == kAtFirst) << announced;
  }
  const std::uint32_t more_at_first = kAtFirst - EagerTrials::kInARow;
  EXPECT_EQ(announced, kCount / EagerTrials::kAnnouncedEvery + more_at_first);
  EXPECT_EQ(measured, kCount / EagerTrials::kFilledEvery);
}

}  // namespace
}  // namespace sterna::net
