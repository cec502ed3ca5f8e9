// What is bounded, and what follows what is measured: unexpected messages of all senders together,
// and the threshold of a way that changes while messages go.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/core.h"
#include "net/matching/held.h"
#include "net/simulation/rank_heaps.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

Settings settings_with(const char* name, const char* value) {
  Settings settings{transport_tunables()};
  check(settings.set(name, value, SettingSource::command_line, "the test").has_value(),
        "the test sets what there is");
  return settings;
}

TEST(Bounds, WhatTakesSeveralRailsIsEagerForLongerWhereAnnouncingItTakesLong) {
  const SimOptions slow{.node_count = 2,
                        .delay_ns_min = 20'000,
                        .delay_ns_max = 20'000,
                        .ps_per_byte = 5000,
                        .packet_bytes_max = 256 << 10};
  const SimCluster one{SimCluster::Rails{}, {slow}, 2};
  const SimCluster two{SimCluster::Rails{}, {slow, slow}, 2};
  EXPECT_EQ(one.nodes[0]->cost(1).eager_bytes(), 64U << 10);
  EXPECT_EQ(two.nodes[0]->cost(1).eager_bytes(), 256U << 10) << "an eighth of the window";
}

TEST(Bounds, TheWindowOfAPairIsItsShareOfWhatOneRankKeeps) {
  const CoreOptions options = read_options(nullptr).value();
  EXPECT_EQ(share_window(options, 2).eager_window_bytes, 2U << 20);
  EXPECT_EQ(share_window(options, 64).eager_window_bytes, 1U << 20);
  EXPECT_EQ(share_window(options, 1024).eager_window_bytes, 64U << 10);
  EXPECT_EQ(share_window(options, 1024).cost.eager_bytes_max, 16U << 10);
  EXPECT_EQ(share_window(options, 1 << 20).eager_window_bytes, 64U) << "no message has room";
}

/// Rank 0 alone on its node, with a heap of its own; the other ranks send to it.
struct Flood {
  static constexpr std::uint32_t kRanks = 33;
  static constexpr std::uint64_t kTotal = 1 << 20;

  explicit Flood(const Settings& settings)
      : cluster{SimCluster::Rails{},      {{.node_count = 2}}, kRanks, &settings, nullptr,
                *memory::Heap::process(), heaps.all()} {}
  void send(std::uint32_t from, std::int32_t tag, std::size_t bytes) {
    sends.push_back(std::make_unique<SendRequest>());
    cluster.node_of(from).send(*cluster.endpoints[from], *sends.back(), {0, 0, tag},
                               Buffer::of(data.data(), bytes));
  }
  void receive(const Pattern& pattern, const Envelope& expected) {
    RecvRequest receive;
    cluster.nodes[0]->receive(*cluster.endpoints[0], receive, pattern,
                              Buffer::of(into.data(), into.size()));
    cluster.settle();
    ASSERT_TRUE(receive.done.done());
    ASSERT_EQ(receive.fault, Fault::none);
    ASSERT_EQ(receive.envelope.tag, expected.tag);
    ASSERT_EQ(receive.envelope.bytes, expected.bytes);
  }
  [[nodiscard]] std::uint64_t live_bytes() const { return heaps.live_bytes(0); }
  void expect_all_done() const {
    for (const auto& send : sends) {
      ASSERT_TRUE(send->done.done());
      ASSERT_EQ(send->fault, Fault::none);
    }
    EXPECT_EQ(cluster.endpoints[0]->unexpected_bytes, 0U);
  }

  RankHeaps heaps{kRanks, std::size_t{64} << 20};
  SimCluster cluster;
  std::vector<std::byte> data = std::vector<std::byte>(100'000);
  std::vector<std::byte> into = std::vector<std::byte>(100'000);
  std::vector<std::unique_ptr<SendRequest>> sends;
};

/// One after the other without a poll, to a receiver that takes each at once.
TEST(Bounds, WhoIsToldThatThereIsNoRoomFindsByAPollThatThereIs) {
  constexpr std::size_t kBytes = 10'000;
  const Settings settings = settings_with("net_eager_bytes", "16K");
  SimCluster cluster{SimCluster::Rails{},
                     {{.node_count = 2, .packet_bytes_max = 32 << 10}},
                     2,
                     &settings};
  const std::vector<std::byte> data(kBytes);
  std::vector<std::byte> into(kBytes);
  std::vector<std::unique_ptr<SendRequest>> sends;
  std::vector<std::unique_ptr<RecvRequest>> receives;
  const auto exchange = [&] {
    RecvRequest& receive = *receives.emplace_back(std::make_unique<RecvRequest>());
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 7},
                              Buffer::of(into.data(), kBytes));
    SendRequest& send = *sends.emplace_back(std::make_unique<SendRequest>());
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 7},
                           Buffer::of(data.data(), kBytes));
    for (int i = 0; i < 3; ++i) {
      cluster.clock.advance(1'000'000);
      (void)cluster.nodes[1]->poll();
    }
    EXPECT_NE(send.done.done(), send.lacked_room) << "what has room has gone";
    return !send.lacked_room;
  };
  std::size_t count = 0;
  while (count < 1000 && exchange()) {
    ++count;
  }
  EXPECT_EQ(count, (2U << 20) / (kBytes * 5 / 4 + 640)) << "the window of the pair";
  EXPECT_FALSE(exchange()) << "nothing has told it of room";
  cluster.clock.advance(1'000'000);
  (void)cluster.nodes[0]->poll();
  EXPECT_TRUE(exchange()) << "the receiver had told of it long ago";
  cluster.settle();
  for (const auto& send : sends) {
    EXPECT_TRUE(send->done.done());
  }
  for (const auto& receive : receives) {
    EXPECT_TRUE(receive->done.done());
  }
}

/// What a rank needs for its peers, for requests and lanes of its own, and recycled messages.
constexpr std::uint64_t kOwnBytes = 192 << 10;

/// Messages of all kinds, each of its own tag: what they take of the receiver's heap is what the
/// settings say, with all that describes them.
TEST(Bounds, MessagesOfAllSendersTogetherAreBoundedInTheHeapOfTheirReceiver) {
  const Settings settings = settings_with("net_eager_total", "1M");
  Flood flood{settings};
  constexpr std::size_t kSizes[] = {0, 1, 100, 1000, 100'000};
  std::uint64_t most = 0;
  for (std::int32_t i = 0; i < 400; ++i) {
    for (std::uint32_t rank = 1; rank < Flood::kRanks; ++rank) {
      if (flood.cluster.place[rank] != 0) {
        flood.send(rank, i, kSizes[(static_cast<std::uint32_t>(i) + rank) % 5]);
      }
    }
    flood.cluster.settle();
    // An index of each kind: messages are in all lanes that they may be in.
    Envelope found;
    (void)flood.cluster.nodes[0]->probe(*flood.cluster.endpoints[0], {kAnySource, 0, 399}, found);
    (void)flood.cluster.nodes[0]->probe(*flood.cluster.endpoints[0], {1, 7, kAnyTag}, found);
    (void)flood.cluster.nodes[0]->probe(*flood.cluster.endpoints[0], {kAnySource, 7, kAnyTag},
                                        found);
    most = std::max(most, flood.live_bytes());
  }
  EXPECT_LE(most, Flood::kTotal / 2 + kOwnBytes) << "half of the ranks are of the other node";
  EXPECT_GT(most, Flood::kTotal / 8) << "yet there was a flood";
  for (std::size_t i = 0; i < flood.sends.size(); ++i) {
    RecvRequest receive;
    flood.cluster.nodes[0]->receive(*flood.cluster.endpoints[0], receive, {kAnySource, 0, kAnyTag},
                                    Buffer::of(flood.into.data(), flood.into.size()));
    flood.cluster.settle();
    ASSERT_TRUE(receive.done.done()) << i;
    ASSERT_LE(flood.live_bytes(), Flood::kTotal / 2 + kOwnBytes);
  }
  for (const auto& send : flood.sends) {
    EXPECT_TRUE(send->done.done() && send->fault == Fault::none);
  }
}

/// A window full of what a receive does not want: it gets what its sender keeps behind that.
TEST(Bounds, AReceiveGetsWhatWaitsBehindAFullWindow) {
  const Settings settings = settings_with("net_eager_window", "4K");
  Flood flood{settings};
  constexpr std::int32_t kCount = 20'000;
  for (std::int32_t i = 0; i < kCount; ++i) {
    flood.send(1, i, i % 10 == 0 ? 100'000 : 1);
  }
  flood.cluster.settle();
  EXPECT_LE(flood.live_bytes(), (4U << 10) + kOwnBytes);
  for (std::int32_t i = kCount; i-- != 0;) {
    const std::uint64_t bytes = i % 10 == 0 ? 100'000 : 1;
    ASSERT_NO_FATAL_FAILURE(flood.receive({i % 3 == 0 ? kAnySource : 1, 0, i}, {1, 0, i, bytes}));
  }
  EXPECT_LE(flood.live_bytes(), (4U << 10) + kOwnBytes);
  flood.expect_all_done();
}

/// Where messages are kept nothing that comes is what it waits for: it asks.
TEST(Bounds, AProbeThatWaitsIsToldThatMessagesAreKept) {
  const Settings settings = settings_with("net_eager_window", "4K");
  Flood flood{settings};
  constexpr std::int32_t kCount = 1000;
  Transport& node = *flood.cluster.nodes[0];
  Endpoint& at = *flood.cluster.endpoints[0];
  const Pattern last{1, 0, kCount - 1};
  Envelope found;
  MessageWatch watch;
  ASSERT_FALSE(node.probe(at, last, found, &watch));
  EXPECT_FALSE(watch.must_look_again);
  for (std::int32_t i = 0; i < kCount; ++i) {
    flood.send(1, i, 1);
  }
  flood.cluster.settle();
  EXPECT_TRUE(watch.done.done());
  MessageWatch answered;
  ASSERT_FALSE(node.probe(at, last, found, &answered));
  EXPECT_FALSE(answered.must_look_again);
  flood.cluster.settle();
  EXPECT_TRUE(answered.done.done());
  EXPECT_TRUE(node.probe(at, last, found));
  for (std::int32_t i = kCount; i-- != 0;) {
    ASSERT_NO_FATAL_FAILURE(flood.receive({1, 0, i}, {1, 0, i, 1}));
  }
  flood.expect_all_done();
}

/// A peer that ends takes what is kept for it along, and what will be.
TEST(Bounds, WhatIsKeptForADeadPeerEndsWithAnError) {
  const Settings settings = settings_with("net_eager_window", "4K");
  Flood flood{settings};
  for (std::int32_t i = 0; i < 1000; ++i) {
    flood.send(1, i, 1);
  }
  flood.cluster.settle();
  EXPECT_FALSE(flood.sends.back()->done.done());
  flood.cluster.network->lose(0);
  flood.cluster.nodes[1]->lose_peer(0, "killed");
  (void)flood.cluster.nodes[1]->poll();
  flood.send(1, 1000, 1);
  flood.send(1, 1001, 100'000);
  for (std::size_t i = 10; i < flood.sends.size(); ++i) {
    ASSERT_TRUE(flood.sends[i]->done.done()) << i;
    ASSERT_EQ(flood.sends[i]->fault, Fault::peer_lost);
  }
  EXPECT_EQ(flood.cluster.endpoints[1]->pending_count, 0U);
}

/// Who sends to itself has no other window.
TEST(Bounds, ARankMayFloodItself) {
  Settings settings = settings_with("net_eager_window", "4K");
  check(settings.set("net_local_window", "4K", SettingSource::command_line, "test").has_value(),
        "the test sets what there is");
  Flood flood{settings};
  for (std::int32_t i = 0; i < 1000; ++i) {
    flood.send(0, i, 1);
  }
  EXPECT_FALSE(flood.sends.back()->done.done());
  for (std::int32_t i = 1000; i-- != 0;) {
    ASSERT_NO_FATAL_FAILURE(flood.receive({0, 0, i}, {0, 0, i, 1}));
  }
  flood.expect_all_done();
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
