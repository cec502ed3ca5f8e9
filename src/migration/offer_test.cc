// Offers survive the wire, and whatever is not an offer of bytes inside the rank's slot is refused.
#include "migration/offer.h"

#include <gtest/gtest.h>

#include "memory/iso_space.h"

namespace sterna::migration {
namespace {

constexpr std::uint32_t kRank = 3;

std::byte* at(std::uint32_t rank, std::uintptr_t offset) {
  static const auto kSpace = memory::IsoSpace::open({.rank_count = 8});  // Sets the size of slots.
  check(kSpace.has_value(), "the iso space opens");
  const memory::RankRegions regions = memory::rank_regions(rank);
  return reinterpret_cast<std::byte*>(regions.user_heap.base + offset);
}

Offer sample() {
  Offer offer;
  offer.shape = {.rank = kRank,
                 .stack_bytes = 1,
                 .images_bytes = 2,
                 .system_heap_bytes = 3,
                 .user_heap_bytes = 4};
  offer.fingerprint = 5;
  offer.source_pid = 6;
  offer.memory_fd = 7;
  offer.memory_inode = 8;
  offer.memory_device = 9;
  offer.number = 10;
  offer.given = 11;
  offer.extents = {{at(kRank, 0), 100}, {at(kRank, 4096), 1}};
  return offer;
}

TEST(Offer, SurvivesTheWire) {
  Result<Offer> got = decode_offer(encode(sample()));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got.value().shape.rank, kRank);
  EXPECT_EQ(got.value().shape.user_heap_bytes, 4U);
  EXPECT_EQ(got.value().fingerprint, 5U);
  EXPECT_EQ(got.value().memory_fd, 7);
  EXPECT_EQ(got.value().memory_inode, 8U);
  EXPECT_EQ(got.value().memory_device, 9U);
  EXPECT_EQ(got.value().number, 10U);
  ASSERT_EQ(got.value().extents.size(), 2U);
  EXPECT_EQ(got.value().extents[1].address, at(kRank, 4096));
}

TEST(Offer, IsRefusedWhenItIsCutShortOrLonger) {
  const std::vector<std::byte> whole = encode(sample());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decode_offer(std::span{whole}.first(bytes)).has_value()) << bytes;
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_offer(longer).has_value());
}

TEST(Offer, IsRefusedWhenItsBytesAreNotTheRanks) {
  Offer other = sample();
  other.extents = {{at(kRank + 1, 0), 100}};
  EXPECT_FALSE(decode_offer(encode(other)).has_value());
  Offer empty = sample();
  empty.extents = {{at(kRank, 0), 0}};
  EXPECT_FALSE(decode_offer(encode(empty)).has_value());
  Offer beyond = sample();
  beyond.extents = {{at(kRank, 0), std::uint64_t{1} << 60}};
  EXPECT_FALSE(decode_offer(encode(beyond)).has_value());
  Offer unordered = sample();
  std::swap(unordered.extents[0], unordered.extents[1]);
  EXPECT_FALSE(decode_offer(encode(unordered)).has_value());
}

TEST(Extents, AreSortedAndJoined) {
  std::vector<net::Extent> extents{{at(kRank, 200), 50}, {at(kRank, 0), 100},  {at(kRank, 90), 20},
                                   {at(kRank, 110), 0},  {at(kRank, 110), 10}, {at(kRank, 220), 5}};
  normalise(extents);
  ASSERT_EQ(extents.size(), 2U);
  EXPECT_EQ(extents[0].address, at(kRank, 0));
  EXPECT_EQ(extents[0].bytes, 120U);
  EXPECT_EQ(extents[1].address, at(kRank, 200));
  EXPECT_EQ(extents[1].bytes, 50U);
}

}  // namespace
}  // namespace sterna::migration
