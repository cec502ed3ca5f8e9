// Which sources are asked one by one.
#include "progress/busy_sources.h"

#include <gtest/gtest.h>

namespace sterna::progress {
namespace {

class Silent final : public Source {
 public:
  std::uint32_t poll() noexcept override { return 0; }
};

TEST(BusySources, TheLastThatHadSomethingIsAsked) {
  BusySources busy;
  EXPECT_EQ(busy.last(), nullptr);
  EXPECT_EQ(busy.of_round(0), nullptr);
  Silent one;
  busy.had(one);
  EXPECT_EQ(busy.last(), &one);
  EXPECT_EQ(busy.of_round(0), &one);
  EXPECT_EQ(busy.of_round(1), &one);
}

TEST(BusySources, TwoThatHaveSomethingInTurnAreAskedInTurn) {
  BusySources busy;
  Silent one;
  Silent other;
  busy.had(one);
  busy.had(other);
  EXPECT_EQ(busy.last(), &other);
  EXPECT_EQ(busy.of_round(0), &one) << "the next part is likely to come there";
  EXPECT_EQ(busy.of_round(1), &other);
  for (int i = 0; i < 8; ++i) {
    busy.had(other);
  }
  EXPECT_EQ(busy.of_round(0), &other) << "the other one has had nothing for long";
  busy.had(one);
  EXPECT_EQ(busy.of_round(0), &other);
  EXPECT_EQ(busy.of_round(1), &one);
}

TEST(BusySources, OneThatIsGoneIsNotAsked) {
  BusySources busy;
  Silent one;
  Silent other;
  busy.had(one);
  busy.had(other);
  busy.forget(other);
  EXPECT_EQ(busy.last(), &one);
  EXPECT_EQ(busy.of_round(0), &one);
  busy.had(other);
  busy.forget(one);
  EXPECT_EQ(busy.of_round(0), &other);
  busy.forget(other);
  EXPECT_EQ(busy.last(), nullptr);
  EXPECT_EQ(busy.of_round(1), nullptr);
}

}  // namespace
}  // namespace sterna::progress
