// What is bounded, and what follows what is measured: unexpected messages of all senders together,
// and the threshold of a way that changes while messages go.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/core.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

Settings settings_with(const char* name, const char* value) {
  Settings settings{transport_tunables()};
  check(settings.set(name, value, SettingSource::command_line, "the test").has_value(),
        "the test sets what there is");
  return settings;
}

TEST(Bounds, TheWindowOfAPairIsItsShareOfWhatOneRankKeeps) {
  const CoreOptions options = read_options(nullptr).value();
  EXPECT_EQ(share_window(options, 2).eager_window_bytes, 256U << 10);
  EXPECT_EQ(share_window(options, 256).eager_window_bytes, 256U << 10);
  EXPECT_EQ(share_window(options, 1024).eager_window_bytes, 64U << 10);
  EXPECT_EQ(share_window(options, 1024).cost.eager_bytes_max, 16U << 10);
  EXPECT_EQ(share_window(options, 1 << 20).eager_window_bytes, 4U << 10);
}

/// All send to one rank, which receives nothing for long: the rest waits at its senders.
TEST(Bounds, MessagesOfAllSendersTogetherAreBounded) {
  constexpr std::uint32_t kRanks = 65;
  constexpr int kCount = 60;  // 3.9 MB, four times as much as may wait.
  constexpr std::size_t kBytes = 1000;
  const Settings settings = settings_with("net_eager_total", "1M");
  SimCluster cluster{{.node_count = 3}, kRanks, &settings};
  std::vector<std::byte> data(kBytes);
  std::vector<std::unique_ptr<SendRequest>> sends;
  for (int i = 0; i < kCount; ++i) {
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
      if (cluster.place[rank] != cluster.place[0]) {
        sends.push_back(std::make_unique<SendRequest>());
        cluster.node_of(rank).send(*cluster.endpoints[rank], *sends.back(), {0, 0, 0},
                                   Buffer::of(data.data(), kBytes));
      }
    }
    cluster.settle();
  }
  EXPECT_LE(cluster.endpoints[0]->unexpected_bytes_peak, 1U << 20);
  EXPECT_GT(cluster.endpoints[0]->unexpected_bytes_peak, 1U << 19) << "yet there was a flood";
  for (std::size_t i = 0; i < sends.size(); ++i) {
    RecvRequest receive;
    cluster.nodes[0]->receive(*cluster.endpoints[0], receive, {kAnySource, 0, kAnyTag},
                              Buffer::of(data.data(), kBytes));
    cluster.settle();
    ASSERT_TRUE(receive.done.done());
    ASSERT_EQ(receive.fault, Fault::none);
  }
  for (const auto& send : sends) {
    EXPECT_TRUE(send->done.done());
  }
  EXPECT_EQ(cluster.endpoints[0]->unexpected_bytes, 0U);
}

/// Copies turn out to take longer than their profile says: more is sent at once, while messages go.
TEST(Bounds, TheThresholdOfAWayFollowsWhatItsMessagesTake) {
  SimOptions options{.node_count = 2};
  options.has_direct = options.is_direct_timed = true;
  options.direct_latency_ns = 500;
  options.direct_ps_per_byte = 1000;  // The profile says 125.
  options.packet_bytes_max = 16 << 10;
  const Settings settings = settings_with("net_cost_sampling", "off");
  SimCluster cluster{options, 2, &settings};
  const std::uint64_t before = cluster.nodes[0]->cost(1).eager_bytes();
  std::vector<std::byte> data(before + 1);
  std::vector<std::byte> into(1 << 20);
  const auto is_announced = [&] {
    const std::uint64_t count = cluster.nodes[0]->statistics().messages_rendezvous;
    SendRequest send;
    RecvRequest receive;
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(data.data(), data.size()));
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                              Buffer::of(into.data(), into.size()));
    cluster.settle();
    EXPECT_TRUE(send.done.done() && receive.done.done());
    return cluster.nodes[0]->statistics().messages_rendezvous != count;
  };
  EXPECT_TRUE(is_announced());
  std::vector<std::byte> large(1 << 20);
  for (int i = 0; i < 50; ++i) {
    SendRequest send;
    RecvRequest receive;
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(large.data(), large.size()));
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                              Buffer::of(into.data(), into.size()));
    cluster.settle();
    ASSERT_TRUE(send.done.done() && receive.done.done());
  }
  EXPECT_GT(cluster.nodes[0]->cost(1).eager_bytes(), before);
  EXPECT_FALSE(is_announced());
}

}  // namespace
}  // namespace sterna::net
