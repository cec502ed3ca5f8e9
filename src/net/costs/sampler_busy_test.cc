// Figures of a host on which others compute, or that an earlier job has measured on one.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/costs/sampled_cluster.h"

namespace sterna::net {
namespace {

/// A job that knows from one before it that messages take `cached_ns`; they take 1000 now.
double latency_after(std::uint32_t cached_ns, std::vector<std::string> hosts) {
  SimOptions options = fast_link();
  options.hosts = std::move(hosts);
  SimCluster cluster{options, 2};
  WayCosts costs{.latency_ns = cached_ns,
                 .packet_ns = 100,
                 .packet_ps_per_byte = 100,
                 .copy_ps_per_byte = 50,
                 .direct_latency_ns = 2000,
                 .direct_ps_per_byte = 50};
  for (std::uint32_t node = 0; node < 2; ++node) {
    const std::string peer = options.hosts[0] == options.hosts[1] ? "" : options.hosts[1 - node];
    const CostsEntry entry{.driver = "sim",
                           .host = peer,
                           .packet_bytes_max = options.packet_bytes_max,
                           .at_s = 1,
                           .costs = costs};
    cluster.nodes[node]->know_costs({&entry, 1}, 1'000'000);
    EXPECT_EQ(origin_of(cluster.nodes[node]->cost(1 - node)), CostOrigin::cached);
  }
  sample(cluster);
  return value_of(cluster.nodes[0]->cost(1), "latency_ns");
}

TEST(CostSampler, WhatIsMuchSlowerThanBeforeWithinAHostIsNotBelieved) {
  EXPECT_EQ(latency_after(100, {"here", "here"}), 100) << "the machine is busy now";
  EXPECT_GT(latency_after(500, {"here", "here"}), 900) << "not much slower";
  EXPECT_LT(latency_after(50'000, {"here", "here"}), 2000) << "it was busy then";
  EXPECT_GT(latency_after(100, {"here", "there"}), 900) << "networks do become slower";
}

TEST(CostSampler, WhatNoHostTakesIsNotBelieved) {
  for (const bool is_within : {true, false}) {
    SimOptions options = fast_link();
    options.hosts = {"here", is_within ? "here" : "there"};
    options.profile_latency_ns = 100;  // It takes ten times as long.
    SimCluster cluster{options, 2};
    sample(cluster);
    const CostModel model = cluster.nodes[0]->cost(1);
    EXPECT_EQ(origin_of(model), is_within ? CostOrigin::profile : CostOrigin::sampled);
    EXPECT_TRUE(!is_within || value_of(model, "latency_ns") == 100);
  }
}

}  // namespace
}  // namespace sterna::net
