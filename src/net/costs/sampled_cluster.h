// A simulated job whose ways are sampled, for tests.
#pragma once

#include <string_view>

#include <gtest/gtest.h>

#include "net/costs/sampler.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {

inline double value_of(const CostModel& model, std::string_view name) {
  for (const CostModel::Row& row : model.figures()) {
    if (row.name == name) {
      return row.figure.value;
    }
  }
  ADD_FAILURE() << name;
  return 0;
}
inline CostOrigin origin_of(const CostModel& model) {
  return model.figures()[0].figure.origin;
}

/// Opens the way from rank 0 to rank 1, and lets time pass until nothing is on its way.
inline void exchange(SimCluster& cluster, std::uint32_t from = 0, std::uint32_t to = 1) {
  char sent = 'x';
  char got = 0;
  SendRequest send;
  RecvRequest receive;
  cluster.node_of(to).receive(*cluster.endpoints[to], receive, {from, 1, 2}, Buffer::of(&got, 1));
  cluster.node_of(from).send(*cluster.endpoints[from], send, {to, 1, 2}, Buffer::of(&sent, 1));
  cluster.settle();
  // Steps between two rounds, and looks for ways that are in use, are polls in which nothing comes;
  // behind long rounds time passes, too.
  for (int i = 0; i < 2000; ++i) {
    cluster.clock.advance(20'000);
    cluster.settle();
  }
  EXPECT_EQ(got, 'x');
}

/// All nodes measure; a message from rank 0 to rank 1 is on its way, and opens it.
struct OpenWay {
  explicit OpenWay(SimCluster& cluster) {
    for (const auto& node : cluster.nodes) {
      node->sample_costs();
    }
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 1, 2}, Buffer::of(&byte, 1));
  }
  char byte = 'x';
  SendRequest send;
};

inline void sample(SimCluster& cluster) {
  for (const auto& node : cluster.nodes) {
    node->sample_costs();
  }
  exchange(cluster);
}

constexpr SimOptions fast_link() {
  return {.node_count = 2,
          .delay_ns_min = 1000,
          .delay_ns_max = 1000,
          .packet_ns = 100,
          .ps_per_byte = 100,
          .has_direct = true,
          .is_direct_timed = true,
          .direct_latency_ns = 2000,
          .direct_ps_per_byte = 50,
          .packet_bytes_max = 16 << 10};
}

}  // namespace sterna::net
