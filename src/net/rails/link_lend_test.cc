// Long messages over links whose rails move bytes from memory to memory: without a copy, by all of
// them, and each byte once whatever becomes of a rail meanwhile.
#include <string>

#include <gtest/gtest.h>

#include "net/rails/link_pair.h"

namespace sterna::net {
namespace {

using Pair = LinkPair;

constexpr std::size_t kBytes = 8 << 20;

SimOptions lending(std::uint64_t mb_per_s, std::uint32_t most = 8 << 20) {
  SimOptions rail = wire(mb_per_s);
  rail.lent_bytes_max = most;
  return rail;
}

std::uint64_t data_bytes(Pair& pair) {
  return pair.cluster->nodes[0]->statistics().bytes_data;
}

TEST(LinkLends, LongMessagesGoByAllRailsWithoutACopy) {
  Pair pair{{lending(100), lending(100)}};
  Pair::Transfer transfer{pair, kBytes};
  const std::uint64_t took_ns = pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  EXPECT_LT(data_bytes(pair), 64U << 10) << "no more than its head";
  for (const auto& network : pair.cluster->networks) {
    EXPECT_GT(network->lent_count(), 2U);
  }
  EXPECT_LT(static_cast<double>(took_ns), 1.2 * 1000 * kBytes / 200) << "the sum of the rails";
}

TEST(LinkLends, UnequalRailsAreLentWhatTheyCarry) {
  Pair pair{{lending(300), lending(100)}};
  Pair::Transfer transfer{pair, 4 * kBytes};
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  const std::vector<RailReport> rails = pair.cluster->nodes[0]->rails(1);
  EXPECT_NEAR(double(rails[0].bytes) / double(rails[0].bytes + rails[1].bytes), 0.75, 0.1);
}

TEST(LinkLends, WhereOtherRailsCarryMoreAllOfThemTakePackets) {
  Pair pair{{lending(100), wire(400)}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  EXPECT_EQ(pair.cluster->networks[0]->lent_count(), 0U);
  EXPECT_EQ(data_bytes(pair), kBytes);
}

TEST(LinkLends, NothingIsLentWhereSumsAreWanted) {
  Pair pair{{lending(100), lending(100)}, {{"net_checksums", "on"}}};
  Pair::Transfer transfer{pair, kBytes};
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  EXPECT_EQ(pair.cluster->networks[0]->lent_count() + pair.cluster->networks[1]->lent_count(), 0U);
}

/// What befalls the first rail at every moment of a transfer, in turn.
template <typename Befall>
void befall_at_every_moment(Befall befall) {
  for (std::uint64_t at_ns = 50'000; at_ns < 50'000'000; at_ns += 1'500'000) {
    SCOPED_TRACE("after " + std::to_string(at_ns) + " ns");
    Pair pair{{lending(100, 1 << 20), lending(100, 1 << 20)}};
    Pair::Transfer transfer{pair, kBytes};
    pair.run(transfer, at_ns);
    befall(*pair.cluster->networks[0]);
    pair.run(transfer);
    ASSERT_TRUE(transfer.is_right());
  }
}

TEST(LinkLends, WhatARailTakesAlongComesByTheOthers) {
  befall_at_every_moment([](SimNetwork& network) { network.sever(0, 1); });
}

TEST(LinkLends, APartOfWhichOnlyTheNewsIsLostCountsOnce) {
  Pair pair{{lending(100), lending(100)}};
  Pair::Transfer transfer{pair, kBytes};
  SimNetwork& network = *pair.cluster->networks[0];
  std::uint32_t one = 0;
  std::uint32_t other = 0;
  while (!network.has_news_of_read(one, other)) {
    ASSERT_FALSE(transfer.is_done());
    pair.run(transfer, 1000);
  }
  network.sever(one, other);
  pair.run(transfer);
  EXPECT_TRUE(transfer.is_right());
  EXPECT_GE(pair.cluster->nodes[1]->statistics().lent_bytes_twice, 64U << 10);
}

/// Nobody hears of it: the sender gives the rail up after a time, and by the frames the receiver.
TEST(LinkLends, WhatAStillRailHoldsComesByTheOthersOnce) {
  befall_at_every_moment([](SimNetwork& network) { network.stall(0, 1, true); });
}

}  // namespace
}  // namespace sterna::net
