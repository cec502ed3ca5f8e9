// Frames of eager messages: whole, bounded, and counted right.
#include "net/packets/eager_cut.h"

#include <vector>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

std::vector<std::uint32_t> frames_of(const EagerCut& cut, std::uint64_t bytes, std::uint32_t most) {
  std::vector<std::uint32_t> all;
  std::uint64_t offset = 0;
  do {
    all.push_back(cut.bytes_at(offset));
    offset += all.back();
  } while (offset < bytes && all.back() != 0);
  EXPECT_EQ(cut.frame_count(), all.size()) << bytes << " in " << most;
  EXPECT_EQ(offset, bytes);
  return all;
}

std::vector<std::uint32_t> frames(std::uint64_t bytes, std::uint32_t most, bool begins_short) {
  return frames_of(EagerCut{bytes, most, begins_short}, bytes, most);
}
std::vector<std::uint32_t> led(std::uint64_t bytes, std::uint32_t most) {
  return frames_of(EagerCut::led(bytes, most), bytes, most);
}

using Frames = std::vector<std::uint32_t>;

TEST(EagerCut, IsIntoFramesAsLongAsTheyMayBe) {
  EXPECT_EQ(frames(0, 1000, false), Frames{0});
  EXPECT_EQ(frames(1000, 1000, false), Frames{1000});
  EXPECT_EQ(frames(2001, 1000, false), (Frames{1000, 1000, 1}));
}

TEST(EagerCut, BeginsWithAShortOneWhereThatIsQuicker) {
  constexpr std::uint32_t kMost = 34 << 10;
  EXPECT_EQ(frames(kMost, kMost, true), Frames{kMost});
  EXPECT_EQ(frames(kMost + 1, kMost, true), (Frames{12 << 10, (22 << 10) + 1}));
  EXPECT_EQ(frames(64 << 10, kMost, true), (Frames{12 << 10, 26 << 10, 26 << 10}));
  EXPECT_EQ(frames(40 << 10, 16 << 10, true), (Frames{12 << 10, 16 << 10, 12 << 10}));
}

TEST(EagerCut, IsLedByAFewBytes) {
  EXPECT_EQ(led(0, 1000), Frames{0});
  EXPECT_EQ(led(64, 1000), Frames{64});
  EXPECT_EQ(led(1000, 1000), (Frames{64, 936}));
  EXPECT_EQ(led(2000, 1000), (Frames{64, 1000, 936}));
  EXPECT_EQ(led(100, 64), (Frames{64, 36})) << "where no frame is longer";
  EXPECT_TRUE(EagerCut::led(1000, 1000).begins_short());
  EXPECT_FALSE(EagerCut::led(64, 1000).begins_short());
  EXPECT_FALSE(EagerCut::led(100, 64).begins_short());
}

TEST(EagerCut, SaysWhetherFramesAreLongerThanTheFirst) {
  EXPECT_TRUE((EagerCut{64 << 10, 22 << 10, true}.begins_short()));
  EXPECT_FALSE((EagerCut{22 << 10, 22 << 10, true}.begins_short()));
  EXPECT_FALSE((EagerCut{64 << 10, 12 << 10, true}.begins_short()));
  EXPECT_FALSE((EagerCut{64 << 10, 22 << 10, false}.begins_short()));
}

TEST(EagerCut, CoversAnyMessageByFramesThatFit) {
  for (const std::uint32_t most : {1U, 100U, 12U << 10, (12U << 10) + 1, 16U << 10, 34'768U}) {
    for (std::uint64_t bytes = 0; bytes < std::min(10 * most, 200'000U); bytes += 1 + most / 7) {
      for (const std::uint32_t frame : frames(bytes, most, true)) {
        ASSERT_LE(frame, most);
        ASSERT_TRUE(frame > 0 || bytes == 0);
      }
    }
  }
}

}  // namespace
}  // namespace sterna::net
