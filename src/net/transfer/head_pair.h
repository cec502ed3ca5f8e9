// For tests: two nodes of a rank each, between which announced messages have heads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"

namespace sterna::net::heads {

inline constexpr std::size_t kBytes = 200'000;  // Announced.

struct TwoNodes {
  explicit TwoNodes(const SimOptions& options = {.node_count = 2, .delay_ns_max = 1000},
                    const Settings* settings = nullptr,
                    SimCluster::Rails how = SimCluster::Rails{})
      : cluster{options, 2, settings, nullptr, *memory::Heap::process(), how} {
    for (std::size_t i = 0; i < kBytes; ++i) {
      sent[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
  }
  /// Rank 1.
  void move_to(std::uint32_t node) {
    ASSERT_TRUE(cluster.nodes[1 - node]->begin_leave(1));
    cluster.nodes[node]->expect(1);
    cluster.nodes[1 - node]->commit_leave(1, node);
    cluster.nodes[node]->install(1, cluster.endpoints[1]);
  }
  void post() { post(Buffer::of(got.data(), got.size())); }
  void post(const Buffer& into) {
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0}, into);
  }
  void begin_send() {
    send.is_awaited = true;
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(sent.data(), sent.size()));
  }
  /// One message, with its receive before or after it.
  void exchange(bool is_posted_first) {
    std::fill(got.begin(), got.end(), std::byte{0});
    if (is_posted_first) {
      post();
    }
    begin_send();
    if (!is_posted_first) {
      cluster.settle();
      post();
    }
    cluster.settle();
    ASSERT_TRUE(send.done.done() && receive.done.done());
    ASSERT_EQ(send.fault, Fault::none);
    ASSERT_EQ(receive.fault, Fault::none);
    ASSERT_TRUE(got == sent);
  }
  [[nodiscard]] std::uint64_t heads_sent() { return cluster.nodes[0]->statistics().heads_sent; }
  [[nodiscard]] std::uint64_t heads_dropped() {
    return cluster.nodes[1]->statistics().heads_dropped;
  }

  SendRequest send;
  RecvRequest receive;
  std::vector<std::byte> sent = std::vector<std::byte>(kBytes);
  std::vector<std::byte> got = std::vector<std::byte>(kBytes);
  SimCluster cluster;
};

/// Messages of one packet, which are announced all the same.
struct Short : TwoNodes {
  static constexpr std::size_t kShortBytes = 40'000;
  static constexpr std::uint32_t kPacketBytes = 64 << 10;
  explicit Short(const Settings& settings = announcing(), std::uint32_t packet_bytes = kPacketBytes,
                 std::uint32_t packets_max = 64)
      : TwoNodes{{.node_count = 2,
                  .delay_ns_max = 1000,
                  .packet_bytes_max = packet_bytes,
                  .channel_packets_max = packets_max},
                 &settings} {
    sent.resize(kShortBytes);
    got.resize(kShortBytes);
    check(cluster.nodes[0]->cost(1).head_bytes() < kShortBytes, "a head is a part of it");
  }
  static Settings announcing() {
    Settings settings{transport_tunables()};
    check(settings.set("net_eager_bytes", "4K", SettingSource::command_line, "test").has_value(),
          "the setting exists");
    return settings;
  }

  /// Its receive, posted before, ends before the sender has seen an answer.
  [[nodiscard]] bool comes_unasked() {
    std::fill(got.begin(), got.end(), std::byte{0});
    post();
    begin_send();
    for (int i = 0; i < 100; ++i) {
      cluster.nodes[1]->poll();
      cluster.clock.advance(100);
    }
    const bool has_come = receive.done.done();
    cluster.settle();
    EXPECT_TRUE(send.done.done() && receive.done.done());
    EXPECT_EQ(send.fault, Fault::none);
    EXPECT_TRUE(got == sent);
    return has_come;
  }
};

}  // namespace sterna::net::heads
