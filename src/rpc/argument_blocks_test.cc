// Memory of arguments that is used again, and how much of it is kept.
#include "rpc/argument_blocks.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::rpc {
namespace {

TEST(ArgumentBlocks, AreUsedAgainForWhatFits) {
  ArgumentBlocks blocks;
  const std::byte* const first = blocks.take(3000).get();  // Given back at once.
  EXPECT_EQ(blocks.kept_bytes(), 4096U);
  const ArgumentBlocks::Block again = blocks.take(4096);
  EXPECT_EQ(again.get(), first);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
  EXPECT_NE(blocks.take(4096).get(), first);
}

TEST(ArgumentBlocks, HoldAsMuchAsIsAskedForAndAreAligned) {
  ArgumentBlocks blocks;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{2048},
                                  std::size_t{2049}, std::size_t{65536}, std::size_t{65537},
                                  std::size_t{1'000'000}}) {
    for (int times = 0; times < 2; ++times) {
      const ArgumentBlocks::Block block = blocks.take(bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % alignof(std::max_align_t), 0U);
      std::memset(block.get(), 1, bytes);  // AddressSanitizer looks.
    }
  }
}

TEST(ArgumentBlocks, LongOnesAreNotKept) {
  ArgumentBlocks blocks;
  (void)blocks.take(ArgumentBlocks::kBytesMax + 1);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
}

TEST(ArgumentBlocks, KeepNoMoreThanTheirBound) {
  ArgumentBlocks blocks;
  std::vector<ArgumentBlocks::Block> all;
  for (std::size_t taken = 0; taken <= 2 * ArgumentBlocks::kKeptBytesMax;
       taken += ArgumentBlocks::kBytesMax) {
    all.push_back(blocks.take(ArgumentBlocks::kBytesMax));
  }
  all.clear();
  EXPECT_EQ(blocks.kept_bytes(), ArgumentBlocks::kKeptBytesMax);
  (void)blocks.take(ArgumentBlocks::kBytesMin);
  EXPECT_LE(blocks.kept_bytes(), ArgumentBlocks::kKeptBytesMax);
}

TEST(ArgumentBlocks, GoFromOneThreadToAnother) {
  constexpr int kRounds = 20'000;
  ArgumentBlocks blocks;
  const auto use = [&](unsigned char mark) {
    std::vector<ArgumentBlocks::Block> some(8);
    for (int i = 0; i < kRounds; ++i) {
      ArgumentBlocks::Block& block = some[static_cast<std::size_t>(i) % some.size()];
      const std::size_t bytes = 1000U << (i % 7);
      block = blocks.take(bytes);
      block[0] = block[bytes - 1] = std::byte{mark};
      ASSERT_EQ(block[0], std::byte{mark});
    }
  };
  std::thread other{use, 1};
  use(2);
  other.join();
  EXPECT_LE(blocks.kept_bytes(), ArgumentBlocks::kKeptBytesMax);
}

}  // namespace
}  // namespace sterna::rpc
