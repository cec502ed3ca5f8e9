// How the cost model of a way leaves its profile for what messages turn out to cost.
#include "net/costs/cost.h"

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr std::uint64_t kBytes = 64 << 10;

/// Shared memory as it is between near caches: packets 43 ps a byte, direct copies 80.
CostModel near_caches() {
  const Capabilities capabilities{.latency_ns = 120,
                                  .bandwidth_mb_per_s = 30'303,
                                  .packet_ns = 45,
                                  .cpu_ps_per_byte = 10,
                                  .direct_latency_ns = 1000,
                                  .direct_mb_per_s = 12'500};
  return CostModel{capabilities, true, {}};
}

void measure(CostModel& model, std::uint64_t ps_per_byte) {
  model.measured_packets(kBytes, kBytes * ps_per_byte / 1000);
}

TEST(CostModelOfPackets, ThreeFirstMeasuresThatAgreeAreBelieved) {
  CostModel model = near_caches();
  ASSERT_EQ(model.direct_from_bytes(), CostModel::kNever);
  for (int i = 0; i < 3; ++i) {
    measure(model, 400);
  }
  EXPECT_LE(model.direct_from_bytes(), kBytes);
}

TEST(CostModelOfPackets, OneIsNot) {
  CostModel model = near_caches();
  measure(model, 4000);
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever);
}

TEST(CostModelOfPackets, LaterOnesCountForLess) {
  CostModel model = near_caches();
  for (int i = 0; i < 100; ++i) {
    measure(model, 40);
  }
  for (int i = 0; i < 3; ++i) {
    measure(model, 4000);
  }
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever);
}

TEST(CostModelOfPackets, WhoComputesWritesNoMoreThanAMicrosecond) {
  CostModel model = near_caches();
  const std::uint64_t bytes = model.computing_eager_bytes();  // At 43 ps a byte.
  EXPECT_GT(bytes, 23'000U);
  EXPECT_LT(bytes, 23'500U);
  EXPECT_LE(bytes, model.unawaited_eager_bytes());
  EXPECT_LE(model.unawaited_eager_bytes(), model.eager_bytes());
  const CostModel set{{.direct_latency_ns = 1000, .direct_mb_per_s = 12'500},
                      true,
                      {.eager_bytes = 40'000}};
  EXPECT_EQ(set.computing_eager_bytes(), 40'000U);
  const CostModel packets{{.latency_ns = 120, .bandwidth_mb_per_s = 30'303}, false, {}};
  EXPECT_EQ(packets.computing_eager_bytes(), packets.eager_bytes()) << "nobody could read it";
}

TEST(CostModelExplains, WhetherAMessageIsLentAndFromWhereOnOthersAre) {
  const CostModel model{{.latency_ns = 8000, .bandwidth_mb_per_s = 2000}, false, {}};
  const auto has = [&](std::uint64_t bytes, std::uint64_t from, std::string_view what) {
    return model.explain(bytes, from).find(what) != std::string::npos;
  };
  EXPECT_TRUE(has(200'000, 100'000, "200000 bytes: rendezvous, lent ("));
  EXPECT_TRUE(has(200'000, 100'000, "zero copy"));
  EXPECT_TRUE(has(99'999, 100'000, "99999 bytes: rendezvous ("));
  EXPECT_TRUE(has(99'999, 100'000, "; lent (zero copy) from 100000 bytes on"));
  EXPECT_TRUE(has(100, 100'000, "lent (zero copy) from 100000 bytes on"));
  EXPECT_FALSE(has(200'000, CostModel::kNever, "lent"));
  // What is sent at once is lent by nobody.
  const std::uint64_t eager = model.eager_bytes();
  EXPECT_FALSE(has(eager, 1000, "rendezvous, lent"));
  EXPECT_TRUE(has(eager, 1000, "from " + std::to_string(eager + 1) + " bytes on"));
}

}  // namespace
}  // namespace sterna::net
