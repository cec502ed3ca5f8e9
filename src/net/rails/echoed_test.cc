// Of rails that each carry a part of every message and of every answer, all are known for as long
// as they take: none is taken for as slow as the messages are.
#include <gtest/gtest.h>

#include "net/rails/link_pair.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kDelayNs = 20'000;

TEST(EchoedRails, AreAllMeasuredWhereMessagesAndAnswersTakeBoth) {
  std::vector<SimOptions> rails{wire(100, kDelayNs), wire(100, kDelayNs)};
  for (SimOptions& rail : rails) {
    rail.profile_latency_ns = 2 * kDelayNs;
  }
  LinkPair pair{rails, {{"net_cost_sampling", "off"}}};
  for (int i = 0; i < 100; ++i) {
    for (const std::uint32_t from : {0U, 1U}) {
      LinkPair::Transfer transfer{pair, 16 << 10, from};
      (void)pair.run(transfer);
      ASSERT_TRUE(transfer.is_right());
    }
  }
  for (std::uint32_t node = 0; node < 2; ++node) {
    const WayExplanation way = pair.cluster->nodes[node]->explain_way(1 - node, 16 << 10);
    ASSERT_EQ(way.rails.size(), 2U);
    for (const RailShare& rail : way.rails) {
      EXPECT_LT(rail.latency_ns, kDelayNs * 3 / 2) << rail.name << " at node " << node;
      EXPECT_GT(rail.latency_ns, kDelayNs / 2) << rail.name << " at node " << node;
    }
  }
}

}  // namespace
}  // namespace sterna::net
