// Frames of eager messages: whole, bounded, and counted right.
#include "net/packets/eager_cut.h"

#include <vector>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

std::vector<std::uint32_t> frames(std::uint64_t bytes, std::uint32_t most, bool grows) {
  const EagerCut cut{bytes, most, grows};
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

using Frames = std::vector<std::uint32_t>;

TEST(EagerCut, IsIntoFramesAsLongAsTheyMayBe) {
  EXPECT_EQ(frames(0, 1000, false), Frames{0});
  EXPECT_EQ(frames(1000, 1000, false), Frames{1000});
  EXPECT_EQ(frames(2001, 1000, false), (Frames{1000, 1000, 1}));
}

TEST(EagerCut, BeginsWithShortOnesWhereThatIsQuicker) {
  constexpr std::uint32_t kMost = 22 << 10;
  EXPECT_EQ(frames(kMost, kMost, true), Frames{kMost});
  EXPECT_EQ(frames(kMost + 1, kMost, true), (Frames{8 << 10, (14 << 10) + 1}));
  EXPECT_EQ(frames(30 << 10, kMost, true), (Frames{8 << 10, 22 << 10}));
  EXPECT_EQ(frames(32 << 10, kMost, true), (Frames{8 << 10, 14 << 10, 10 << 10}));
  EXPECT_EQ(frames(64 << 10, kMost, true), (Frames{8 << 10, 14 << 10, 21 << 10, 21 << 10}));
}

TEST(EagerCut, CoversAnyMessageByFramesThatFit) {
  for (const std::uint32_t most : {1U, 100U, 8U << 10, (8U << 10) + 1, 16U << 10, 22'480U}) {
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
