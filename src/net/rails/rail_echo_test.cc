// What a rail says of its packets: each that came once, and of those that left the last, once.
#include "net/rails/rail_echo.h"

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

TEST(RailEcho, TellsOfTheLastThatCameOnce) {
  RailEcho echo;
  EXPECT_EQ(echo.take_came().ns, 0U);
  echo.came(7, 100);
  echo.came(9, 120);
  const RailEcho::Packet last = echo.take_came();
  EXPECT_EQ(last.sequence, 9U);
  EXPECT_EQ(last.ns, 120U);
  EXPECT_EQ(echo.take_came().ns, 0U);
}

TEST(RailEcho, KnowsWhenTheLastLeftUntilItIsEchoed) {
  RailEcho echo;
  EXPECT_EQ(echo.take_left(0).ns, 0U) << "none has";
  echo.left(7, 1000, 100);
  echo.left(8, 2000, 110);
  EXPECT_EQ(echo.take_left(7).ns, 0U) << "an older one";
  const RailEcho::Packet last = echo.take_left(8);
  EXPECT_EQ(last.ns, 110U);
  EXPECT_EQ(last.bytes, 2000U);
  EXPECT_EQ(echo.take_left(8).ns, 0U) << "news of it that come later have waited";
}

TEST(RailEcho, SaysNothingOfWhatWentAgain) {
  RailEcho echo;
  echo.left(8, 2000, 110);
  echo.left_again(7);
  echo.left_again(8);
  EXPECT_EQ(echo.take_left(8).ns, 0U);
}

}  // namespace
}  // namespace sterna::net
