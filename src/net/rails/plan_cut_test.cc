// How messages are cut for the rails of a link.
#include <array>

#include <gtest/gtest.h>

#include "net/rails/plan.h"

namespace sterna::net {
namespace {

TEST(Cut, AsFewPartsAsLetAllRailsEndTogether) {
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 2>{5000, 5000}, 1000).parts, 2U);
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 2>{5000, 5500}, 1000).parts, 2U);
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 2>{5000, 10'000}, 1000).parts, 3U);
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 2>{10'000, 5000}, 1000).parts, 3U);
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 2>{5000, 15'000}, 1000).parts, 4U);
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 3>{5000, 5000, 5000}, 1000).parts, 3U);
  EXPECT_EQ(plan_cut(std::array<std::uint64_t, 1>{5000}, 1000).parts, 1U);
  EXPECT_EQ(plan_cut({}, 1000), Cut{});
}

TEST(Cut, APartPaysForItsPacket) {
  const auto least = [](std::uint64_t ps_per_byte, std::uint64_t packet_ns) {
    return plan_cut(std::array<std::uint64_t, 2>{ps_per_byte, ps_per_byte}, packet_ns)
        .part_bytes_min;
  };
  EXPECT_EQ(least(1000, 2000), 4000U);
  EXPECT_EQ(least(100, 2000), 8192U) << "quick rails: 16 KB are cut, not less";
  EXPECT_EQ(least(10'000, 2000), 2048U);
  EXPECT_EQ(least(0, 0), 2048U);
}

}  // namespace
}  // namespace sterna::net
