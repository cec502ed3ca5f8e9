// How the cost model of a way leaves its profile for what messages turn out to cost.
#include "net/costs/cost.h"

#include <string_view>

#include <gtest/gtest.h>

#include "net/transfer/lending.h"

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

/// Of packets that are filled at 43 ps a byte.
void measure_reading(CostModel& model, std::uint64_t ps_per_byte, int times = 100) {
  for (int i = 0; i < times; ++i) {
    model.measured_reading(kBytes, kBytes * ps_per_byte / 1000, true);
  }
}

TEST(CostModelOfPackets, OneWayTheSlowerSideIsWhatAByteTakes) {
  CostModel model = near_caches();
  measure_reading(model, 40);
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever);
  measure_reading(model, 100);
  EXPECT_LT(model.direct_from_bytes(), 60'000U) << "1000 ns against 20 ps a byte";
  EXPECT_GT(model.direct_from_bytes(), 40'000U);
}

// Pages are worth joining where what that saves makes direct copies the faster way.
TEST(CostModelOfPackets, LargePagesWouldMakeDirectCopiesFaster) {
  CostModel model = near_caches();
  measure_reading(model, 40);
  EXPECT_EQ(model.large_pages_from_bytes(), CostModel::kNever) << "43 against 56";
  measure_reading(model, 70);
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever) << "70 against 80";
  EXPECT_LT(model.large_pages_from_bytes(), 80'000U) << "1000 ns against 14 ps a byte";
  measure_reading(model, 100);
  EXPECT_LT(model.large_pages_from_bytes(), model.direct_from_bytes());
  model.lose_direct();
  EXPECT_EQ(model.large_pages_from_bytes(), CostModel::kNever);
}

// It sends nothing itself, and is told nothing.
TEST(CostModelOfPackets, WhoReadsKnowsWhatPacketsWouldTakeHim) {
  CostModel model = near_caches();
  EXPECT_EQ(model.read_from_bytes(), CostModel::kNever);
  for (int i = 0; i < 100; ++i) {
    model.measured_reading(kBytes, kBytes * 120 / 1000, false);
  }
  EXPECT_LT(model.read_from_bytes(), 60'000U) << "120 against 80";
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever) << "the peer reads otherwise";
}

TEST(CostModelOfPackets, BothWaysItIsBothSides) {
  CostModel model = near_caches();
  measure_reading(model, 60);
  const double one_way_ns = model.eager_ns(kBytes);
  ASSERT_EQ(model.direct_from_bytes(), CostModel::kNever);
  model.set_both_ways(1);  // 103 against 80.
  EXPECT_LT(model.direct_from_bytes(), 45'000U);
  EXPECT_GT(model.eager_ns(kBytes), one_way_ns);
  EXPECT_NE(model.explain(1 << 20).find("of those that come 100 % while others go"),
            std::string::npos)
      << model.explain(1 << 20);
  model.set_both_ways(0);
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever);
  EXPECT_EQ(model.eager_ns(kBytes), one_way_ns);
}

TEST(CostModelOfPackets, WhatThePeerSaysOfItsReadingCountsAndIsNotSaidToOthers) {
  CostModel model = near_caches();
  for (int i = 0; i < 20; ++i) {
    model.told_reading(150);
  }
  EXPECT_LT(model.direct_from_bytes(), 20'000U);
  const std::uint64_t before = model.direct_from_bytes();
  model.told_reading(~std::uint64_t{0});
  EXPECT_EQ(model.direct_from_bytes(), before) << "no memory is as slow as that";
  EXPECT_EQ(model.own_reading_ps(), 0U);
  for (int i = 0; i < 100; ++i) {
    model.measured_reading(kBytes, kBytes * 70 / 1000, false);
  }
  EXPECT_NEAR(static_cast<double>(model.own_reading_ps()), 70, 2);
  EXPECT_LT(model.direct_from_bytes(), 20'000U) << "the peer reads otherwise";
}

TEST(CostModelOfPackets, OfAnEagerMessageOnlyTheFirstPacketIsReadBehindItsFilling) {
  Capabilities capabilities{.latency_ns = 120,
                            .bandwidth_mb_per_s = 20'000,
                            .direct_latency_ns = 1000,
                            .direct_mb_per_s = 12'500};
  capabilities.cpu_ps_per_byte = 0;
  capabilities.packet_bytes_max = 32 << 10;
  CostModel model{capabilities, true, {}};
  measure_reading(model, 50);
  const double one = model.eager_ns(32 << 10) - model.eager_ns(0);
  const double two = model.eager_ns(64 << 10) - model.eager_ns(0);
  const double copy = 32 * 1024 * 0.040;
  EXPECT_NEAR(one - copy, 32 * 1024 * 0.100, 10);
  EXPECT_NEAR(two - 2 * copy, 32 * 1024 * 0.150, 10);
  // 120 + 140 b, and 120 + 3277 + 90 b beyond 32 KB, against 1360 + 80 b: they cross at 20 KB.
  EXPECT_EQ(model.eager_bytes(), 32U << 10) << "it fits a packet";
  measure_reading(model, 300);
  EXPECT_LT(model.eager_bytes(), 10'000U) << "the two lie far apart";
}

TEST(CostModelOfPackets, PreemptedCopiesOfAKnownWayDoNotMakeItSlow) {
  CostModel model = near_caches();
  model.take({.latency_ns = 120,
              .packet_ps_per_byte = 100,
              .direct_latency_ns = 1000,
              .direct_ps_per_byte = 60},
             CostOrigin::sampled);
  const std::uint64_t before = model.direct_from_bytes();
  model.measured_direct(kBytes, 5'000'000);
  EXPECT_LT(model.direct_from_bytes(), before + before / 5);
}

/// A network that is far from its profile; nothing is copied directly over it.
CostModel network(std::uint32_t latency_ns = 400) {
  return CostModel{{.latency_ns = latency_ns, .bandwidth_mb_per_s = 10'000}, false, {}};
}

double figure(const CostModel& model, std::string_view name) {
  for (const CostModel::Row& row : model.figures()) {
    if (row.name == name) {
      return row.figure.value;
    }
  }
  return -1;
}

void turns(CostModel& model, int count, std::uint64_t ns, std::uint64_t head_bytes = 0) {
  for (int i = 0; i < count; ++i) {
    model.measured_turn(ns, head_bytes);
  }
}

TEST(CostModelOfTurns, ManySlowOnesMoveTheLatencyAndWhatFollowsFromIt) {
  CostModel model = network();
  const std::uint64_t eager = model.eager_bytes();
  const std::uint64_t head = model.head_bytes();
  turns(model, 200, 2400);
  EXPECT_NEAR(figure(model, "latency_ns"), 1200, 120);
  EXPECT_GT(model.eager_bytes(), 2 * eager);
  EXPECT_GT(model.head_bytes(), 2 * head);
  EXPECT_NE(model.describe().find("latency_ns 1199"), std::string::npos) << model.describe();
  EXPECT_NE(model.describe().find("corrected 50 times"), std::string::npos) << model.describe();
}

TEST(CostModelOfTurns, SomeSlowOnesAmongOthersMoveNothing) {
  CostModel model = network();
  turns(model, 16, 800);
  const std::uint64_t eager = model.eager_bytes();
  for (int i = 0; i < 100; ++i) {
    turns(model, 1, 10'000'000);  // It was preempted.
    turns(model, 3, 800);
  }
  EXPECT_EQ(model.eager_bytes(), eager);
  EXPECT_EQ(figure(model, "latency_ns"), 400);
}

TEST(CostModelOfTurns, FasterOnesCountMore) {
  CostModel slow = network();
  turns(slow, 8, 1600);
  CostModel fast = network();
  turns(fast, 8, 400);
  const double rise = figure(slow, "latency_ns") / 400;
  const double fall = 400 / figure(fast, "latency_ns");
  EXPECT_GT(rise, 1);
  EXPECT_GT(fall - 1, 2 * (rise - 1));
  turns(slow, 6, 800);
  EXPECT_LT(figure(slow, "latency_ns"), 430) << "six are enough";
  CostModel one = network();
  turns(one, 1, 1);
  EXPECT_GT(figure(one, "latency_ns"), 300) << "but a single one does not make it";
}

TEST(CostModelOfTurns, APeerThatAlwaysComputesMakesNoHeadAbsurd) {
  CostModel model = network();
  model.take({.latency_ns = 500, .packet_ps_per_byte = 100}, CostOrigin::sampled);
  const std::uint64_t head = model.head_bytes();
  turns(model, 1000, 20'000'000);
  EXPECT_LE(figure(model, "latency_ns"), 4000);
  EXPECT_LE(model.head_bytes(), 8 * head);
  turns(model, 16, 1000);
  EXPECT_LE(figure(model, "latency_ns"), 600) << "and it is soon forgotten";
}

TEST(CostModelOfTurns, WhoWasBusyWithAHeadHasNotWaitedForTheNetwork) {
  CostModel model = network();
  turns(model, 100, 2000, 10'000);  // A hundred picoseconds a byte, at least: half of it.
  EXPECT_EQ(figure(model, "latency_ns"), 400);
  turns(model, 100, 2000, 1000);
  EXPECT_GT(figure(model, "latency_ns"), 700);
  turns(model, 100, 1000, 10'000);  // Not longer than that, whatever it did.
  EXPECT_LT(figure(model, "latency_ns"), 520);
}

TEST(CostModelOfTurns, NeitherAClockThatStandsStillNorADirectWayTeachesAnything) {
  CostModel model = network();
  turns(model, 100, 0);
  model.measured_copy(1 << 20, 0);
  EXPECT_EQ(figure(model, "latency_ns"), 400);
  CostModel direct = near_caches();
  const std::string before = direct.describe();
  turns(direct, 100, 10'000);
  direct.measured_copy(1 << 20, 1 << 20);
  direct.measured_rate(5000);
  EXPECT_EQ(direct.describe(), before);
}

TEST(CostModelOfCopies, DearOnesLowerTheThresholdAndAreLentEarlier) {
  CostModel model = network(1000);
  const std::uint64_t eager = model.eager_bytes();
  const std::uint64_t lent = lent_from_bytes(model);
  for (int i = 0; i < 60; ++i) {
    model.measured_copy(16 << 10, 16 << 10);  // 1000 ps a byte.
  }
  EXPECT_GT(figure(model, "copy_ps_per_byte"), 800);
  EXPECT_LT(model.eager_bytes(), eager / 2);
  EXPECT_LT(lent_from_bytes(model), lent);
  model.measured_copy(1000, 1'000'000);  // Too short to say anything.
  EXPECT_LT(figure(model, "copy_ps_per_byte"), 1001);
}

TEST(CostModelOfCopies, OneIsNotBelieved) {
  CostModel model = network(1000);
  const std::uint64_t eager = model.eager_bytes();
  model.measured_copy(16 << 10, 10'000'000);
  EXPECT_GT(model.eager_bytes(), eager * 2 / 3);
}

TEST(CostModelOfRates, PacketsThatLeaveMoveWhatAByteTakes) {
  CostModel model = network();
  const double before = figure(model, "packet_ps_per_byte");
  model.measured_rate(1'000'000);
  EXPECT_LT(figure(model, "packet_ps_per_byte"), 1.4 * before) << "one is not believed";
  for (int i = 0; i < 100; ++i) {
    model.measured_rate(500);
  }
  EXPECT_NEAR(figure(model, "packet_ps_per_byte"), 500, 10);
}

// Packets 43 us a megabyte and a direct copy 80: 2 MB take 90 and 168.
TEST(CostModelOfWhoComputes, WhatIsReadMeanwhileIsNotSentAfterwards) {
  const CostModel model = near_caches();
  constexpr std::uint64_t kLong = 2 << 20;
  const double read_ns = model.rendezvous_ns(kLong);
  EXPECT_EQ(model.read_beside_ns(kLong, read_ns + 1), read_ns) << "it ends before";
  const double half = model.read_beside_ns(kLong, read_ns / 2);
  EXPECT_GT(half, read_ns / 2);
  EXPECT_LT(half, read_ns) << "the other half goes in packets, which are faster";
}

TEST(CostModelOfWhoComputes, ToBeginInItsPlaceTakesAMoment) {
  const CostModel model = near_caches();
  constexpr std::uint64_t kLong = 2 << 20;
  constexpr double kShortNs = 20'000;
  const double none_ns = model.in_place_ns(kLong, 0);
  EXPECT_EQ(model.in_place_ns(kLong, kShortNs), none_ns + kShortNs) << "nothing has been sent";
  EXPECT_LT(model.read_beside_ns(kLong, kShortNs), none_ns + kShortNs);
  constexpr double kLongNs = 10e6;
  EXPECT_EQ(model.in_place_ns(kLong, kLongNs), kLongNs) << "all has";
}

// 24 us a megabyte against 80: more than twice as fast, and long enough away.
TEST(CostModelOfWhoComputes, IsSentForWherePacketsAreFarFaster) {
  CostModel model = near_caches();
  for (int i = 0; i < 100; ++i) {
    measure(model, 23);
  }
  constexpr std::uint64_t kLong = 16 << 20;
  EXPECT_LT(model.in_place_ns(kLong, 600'000), model.read_beside_ns(kLong, 600'000));
  EXPECT_GT(model.in_place_ns(1 << 20, 60'000), model.read_beside_ns(1 << 20, 60'000));
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
