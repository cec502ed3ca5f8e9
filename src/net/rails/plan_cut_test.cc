// How messages are cut for the rails of a link.
#include <array>
#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "net/rails/plan.h"

namespace sterna::net {
namespace {

/// Rails that take so long for a byte each, and so long for a packet.
Cut plan(std::initializer_list<std::uint64_t> ps_per_byte, std::uint64_t packet_ns) {
  std::vector<RailCosts> rails;
  for (const std::uint64_t ps : ps_per_byte) {
    rails.push_back({.ps_per_byte = ps, .packet_ns = packet_ns, .latency_ns = 1000});
  }
  return plan_cut(rails);
}

TEST(Cut, AsFewPartsAsLetAllRailsEndTogether) {
  EXPECT_EQ(plan({5000, 5000}, 1000).parts, 2U);
  EXPECT_EQ(plan({5000, 5500}, 1000).parts, 2U);
  EXPECT_EQ(plan({5000, 10'000}, 1000).parts, 3U);
  EXPECT_EQ(plan({10'000, 5000}, 1000).parts, 3U);
  EXPECT_EQ(plan({5000, 15'000}, 1000).parts, 4U);
  EXPECT_EQ(plan({5000, 5000, 5000}, 1000).parts, 3U);
  EXPECT_EQ(plan({5000}, 1000).parts, 1U);
  EXPECT_EQ(plan_cut({}), Cut{});
}

TEST(Cut, APartPaysForItsPacket) {
  const auto least = [](std::uint64_t ps_per_byte, std::uint64_t packet_ns) {
    return plan({ps_per_byte, ps_per_byte}, packet_ns)
        .part_bytes_min;
  };
  EXPECT_EQ(least(1000, 2000), 4000U);
  EXPECT_EQ(least(100, 2000), 8192U) << "quick rails: 16 KB are cut, not less";
  EXPECT_EQ(least(10'000, 2000), 2048U);
  EXPECT_EQ(least(0, 0), 2048U);
}

TEST(Cut, OfTwoRailsTheQuickerOneTakesMoreOfWhatGoesInAPacketOfEach) {
  const Cut cut = plan({10'000, 5000}, 1000);
  const std::uint32_t first = cut.packet_bytes(9000, 1 << 20);
  EXPECT_NEAR(first, 6000, 9000 / 1024);
  EXPECT_LT(9000 - first, first) << "the rest is one packet";
  EXPECT_GE(cut.packet_bytes(6000, 1 << 20), 6000U) << "the part of the slower is too short";
  EXPECT_EQ(cut.packet_bytes(4 * 60'000, 60'000), 40'000U) << "equal parts where there are many";
  const Cut equal = plan({5000, 5000}, 1000);
  EXPECT_EQ(equal.packet_bytes(9001, 1 << 20), 4501U);
  EXPECT_EQ(plan({5000, 5000, 5000}, 1000).first_share, 0U);
}

TEST(Cut, ThePartsOfTwoRailsArriveTogether) {
  // 16,384 bytes: the second rail begins 20 us late, so 2000 bytes go by the first one instead.
  const std::array<RailCosts, 2> rails{RailCosts{5000, 1000, 20'000},
                                       RailCosts{5000, 6000, 35'000}};
  EXPECT_NEAR(plan_cut(rails).packet_bytes(16'384, 1 << 20), 8192 + 2000, 16);
  const std::array<RailCosts, 2> turned{rails[1], rails[0]};
  EXPECT_EQ(plan_cut(turned), plan_cut(rails)) << "the larger part first";
  EXPECT_NEAR(plan_cut(rails).packet_bytes(32'768, 1 << 20), 16'384 + 2000, 16);
  // One that begins so late takes nothing.
  const std::array<RailCosts, 2> apart{RailCosts{5000, 0, 1000}, RailCosts{5000, 0, 900'000}};
  EXPECT_GE(plan_cut(apart).packet_bytes(16'384, 1 << 20), 16'384U);
}

TEST(Cut, NoPartIsLongerThanGains) {
  const auto most = [](std::uint64_t ps_per_byte, std::uint64_t packet_ns) {
    const Cut cut = plan({ps_per_byte, ps_per_byte}, packet_ns);
    return cut.packet_bytes(std::uint64_t{1} << 40, ~std::uint32_t{0});
  };
  EXPECT_LE(most(5000, 4000), 128U * 4000 / 5) << "128 times what a packet costs";
  EXPECT_GT(most(5000, 4000), 100'000U);
  EXPECT_LE(most(5000, 100), 64U << 10);
  EXPECT_GT(most(5000, 100), 60'000U) << "what a profile says of packets may be too little";
  EXPECT_GT(most(100, 4000), 5'000'000U);
  EXPECT_GT(most(5000, 0), 1U << 30) << "nothing is known of packets";
}

}  // namespace
}  // namespace sterna::net
