// Sampling of ways on simulated networks of known cost: the model comes to know it, and what goes
// how follows from it. The simulated profile is another one, so that nothing is right by luck.
#include "net/costs/sampler.h"

#include <string>

#include <gtest/gtest.h>

#include "net/costs/sampled_cluster.h"

namespace sterna::net {
namespace {

TEST(CostSampler, FindsWhatTheNetworkCosts) {
  SimCluster cluster{fast_link(), 2};
  EXPECT_EQ(origin_of(cluster.nodes[0]->cost(1)), CostOrigin::profile);
  sample(cluster);
  for (const std::uint32_t node : {0, 1}) {  // Who measured, and who was told.
    const CostModel model = cluster.nodes[node]->cost(1 - node);
    EXPECT_EQ(origin_of(model), CostOrigin::sampled);
    EXPECT_NEAR(value_of(model, "latency_ns"), 1105, 2);  // With 56 to 64 bytes of its own.
    EXPECT_NEAR(value_of(model, "packet_ns"), 100, 2);
    EXPECT_NEAR(value_of(model, "packet_ps_per_byte"), 100, 1);
    EXPECT_NEAR(value_of(model, "direct_latency_ns"), 2000, 2);
    EXPECT_NEAR(value_of(model, "direct_ps_per_byte"), 50, 1);
    EXPECT_EQ(value_of(model, "copy_ps_per_byte"), 80);  // The clock stood still: as it was.
  }
}

TEST(CostSampler, ThresholdsFollow) {
  SimCluster cluster{fast_link(), 2};
  sample(cluster);
  const CostModel model = cluster.nodes[0]->cost(1);
  // 1105 + b * (0.100 + 0.080 / 2) against 3 * 1105 + 2000 + b * 0.050.
  EXPECT_NEAR(static_cast<double>(model.eager_bytes()), 46'780, 800);
  EXPECT_NEAR(static_cast<double>(model.direct_from_bytes()), 40'000, 800);
  EXPECT_NEAR(model.share_bytes(), 1000, 20);
}

TEST(CostSampler, ASlowLinkGetsOtherThresholdsThanAFastOne) {
  SimOptions near{.node_count = 2,
                  .delay_ns_min = 100,
                  .delay_ns_max = 100,
                  .packet_ns = 50,
                  .ps_per_byte = 40,
                  .packet_bytes_max = 16 << 10};
  SimOptions far = near;
  far.delay_ns_min = far.delay_ns_max = 1'000'000;
  far.packet_ns = 5'000;
  far.ps_per_byte = 80'000;
  std::uint64_t eager_bytes[2];
  std::uint32_t share_bytes[2];
  for (const int i : {0, 1}) {
    SimCluster cluster{i == 0 ? near : far, 2};
    sample(cluster);
    const CostModel model = cluster.nodes[0]->cost(1);
    ASSERT_EQ(origin_of(model), CostOrigin::sampled);
    eager_bytes[i] = model.eager_bytes();
    share_bytes[i] = model.share_bytes();
  }
  // Two more crossings against half a copy: 2 * 153 / 0.040, and more than the bound.
  EXPECT_NEAR(static_cast<double>(eager_bytes[0]), 7'600, 200);
  EXPECT_EQ(eager_bytes[1], 64U << 10);
  EXPECT_NEAR(share_bytes[0], 1250, 40);
  EXPECT_NEAR(share_bytes[1], 62, 2);
}

TEST(CostSampler, RoundsOnASlowNetworkAreShort) {
  SimOptions slow = fast_link();
  slow.has_direct = false;
  slow.ps_per_byte = 100'000;  // 10 MB/s.
  slow.packet_bytes_max = 64 << 10;
  SimCluster cluster{slow, 2};
  const std::uint64_t begin_ns = cluster.clock.now_ns();
  sample(cluster);
  EXPECT_NEAR(value_of(cluster.nodes[0]->cost(1), "packet_ps_per_byte"), 100'000, 100);
  // Full packets are 6.6 ms each.
  EXPECT_LT(cluster.clock.now_ns() - begin_ns, 150'000'000U);
}

TEST(CostSampler, DirectCopiesThatAreSlowAreNotUsed) {
  SimOptions options = fast_link();
  options.direct_ps_per_byte = 400;
  SimCluster cluster{options, 2};
  EXPECT_NE(cluster.nodes[0]->cost(1).direct_from_bytes(), CostModel::kNever);  // The profile's.
  sample(cluster);
  EXPECT_EQ(cluster.nodes[0]->cost(1).direct_from_bytes(), CostModel::kNever);
}

TEST(CostSampler, WorksWithoutOrder) {
  SimOptions options = fast_link();
  options.is_ordered = false;
  options.delay_ns_max = 1050;
  SimCluster cluster{options, 2};
  sample(cluster);
  const CostModel model = cluster.nodes[0]->cost(1);
  ASSERT_EQ(origin_of(model), CostOrigin::sampled);
  EXPECT_NEAR(value_of(model, "latency_ns"), 1130, 30);
  EXPECT_NEAR(value_of(model, "packet_ps_per_byte"), 100, 10);
}

// A peer that computes answers when it polls: that says nothing of the way. Later it does not.
TEST(CostSampler, APeerThatIsBusyIsMeasuredWhenItIsNot) {
  SimCluster cluster{fast_link(), 2};
  const OpenWay way{cluster};
  for (int i = 0; i < 20'000; ++i) {
    (void)cluster.nodes[0]->poll();
    if (i % 100 == 0) {
      (void)cluster.nodes[1]->poll();
    }
    cluster.clock.advance(100);
  }
  EXPECT_GT(cluster.network->packet_count(), 10U);  // It was asked.
  EXPECT_EQ(origin_of(cluster.nodes[0]->cost(1)), CostOrigin::profile);
  for (int i = 0; i < 100'000; ++i) {
    cluster.settle();
  }
  EXPECT_EQ(origin_of(cluster.nodes[0]->cost(1)), CostOrigin::sampled);
  EXPECT_NEAR(value_of(cluster.nodes[0]->cost(1), "latency_ns"), 1105, 2);
}

// Now and then a peer polls so often without a question that it no longer looks at the clock.
TEST(CostSampler, APeerThatForgetsIsAskedAgain) {
  for (int forgets_every = 500; forgets_every < 1000; forgets_every += 30) {
    SimCluster cluster{fast_link(), 2};
    const OpenWay way{cluster};
    for (int i = 0; i < 60'000; ++i) {
      if (i % forgets_every == 0) {
        for (int polls = 0; polls < 2'000; ++polls) {
          (void)cluster.nodes[1]->poll();
        }
      }
      (void)cluster.poll();
      cluster.clock.advance(50);
    }
    EXPECT_EQ(origin_of(cluster.nodes[0]->cost(1)), CostOrigin::sampled) << forgets_every;
  }
}

// A read of what was read before is one of this processor's caches.
TEST(CostSampler, ReadsWhatThePeerHasJustWritten) {
  SimCluster cluster{fast_link(), 2};
  sample(cluster);
  // Eight rounds of a phase: of 1, 8, 2, 8, and twice 8 packets before a read; each is answered.
  EXPECT_GE(cluster.network->packet_count(), 8U * (2 + 9 + 3 + 9 + 9 + 9));
}

/// Whether every node of `from` has sampled figures of its ways to all other nodes of `to`.
bool know_all(const SimCluster& cluster, std::initializer_list<std::uint32_t> from,
              std::initializer_list<std::uint32_t> to) {
  bool do_all = true;
  for (const std::uint32_t node : from) {
    for (const std::uint32_t peer : to) {
      do_all = do_all &&
               (node == peer || origin_of(cluster.nodes[node]->cost(peer)) == CostOrigin::sampled);
    }
  }
  return do_all;
}

// One measurement for all nodes of a host, who are told it by whomever they talk to.
TEST(CostSampler, OneNodeOfAHostMeasuresForAll) {
  SimOptions options = fast_link();
  SimCluster pair{options, 2};
  sample(pair);
  options.node_count = 6;
  SimCluster cluster{options, 6};
  sample(cluster);
  // As with two nodes: nothing is sent to those that nobody talks to.
  EXPECT_EQ(cluster.network->packet_count(), pair.network->packet_count());
  EXPECT_TRUE(know_all(cluster, {0, 1}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(origin_of(cluster.nodes[2]->cost(0)), CostOrigin::profile);
  for (std::uint32_t node = 1; node < 5; ++node) {
    const std::uint64_t before = cluster.network->packet_count();
    exchange(cluster, node, node + 1);
    EXPECT_TRUE(know_all(cluster, {node + 1}, {0, 1, 2, 3, 4, 5})) << node;
    EXPECT_EQ(cluster.network->packet_count(), before + 2) << "the message, and what it costs";
  }
}

TEST(CostSampler, OfTwoHostsOneMeasuresForBoth) {
  SimOptions options = fast_link();
  options.node_count = 4;
  options.hosts = {"a", "a", "b", "b"};
  SimCluster cluster{options, 4};
  for (const auto& node : cluster.nodes) {
    node->sample_costs();
  }
  exchange(cluster, 0, 3);  // Only this way is in use.
  EXPECT_TRUE(know_all(cluster, {0}, {2, 3}) && know_all(cluster, {3}, {0, 1}));
  EXPECT_EQ(origin_of(cluster.nodes[1]->cost(2)), CostOrigin::profile);
  for (int i = 0; i < 2; ++i) {  // Each look comes after twice as many polls as the one before.
    exchange(cluster, 0, 1);
    exchange(cluster, 3, 2);
  }
  EXPECT_TRUE(know_all(cluster, {0, 1}, {2, 3}) && know_all(cluster, {2, 3}, {0, 1}));
}

// A node that ends has no use for what its ways cost.
TEST(CostSampler, ANodeThatClosesMeasuresNothingAndTellsNobody) {
  SimOptions options = fast_link();
  options.node_count = 3;
  SimCluster cluster{options, 3};
  for (const auto& node : cluster.nodes) {
    node->sample_costs();
  }
  exchange(cluster, 1, 2);  // Not measured: that is for node 0.
  const std::uint64_t before = cluster.network->packet_count();
  const WayCosts costs{.latency_ns = 1, .packet_ps_per_byte = 1};
  FrameHeader header;
  header.kind = FrameKind::sample_result;
  header.source = 0;
  header.destination = 1;
  header.payload_bytes = sizeof costs;
  std::vector<std::byte> bytes(kHeaderBytes + sizeof costs);
  std::memcpy(bytes.data(), &header, kHeaderBytes);
  std::memcpy(bytes.data() + kHeaderBytes, &costs, sizeof costs);
  cluster.network->inject(0, 1, bytes);
  cluster.clock.advance(10'000);
  cluster.nodes[1]->close();  // It comes in the poll in which the node would close its drivers.
  for (int i = 0; i < 100; ++i) {
    cluster.settle();
  }
  EXPECT_EQ(cluster.network->packet_count(), before + 1);
  EXPECT_EQ(origin_of(cluster.nodes[2]->cost(0)), CostOrigin::profile);
  EXPECT_TRUE(cluster.nodes[1]->is_drained());
}

// Both ask the third at once; packets of the two rounds come in turns.
TEST(CostSampler, TwoHostsMeasureTheirWaysToAThirdAtOnce) {
  SimOptions options = fast_link();
  options.node_count = 3;
  options.hosts = {"a", "b", "c"};
  SimCluster cluster{options, 3};
  for (const auto& node : cluster.nodes) {
    node->sample_costs();
  }
  char byte = 'x';
  SendRequest send[2];
  for (const std::uint32_t node : {0, 1}) {
    cluster.nodes[node]->send(*cluster.endpoints[node], send[node], {2, 1, 2},
                              Buffer::of(&byte, 1));
  }
  for (int i = 0; i < 2000; ++i) {
    cluster.settle();
  }
  for (const std::uint32_t node : {0, 1}) {
    EXPECT_EQ(origin_of(cluster.nodes[node]->cost(2)), CostOrigin::sampled) << node;
    EXPECT_NEAR(value_of(cluster.nodes[node]->cost(2), "latency_ns"), 1105, 2);
  }
}

TEST(CostSampler, DoesNothingBeforeAWayIsInUseOrWhenItIsOff) {
  Settings off{transport_tunables()};
  ASSERT_TRUE(off.set("net_cost_sampling", "off", SettingSource::command_line, "the test"));
  SimCluster silent{fast_link(), 2, &off};
  sample(silent);
  EXPECT_EQ(origin_of(silent.nodes[0]->cost(1)), CostOrigin::profile);
  SimCluster unused{fast_link(), 2};
  unused.nodes[0]->sample_costs();
  for (int i = 0; i < 100; ++i) {
    unused.settle();
  }
  EXPECT_EQ(unused.network->packet_count(), 0U);
}

TEST(CostSampler, APeerThatIsLostMeanwhileChangesNothing) {
  SimCluster cluster{fast_link(), 2};
  const OpenWay way{cluster};
  for (int i = 0; i < 20; ++i) {
    (void)cluster.poll();
    cluster.clock.advance(500);
  }
  cluster.network->lose(1);
  cluster.settle();
  EXPECT_EQ(origin_of(cluster.nodes[0]->cost(1)), CostOrigin::profile);
}

// What a node that breaks the rules may send.
TEST(CostSampler, FiguresThatCannotBeMeantAreRefused) {
  SimCluster cluster{fast_link(), 2};
  const auto tell = [&](const WayCosts& costs, std::uint32_t driver) {
    FrameHeader header;
    header.kind = FrameKind::sample_result;
    header.source = 1;
    header.destination = 0;
    header.cookie = 1;
    header.sequence = driver;
    header.payload_bytes = sizeof costs;
    std::vector<std::byte> bytes(kHeaderBytes + sizeof costs);
    std::memcpy(bytes.data(), &header, kHeaderBytes);
    std::memcpy(bytes.data() + kHeaderBytes, &costs, sizeof costs);
    cluster.network->inject(1, 0, bytes);
    cluster.settle();
    return origin_of(cluster.nodes[0]->cost(1));
  };
  EXPECT_EQ(tell({.latency_ns = 0, .packet_ps_per_byte = 1}, 0), CostOrigin::profile);
  EXPECT_EQ(tell({.latency_ns = ~0U, .packet_ps_per_byte = 1}, 0), CostOrigin::profile);
  EXPECT_EQ(tell({.latency_ns = 1, .packet_ps_per_byte = 0}, 0), CostOrigin::profile);
  EXPECT_EQ(tell({.latency_ns = 1, .packet_ps_per_byte = 1}, 7), CostOrigin::profile);
  EXPECT_EQ(tell({.latency_ns = 1, .packet_ps_per_byte = 1}, 0), CostOrigin::sampled);
}

}  // namespace
}  // namespace sterna::net
