// Whatever comes first, the rail or the frames: each byte of a lent part counts once.
#include "net/rails/lent_parts.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr LentParts::Of kOf{.rank = 3, .receive = 17};
constexpr LentParts::Way kWay{.rail = 1, .node = 2};
constexpr std::uint64_t kBegin = 1000;
constexpr std::uint64_t kBytes = 300;
constexpr std::uint64_t kFrames = 3;
constexpr std::uint64_t kFrameBytes = kBytes / kFrames;

/// One history of a part: the news that it is lent, and its end, whole or not, among the frames
/// that bring it again. `hold_at`, `end_at`: before which frame; kFrames: after all of them.
struct History {
  std::uint64_t hold_at;
  std::uint64_t end_at;
  bool is_whole;
  bool comes_again;

  std::uint64_t run(LentParts& parts) const {
    std::uint64_t counted = 0;
    bool is_held = false;
    for (std::uint64_t i = 0; i <= kFrames; ++i) {
      if (i == hold_at) {
        is_held = parts.hold(kOf, kWay, kBegin, kBytes);
      }
      if (i == end_at && is_held) {
        counted += parts.end(kOf, kBegin, kBytes, is_whole);
      }
      if (i < kFrames && comes_again) {
        counted += parts.come_again(kOf, kBegin + i * kFrameBytes, kFrameBytes);
      }
    }
    return counted;
  }
};

TEST(LentParts, EachByteCountsOnceInEveryOrder) {
  int count = 0;
  for (std::uint64_t hold_at = 0; hold_at <= kFrames; ++hold_at) {
    for (std::uint64_t end_at = hold_at; end_at <= kFrames; ++end_at) {
      for (const bool is_whole : {true, false}) {
        const History history{hold_at, end_at, is_whole, true};
        LentParts parts;
        ASSERT_EQ(history.run(parts), kBytes)
            << "held before frame " << hold_at << ", ended before " << end_at << ", " << is_whole;
        parts.forget(kOf);
        ++count;
      }
    }
  }
  EXPECT_EQ(count, 20);
}

TEST(LentParts, WithoutFramesOnlyWhatIsWholeCounts) {
  LentParts parts;
  EXPECT_EQ((History{0, kFrames, true, false}.run(parts)), kBytes);
  EXPECT_EQ(parts.twice_bytes(), 0U);
  parts.forget(kOf);
  EXPECT_EQ((History{0, kFrames, false, false}.run(parts)), 0U);
}

TEST(LentParts, OneOfWhichFramesHaveComeIsNotWritten) {
  LentParts parts;
  EXPECT_EQ(parts.come_again(kOf, kBegin, kFrameBytes), kFrameBytes);
  EXPECT_FALSE(parts.hold(kOf, kWay, kBegin, kBytes));
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin + kBytes, kBytes)) << "the next one may be";
}

TEST(LentParts, ReceivesOfTheSameNumbersElsewhereAreOthers) {
  LentParts parts;
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin, kBytes));
  EXPECT_TRUE(parts.hold({.rank = 4, .receive = 17}, kWay, kBegin, kBytes));
  EXPECT_EQ(parts.end(kOf, kBegin, kBytes, true), kBytes);
  EXPECT_EQ(parts.come_again({.rank = 3, .receive = 18}, kBegin, kBytes), kBytes);
  EXPECT_EQ(parts.come_again(kOf, kBegin, kBytes), 0U);
  EXPECT_EQ(parts.twice_bytes(), kBytes);
}

TEST(LentParts, TheWayOfOneThatComesAgainWhileItIsWrittenIsGivenUpOnce) {
  LentParts parts;
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin, kBytes));
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin + kBytes, kBytes));
  EXPECT_FALSE(parts.has_given_up());
  EXPECT_EQ(parts.come_again(kOf, kBegin, kBytes), kBytes);
  EXPECT_EQ(parts.come_again(kOf, kBegin + kBytes, kBytes), kBytes);
  EXPECT_TRUE(parts.has_given_up());
  EXPECT_EQ(parts.take_given_up(), std::vector{kWay});
  EXPECT_FALSE(parts.has_given_up());
}

TEST(LentParts, OneThatIsThereIsNoReasonToGiveUpItsWay) {
  LentParts parts;
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin, kBytes));
  EXPECT_EQ(parts.end(kOf, kBegin, kBytes, true), kBytes);
  EXPECT_EQ(parts.come_again(kOf, kBegin, kBytes), 0U);
  EXPECT_FALSE(parts.has_given_up());
}

TEST(LentParts, AReceiveThatIsOverIsForgotten) {
  LentParts parts;
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin, kBytes));
  EXPECT_EQ(parts.end(kOf, kBegin, kBytes, true), kBytes);
  parts.forget(kOf);
  EXPECT_TRUE(parts.hold(kOf, kWay, kBegin, kBytes));
}

}  // namespace
}  // namespace sterna::net
