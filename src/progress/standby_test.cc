// When a worker that kernel threads look for stays away from the network, and when it comes: with
// times that are given.
#include "progress/standby.h"

#include <gtest/gtest.h>

namespace sterna::progress {
namespace {

class StandbyTest : public testing::Test {
 protected:
  std::uint64_t absence_ns() { return standby.absence_ns(word, now_ns); }
  /// It comes when it may, and is woken in vain.
  std::uint64_t in_vain() {
    now_ns += absence_ns();
    EXPECT_EQ(absence_ns(), 0U);
    standby.was_woken_in_vain(now_ns);
    return absence_ns();
  }

  Standby standby;
  std::atomic<std::uint32_t> word{0};
  std::uint64_t now_ns = 7'000'000'000;
};

TEST_F(StandbyTest, WhoIsWokenInVainStaysAwayForLongerEachTime) {
  EXPECT_EQ(absence_ns(), 0U);
  std::uint64_t pause_ns = Standby::kPauseNsMin;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(in_vain(), pause_ns);
    pause_ns = std::min(2 * pause_ns, Standby::kPauseNsMax);
  }
  EXPECT_EQ(pause_ns, Standby::kPauseNsMax);
}

TEST_F(StandbyTest, WhoIsNeededComesSoonerTheNextTime) {
  for (int i = 0; i < 20; ++i) {
    (void)in_vain();
  }
  now_ns += absence_ns();
  standby.was_needed();
  EXPECT_EQ(absence_ns(), 0U) << "and stays until it is woken in vain";
  EXPECT_EQ(in_vain(), Standby::kPauseNsMax / 2);
  for (int i = 0; i < 5; ++i) {
    now_ns += absence_ns();
    standby.was_needed();
  }
  EXPECT_EQ(in_vain(), Standby::kPauseNsMin);
}

TEST_F(StandbyTest, WhoFindsWorkIsAwakeEarlyForTheNext) {
  (void)in_vain();
  EXPECT_NE(absence_ns(), 0U);
  standby.note_work();
  EXPECT_EQ(absence_ns(), 0U) << "at once";
  for (std::uint32_t i = 0; i < Standby::kCredit; ++i) {
    EXPECT_EQ(in_vain(), 0U);
  }
  EXPECT_EQ(in_vain(), Standby::kPauseNsMin) << "but not for ever";
}

TEST_F(StandbyTest, ACallerCallsWhoIsAway) {
  EXPECT_EQ(standby.call(), nullptr);
  EXPECT_EQ(absence_ns(), 0U);
  (void)in_vain();
  (void)in_vain();
  EXPECT_EQ(standby.call(), &word);
  EXPECT_EQ(absence_ns(), 0U);
  EXPECT_EQ(standby.call(), nullptr) << "it is here";
  EXPECT_EQ(in_vain(), Standby::kPauseNsMin) << "as if it had never been away";
  standby.note_work();
  EXPECT_EQ(standby.call(), nullptr) << "it has work";
}

TEST_F(StandbyTest, WhileOneSleepOfACallerLastsItStaysAwayForLong) {
  for (int i = 0; i < 20; ++i) {
    standby.found_a_sleeper(now_ns, static_cast<std::uint64_t>(i));
    EXPECT_LE(absence_ns(), Standby::kPauseNsMax);
    now_ns += absence_ns();
  }
  for (int i = 0; i < 20; ++i) {
    standby.found_a_sleeper(now_ns, 19);
    now_ns += absence_ns();
  }
  standby.found_a_sleeper(now_ns, 19);
  EXPECT_EQ(absence_ns(), Standby::kPauseNsLong);
}

TEST_F(StandbyTest, KnowsWhetherCallersLook) {
  EXPECT_FALSE(standby.is_looked_after());
  standby.begin_to_look();
  standby.begin_to_look();
  standby.cease_to_look();
  EXPECT_TRUE(standby.is_looked_after());
  standby.cease_to_look();
  EXPECT_FALSE(standby.is_looked_after());
}

}  // namespace
}  // namespace sterna::progress
