// From which length on messages are lent follows from what the way costs, not from a constant.
#include "net/transfer/lending.h"

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

CostModel model(const WayCosts& costs) {
  CostModel model{Capabilities{}, false, CostModel::Options{}};
  model.take(costs, CostOrigin::sampled);
  return model;
}

WayCosts costs_of(std::uint32_t latency_ns, std::uint32_t packet_ns, std::uint32_t copy_ps) {
  return {.latency_ns = latency_ns,
          .packet_ns = packet_ns,
          .packet_ps_per_byte = 100,
          .copy_ps_per_byte = copy_ps,
          .direct_latency_ns = 0,
          .direct_ps_per_byte = 0};
}

TEST(Lending, BeginsWhereTheCopiesCostWhatTheTurnDoes) {
  // 2 * (4000 + 1000) ns against two copies of 80 ps a byte: 62500 bytes, in whole pages.
  EXPECT_EQ(lent_from_bytes(model(costs_of(4000, 1000, 80))), 61440U);
}

TEST(Lending, BeginsLaterWhereTurnsAreDearAndEarlierWhereCopiesAre) {
  const std::uint64_t usual = lent_from_bytes(model(costs_of(4000, 1000, 80)));
  EXPECT_GT(lent_from_bytes(model(costs_of(15'000, 1000, 80))), usual);
  EXPECT_LT(lent_from_bytes(model(costs_of(1500, 500, 80))), usual);
  EXPECT_LT(lent_from_bytes(model(costs_of(4000, 1000, 200))), usual);
}

TEST(Lending, StaysWithinWhatTheFiguresCanSay) {
  EXPECT_EQ(lent_from_bytes(model(costs_of(1, 1, 1000))), 16U << 10);
  EXPECT_EQ(lent_from_bytes(model(costs_of(1'000'000'000, 1, 1))), 512U << 10);
}

}  // namespace
}  // namespace sterna::net
