// How much of a message is copied directly until the next look whether its peer is back.
#include "net/transfer/stay_habit.h"

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr std::uint64_t kLeast = 128 << 10;
constexpr std::uint64_t kMost = 1 << 20;
constexpr std::uint64_t kPartNs = 16'000;  // Of the least part.

std::uint64_t second_part(const StayHabit& habit) {
  return habit.part_bytes(kLeast, kPartNs, kLeast, kMost);
}

TEST(StayHabit, LooksOftenAsLongAsNothingIsKnown) {
  StayHabit habit;
  EXPECT_EQ(second_part(habit), kLeast);
  habit.stayed(100'000);
  EXPECT_EQ(second_part(habit), kLeast) << "once may be chance";
}

TEST(StayHabit, ThePaceOfTheFirstPartSaysHowFarTheNextOneGoes) {
  StayHabit habit;
  habit.stayed(5 * kPartNs);
  habit.stayed(5 * kPartNs);
  EXPECT_EQ(habit.part_bytes(0, 0, kLeast, kMost), kLeast);
  EXPECT_EQ(second_part(habit), 4 * kLeast);
  EXPECT_EQ(habit.part_bytes(5 * kLeast, 5 * kPartNs, kLeast, kMost), kLeast) << "back any moment";
}

TEST(StayHabit, TheShorterOneOfTheLastTwoCounts) {
  StayHabit habit;
  habit.stayed(3 * kPartNs);
  habit.stayed(StayHabit::kForever);
  EXPECT_EQ(second_part(habit), 2 * kLeast);
  habit.stayed(StayHabit::kForever);
  EXPECT_EQ(second_part(habit), kMost);
  habit.stayed(1);
  EXPECT_EQ(second_part(habit), kLeast);
}

TEST(StayHabit, AClockThatStandsStillEndsAtTheMost) {
  StayHabit habit;
  habit.stayed(kPartNs);
  habit.stayed(kPartNs);
  EXPECT_EQ(habit.part_bytes(kLeast, 0, kLeast, kMost), kMost);
}

}  // namespace
}  // namespace sterna::net
