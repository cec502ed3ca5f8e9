// Blocks that are used again, and how much of them is kept.
#include "memory/kept_blocks.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::memory {
namespace {

TEST(KeptBlocks, AreUsedAgainForWhatFits) {
  KeptBlocks blocks;
  const std::byte* const first = blocks.make(3600).get();  // Given back at once.
  EXPECT_EQ(blocks.kept_bytes(), 4096U);
  const KeptBlocks::Block again = blocks.make(4096);
  EXPECT_EQ(again.get(), first);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
  EXPECT_NE(blocks.make(4096).get(), first);
}

TEST(KeptBlocks, EachSizeHoldsWhatItIsForAndWastesAQuarterAtMost) {
  for (std::size_t bytes = KeptBlocks::kBytesMin + 1; bytes <= KeptBlocks::kBytesMax;
       bytes += bytes < (80 << 10) ? 1 : 63) {
    KeptBlocks blocks;
    blocks.deallocate(std::malloc(KeptBlocks::kBytesMax), bytes);
    ASSERT_GE(blocks.kept_bytes(), bytes);
    ASSERT_LE(blocks.kept_bytes(), bytes + bytes / 4);
  }
}

TEST(KeptBlocks, AreAsLongAsIsAskedForAndAligned) {
  KeptBlocks blocks;
  for (const std::size_t bytes :
       {std::size_t{1}, KeptBlocks::kBytesMin, KeptBlocks::kBytesMin + 1, std::size_t{1280},
        std::size_t{1281}, KeptBlocks::kBytesMax, KeptBlocks::kBytesMax + 1,
        std::size_t{4'000'000}}) {
    for (int times = 0; times < 2; ++times) {
      const KeptBlocks::Block block = blocks.make(bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % alignof(std::max_align_t), 0U);
      std::memset(block.get(), 1, bytes);  // AddressSanitizer looks.
    }
  }
}

TEST(KeptBlocks, ShortAndLongOnesAreMallocs) {
  KeptBlocks blocks;
  (void)blocks.make(KeptBlocks::kBytesMin);
  (void)blocks.make(KeptBlocks::kBytesMax + 1);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
  blocks.deallocate(nullptr, 5000);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
}

#ifndef STERNA_SANITIZED  // Sanitizers take such a wish for a mistake.
TEST(KeptBlocks, SayThatThereIsNoMemory) {
  constexpr std::size_t kTooMuch = ~std::size_t{0} >> 2;
  KeptBlocks blocks;
  EXPECT_EQ(blocks.make(kTooMuch), nullptr);
  EXPECT_THROW((void)blocks.make_or_throw(kTooMuch), std::bad_alloc);
  EXPECT_NE(blocks.make_or_throw(100'000), nullptr);
}
#endif

TEST(KeptBlocks, AreNoMoreThanTheirBound) {
  KeptBlocks blocks;
  std::vector<KeptBlocks::Block> all;
  for (std::size_t taken = 0; taken <= 2 * KeptBlocks::kKeptBytesMax; taken += 64 << 10) {
    all.push_back(blocks.make(64 << 10));
  }
  all.clear();
  EXPECT_EQ(blocks.kept_bytes(), KeptBlocks::kKeptBytesMax);
  (void)blocks.make(2000);
  EXPECT_LE(blocks.kept_bytes(), KeptBlocks::kKeptBytesMax);
}

TEST(KeptBlocks, GoFromOneThreadToAnother) {
  constexpr int kRounds = 20'000;
  KeptBlocks blocks;
  const auto use = [&](unsigned char mark) {
    std::vector<KeptBlocks::Block> some(8);
    for (int i = 0; i < kRounds; ++i) {
      KeptBlocks::Block& block = some[static_cast<std::size_t>(i) % some.size()];
      const std::size_t bytes = 1000U << (i % 7);
      block = blocks.make(bytes);
      block[0] = block[bytes - 1] = std::byte{mark};
      ASSERT_EQ(block[0], std::byte{mark});
    }
  };
  std::thread other{use, 1};
  use(2);
  other.join();
  EXPECT_LE(blocks.kept_bytes(), KeptBlocks::kKeptBytesMax);
}

}  // namespace
}  // namespace sterna::memory
