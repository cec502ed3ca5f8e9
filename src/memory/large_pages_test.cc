// When pages are joined: once as much was lost by the small ones as that costs, and seldom where it
// does not help. With a system of the test's own, and with this one.
#include "memory/large_pages.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace sterna::memory {
namespace {

constexpr std::uintptr_t kFrame = LargePages::kFrameBytes;
constexpr std::uint64_t kPages = LargePages::kFrameBytes / LargePages::kPageBytes;

/// So many bytes are copied from a frame before its pages are joined for the first price.
constexpr std::uint64_t kBytesOfPrice =
    LargePages::kFirstPriceNs / LargePages::kPageNs * LargePages::kPageBytes;

struct Fake {
  bool has_them = true;
  bool joins = true;
  std::size_t pages_in = kPages;
  std::uint64_t took_ns = LargePages::kFirstPriceNs;
  std::uint64_t now_ns = 0;
  std::vector<std::uintptr_t> asked;
};
Fake fake;

constexpr LargePages::System kFake{
    []() noexcept { return fake.has_them; },
    [](std::uintptr_t frame) noexcept {
      fake.asked.push_back(frame);
      fake.now_ns += fake.took_ns;
      return fake.joins;
    },
    [](std::uintptr_t) noexcept { return fake.pages_in; },
    []() noexcept { return fake.now_ns; },
};

class LargePagesTest : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  /// How many bytes of the frame are copied, 64 KB at a time, until it is asked for again.
  std::uint64_t bytes_until_asked(std::uintptr_t frame, bool is_quiet = true) {
    constexpr std::uint64_t kBytes = 64 << 10;
    const std::size_t before = fake.asked.size();
    for (std::uint64_t bytes = kBytes; bytes <= 64 * kBytesOfPrice; bytes += kBytes) {
      pages.are_copied(reinterpret_cast<void*>(frame + 8 * kBytes), kBytes, is_quiet);
      if (fake.asked.size() != before) {
        return bytes;
      }
    }
    return 0;
  }
  LargePages pages{kFake};
};

TEST_F(LargePagesTest, AreJoinedOnceAsMuchWasLostAsThatCosts) {
  EXPECT_EQ(bytes_until_asked(7 * kFrame), (kBytesOfPrice + 0xffff) / 0x10000 * 0x10000);
  EXPECT_EQ(fake.asked, std::vector<std::uintptr_t>{7 * kFrame});
  EXPECT_EQ(pages.joined(), 1U);
}

TEST_F(LargePagesTest, AreLeftAloneWhileOthersCopyFromThem) {
  EXPECT_EQ(bytes_until_asked(7 * kFrame, false), 0U);
  pages.are_copied(reinterpret_cast<void*>(7 * kFrame), 4096, true);
  EXPECT_EQ(fake.asked, std::vector<std::uintptr_t>{7 * kFrame}) << "nothing was forgotten";
}

TEST_F(LargePagesTest, ThePriceIsLearnt) {
  fake.took_ns = 5 * LargePages::kFirstPriceNs;
  EXPECT_GT(bytes_until_asked(7 * kFrame), 0U);
  const std::uint64_t bytes = bytes_until_asked(9 * kFrame);
  EXPECT_GE(bytes, 2 * kBytesOfPrice - 0x10000) << "a quarter of what is new";
  EXPECT_LE(bytes, 2 * kBytesOfPrice + 0x10000);
}

TEST_F(LargePagesTest, WhatCannotBeJoinedIsAskedForHalfAsOftenEachTime) {
  fake.joins = false;
  std::uint64_t last = bytes_until_asked(7 * kFrame);
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t bytes = bytes_until_asked(7 * kFrame);
    EXPECT_GE(bytes + 0x10000, 2 * last);
    last = bytes;
  }
  EXPECT_EQ(pages.joined(), 0U);
  EXPECT_LE(bytes_until_asked(9 * kFrame), kBytesOfPrice + 0x10000) << "others are as before";
}

TEST_F(LargePagesTest, WhatIsLargeAlreadyCountsForNothing) {
  fake.took_ns = 3000;  // Nothing had to be copied.
  EXPECT_GT(bytes_until_asked(7 * kFrame), 0U);
  EXPECT_EQ(pages.joined(), 0U);
  EXPECT_GE(bytes_until_asked(9 * kFrame) + 0x10000, kBytesOfPrice) << "the price is as it was";
}

TEST_F(LargePagesTest, WhatWasJoinedAndIsAskedForAgainTeachesNoPrice) {
  EXPECT_GT(bytes_until_asked(7 * kFrame), 0U);
  fake.took_ns = 5 * LargePages::kFirstPriceNs;  // The system waited for somebody.
  EXPECT_GT(bytes_until_asked(7 * kFrame), 0U);
  EXPECT_EQ(pages.joined(), 1U);
  EXPECT_LE(bytes_until_asked(9 * kFrame), kBytesOfPrice + 0x10000);
}

TEST_F(LargePagesTest, MemoryThatWasNeverWrittenIsNotMade) {
  fake.pages_in = kPages * 3 / 4;
  EXPECT_EQ(bytes_until_asked(7 * kFrame), 0U);
  fake.pages_in = kPages * 15 / 16;
  EXPECT_NE(bytes_until_asked(7 * kFrame), 0U);
}

TEST_F(LargePagesTest, OneMessageWaitsForFewOfThem) {
  const std::uint64_t bytes = 16 * kFrame;
  for (std::uint64_t gone = 0; gone < 16 * kBytesOfPrice; gone += bytes) {
    const std::size_t before = fake.asked.size();
    pages.are_copied(reinterpret_cast<void*>(32 * kFrame), bytes, true);
    ASSERT_LE(fake.asked.size() - before, 2U);
  }
  for (int i = 0; i < 16; ++i) {
    pages.are_copied(reinterpret_cast<void*>(32 * kFrame), bytes, true);
  }
  std::sort(fake.asked.begin(), fake.asked.end());
  ASSERT_EQ(fake.asked.size(), 16U) << "each of them in its turn";
  EXPECT_EQ(std::unique(fake.asked.begin(), fake.asked.end()), fake.asked.end());
}

TEST_F(LargePagesTest, OfTwoFramesOfOnePlaceTheBusierStays) {
  constexpr std::uintptr_t kOther = 7 * kFrame + 512 * kFrame;
  for (std::uint64_t bytes = 0; bytes < 3 * kBytesOfPrice; bytes += 3 * 0x10000) {
    for (int i = 0; i < 3; ++i) {
      pages.are_copied(reinterpret_cast<void*>(7 * kFrame), 0x10000, true);
    }
    pages.are_copied(reinterpret_cast<void*>(kOther), 0x10000, true);
  }
  ASSERT_FALSE(fake.asked.empty());
  EXPECT_EQ(fake.asked.front(), 7 * kFrame);
}

TEST_F(LargePagesTest, WhereThereAreNoneNothingIsAskedTwice) {
  fake.has_them = false;
  EXPECT_EQ(bytes_until_asked(7 * kFrame), 0U);
  fake.has_them = true;
  EXPECT_EQ(bytes_until_asked(7 * kFrame), 0U);
}

/// So many kilobytes of the mapping at that address lie in large pages.
std::size_t large_kilobytes_at(const void* address) {
  std::ifstream maps{"/proc/self/smaps"};
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto wanted = reinterpret_cast<std::uintptr_t>(address);
      is_it = begin <= wanted && wanted < end;
    } else if (is_it && line.starts_with("AnonHugePages:")) {
      return std::stoul(line.substr(line.find(':') + 1));
    }
  }
  return 0;
}

/// Whether the system joins pages where it is asked to, of memory apart.
bool may_be_joined() {
  constexpr std::size_t kBytes = 2 * LargePages::kFrameBytes;
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return false;
  }
  std::memset(mapped, 1, kBytes);
  const bool are_small = large_kilobytes_at(mapped) == 0;
  const std::uintptr_t frame = (reinterpret_cast<std::uintptr_t>(mapped) + kFrame - 1) / kFrame;
  const bool may_be = LargePages::kSystem.has_them() && are_small &&
                      LargePages::kSystem.join(frame * kFrame);
  ::munmap(mapped, kBytes);
  return may_be;
}

TEST(LargePages, OfThisSystemKeepTheirBytes) {
  constexpr std::size_t kBytes = 4 * LargePages::kFrameBytes;
  const bool is_possible = may_be_joined();
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const bytes = static_cast<unsigned char*>(mapped);
  for (std::size_t i = 0; i < kBytes; ++i) {
    bytes[i] = static_cast<unsigned char>(i * 2654435761U >> 24);
  }
  LargePages pages;
  for (std::uint64_t gone = 0; gone < 16 * kBytesOfPrice; gone += kBytes) {
    pages.are_copied(mapped, kBytes, true);
  }
  for (std::size_t i = 0; i < kBytes; ++i) {
    ASSERT_EQ(bytes[i], static_cast<unsigned char>(i * 2654435761U >> 24)) << i;
  }
  const std::size_t large = large_kilobytes_at(mapped);
  ASSERT_EQ(::munmap(mapped, kBytes), 0);
  if (!is_possible) {
    GTEST_SKIP() << "this system joins no pages (Linux 6.1, transparent_hugepage)";
  }
  EXPECT_GE(pages.joined(), 3U) << "all that lie within the mapping";
  EXPECT_EQ(large, pages.joined() * LargePages::kFrameBytes >> 10);
}

}  // namespace
}  // namespace sterna::memory
