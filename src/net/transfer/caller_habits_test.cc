// Receives that are left under way, beside what is sent.
#include "net/transfer/caller_habits.h"

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr std::uint64_t kMomentNs = 300;
constexpr std::uint64_t kComputesNs = 100'000;

class CallerHabitsTest : public testing::Test {
 protected:
  void is_away(std::uint64_t ns) {
    habits.was_away(now_ns, now_ns + ns);
    now_ns += ns;
  }
  /// A receive, a send and a wait, with that between them; whether the receive was thought to be
  /// waited for at once.
  bool exchange(std::uint64_t after_receive_ns, std::uint64_t after_send_ns) {
    habits.has_left_receive(now_ns);
    const bool is_about_to_wait = habits.is_about_to_wait();
    is_away(after_receive_ns);
    habits.has_sent(now_ns);
    is_away(after_send_ns);
    EXPECT_TRUE(habits.is_open());
    habits.waits(now_ns);
    EXPECT_FALSE(habits.is_open());
    habits.ended();
    return is_about_to_wait;
  }

  CallerHabits habits;
  std::uint64_t now_ns = 1'000'000;
};

TEST_F(CallerHabitsTest, WhoWaitsAtOnceForWhatItReceivesIsKnownByIt) {
  EXPECT_FALSE(exchange(kMomentNs, kMomentNs));
  EXPECT_FALSE(exchange(kMomentNs, kMomentNs));
  EXPECT_TRUE(exchange(kMomentNs, kMomentNs));
  EXPECT_TRUE(exchange(kMomentNs, kComputesNs)) << "by what it did till then";
  EXPECT_FALSE(exchange(kMomentNs, kMomentNs));
}

TEST_F(CallerHabitsTest, WhoReceivesBesideItsComputationMayWaitForWhatItSends) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(exchange(kComputesNs, kMomentNs));
    EXPECT_TRUE(i == 0 || habits.of_sends().waits_at_once());
  }
}

TEST_F(CallerHabitsTest, OfSeveralReceivesTheFirstOneCounts) {
  for (int i = 0; i < 4; ++i) {
    habits.has_left_receive(now_ns);
    EXPECT_FALSE(habits.is_about_to_wait());
    is_away(kComputesNs);
    habits.has_left_receive(now_ns);
    is_away(kMomentNs);
    habits.waits(now_ns);
    habits.ended();
  }
}

TEST_F(CallerHabitsTest, OneThatIsLeftAfterAnotherHasEndedIsWaitedForAsWell) {
  (void)exchange(kMomentNs, kMomentNs);
  (void)exchange(kMomentNs, kMomentNs);
  habits.has_left_receive(now_ns);
  habits.ended();  // It has come, and nobody has waited.
  EXPECT_FALSE(habits.is_about_to_wait());
  habits.has_left_receive(now_ns);
  EXPECT_TRUE(habits.is_about_to_wait());
}

TEST_F(CallerHabitsTest, WhoSendsBehindAReceiveReadsLaterTheNextTime) {
  EXPECT_FALSE(habits.finds_announced());
  habits.has_sent(now_ns);
  habits.waits(now_ns);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(habits.finds_announced());
    EXPECT_TRUE(habits.finds_announced()) << "of several receives";
    habits.has_sent(now_ns);
    habits.waits(now_ns);
  }
  EXPECT_TRUE(habits.finds_announced());
  EXPECT_TRUE(habits.is_open()) << "a wait would tell something";
  habits.waits(now_ns);
  EXPECT_FALSE(habits.finds_announced()) << "nothing followed";
  habits.waits(now_ns);
  habits.has_sent(now_ns);
  EXPECT_FALSE(habits.finds_announced()) << "it had waited before";
}

TEST_F(CallerHabitsTest, WhatWasReadAtOnceMeasuresNoAbsence) {
  EXPECT_FALSE(habits.finds_announced());
  EXPECT_TRUE(habits.is_open());
  EXPECT_FALSE(habits.measures_absence());
  habits.has_left_receive(now_ns);
  EXPECT_TRUE(habits.measures_absence()) << "of another one";
  habits.waits(now_ns);
  EXPECT_FALSE(habits.measures_absence());
  EXPECT_FALSE(habits.finds_announced());
  habits.has_sent(now_ns);
  EXPECT_TRUE(habits.measures_absence());
  habits.waits(now_ns);
  EXPECT_TRUE(habits.finds_announced()) << "a send has followed";
}

TEST_F(CallerHabitsTest, WhileSomethingIsSentThatOneCounts) {
  for (int i = 0; i < 3; ++i) {
    habits.has_sent(now_ns);
    is_away(kMomentNs);
    habits.waits(now_ns);
  }
  habits.has_left_receive(now_ns);
  EXPECT_TRUE(habits.is_about_to_wait());
  habits.ended();
  habits.has_left_receive(now_ns);
  EXPECT_FALSE(habits.is_about_to_wait());
}

}  // namespace
}  // namespace sterna::net
