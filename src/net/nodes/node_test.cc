// Messages and large copies between nodes, notes that follow ranks, and the choice of strategies.
#include <algorithm>
#include <deque>
#include <string>

#include <gtest/gtest.h>

#include "net/drivers/choice.h"
#include "net/drivers/tcp/tunables.h"
#include "net/packets/strategy.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

struct Inbox {
  std::deque<std::pair<std::uint32_t, std::vector<std::byte>>> got;

  static void on_message(void* context, std::uint32_t from, std::span<const std::byte> head,
                         std::span<const std::byte> body) noexcept {
    std::vector<std::byte> bytes{head.begin(), head.end()};
    bytes.insert(bytes.end(), body.begin(), body.end());
    static_cast<Inbox*>(context)->got.push_back({from, std::move(bytes)});
  }
  static void on_note(void* context, std::uint32_t rank, std::uint32_t /*from_node*/,
                      std::span<const std::byte> bytes) noexcept {
    static_cast<Inbox*>(context)->got.push_back({rank, {bytes.begin(), bytes.end()}});
  }
};

class NodeMessages : public testing::TestWithParam<bool> {};  // Whether channels keep order.

TEST_P(NodeMessages, ArriveWholeAndInOrder) {
  SimCluster cluster{{.node_count = 3,
                      .delay_ns_max = 3000,
                      .is_ordered = GetParam(),
                      .packet_bytes_max = 300,
                      .channel_packets_max = 8},
                     3};
  Inbox inbox;
  cluster.nodes[1]->register_node_handler(2, Inbox::on_message, &inbox);
  Random random{3};
  std::vector<std::vector<std::byte>> sent[3];
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> bytes(random.below(10) == 0 ? random.below(20'000) : random.below(400));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random.next());
    }
    const std::uint64_t from = random.below(3);  // Node 1 sends to itself too.
    const std::size_t cut = random.below(40);
    const std::span<const std::byte> all{bytes};
    const auto head = all.first(std::min(cut, all.size()));
    ASSERT_TRUE(
        cluster.nodes[from]->node_message(1, 2, head, all.subspan(head.size())).has_value());
    sent[from].push_back(std::move(bytes));
  }
  cluster.settle();
  std::size_t next[3] = {};
  for (const auto& [from, bytes] : inbox.got) {
    ASSERT_LT(next[from], sent[from].size());
    ASSERT_TRUE(bytes == sent[from][next[from]++]);
  }
  EXPECT_EQ(inbox.got.size(), 200U);
}

TEST_P(NodeMessages, OfEachShortLengthArriveHoweverTheyAreCut) {
  SimCluster cluster{{.node_count = 2, .delay_ns_max = 3000, .is_ordered = GetParam()}, 2};
  Inbox inbox;
  cluster.nodes[1]->register_node_handler(2, Inbox::on_message, &inbox);
  std::vector<std::byte> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i);
  }
  const std::span<const std::byte> all{bytes};
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length < all.size(); ++length) {
    for (const std::size_t cut : {std::size_t{0}, std::size_t{8}, std::size_t{16}, length}) {
      const auto head = all.first(std::min(cut, length));
      const auto body = all.subspan(head.size(), length - head.size());
      ASSERT_TRUE(cluster.nodes[0]->node_message(1, 2, head, body).has_value());
      lengths.push_back(length);
    }
  }
  cluster.settle();
  ASSERT_EQ(inbox.got.size(), lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto sent = all.first(lengths[i]);
    ASSERT_TRUE(std::ranges::equal(inbox.got[i].second, sent)) << lengths[i];
  }
}

TEST_P(NodeMessages, WhoseHandlerHasEnoughLeaveTheOthersToTheNextPoll) {
  struct Ending {
    Transport* transport;
    std::uint32_t count = 0;
  };
  SimCluster cluster{{.node_count = 2, .is_ordered = GetParam()}, 2};
  Ending ending{cluster.nodes[1].get()};
  const auto on_message = [](void* context, std::uint32_t, std::span<const std::byte>,
                             std::span<const std::byte>) noexcept {
    auto& own = *static_cast<Ending*>(context);
    ++own.count;
    own.transport->end_polls();
  };
  cluster.nodes[1]->register_node_handler(2, on_message, &ending);
  const std::byte word[8] = {};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cluster.nodes[0]->node_message(1, 2, word).has_value());
    (void)cluster.nodes[0]->poll();
  }
  for (std::uint32_t i = 1; i <= 3; ++i) {
    (void)cluster.nodes[1]->poll();
    EXPECT_EQ(ending.count, i);
  }
}

TEST_P(NodeMessages, NotesFollowARankThatMoves) {
  SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000, .is_ordered = GetParam()}, 3};
  Inbox inbox[3];
  for (int node = 0; node < 3; ++node) {
    cluster.nodes[node]->register_rank_handler(1, Inbox::on_note, &inbox[node]);
  }
  const std::byte note[4] = {};
  ASSERT_TRUE(cluster.nodes[0]->begin_leave(0).has_value());
  cluster.nodes[1]->rank_message(0, 1, note);
  cluster.nodes[0]->rank_message(0, 1, note);
  cluster.settle();
  EXPECT_TRUE(inbox[0].got.empty());  // Held.
  cluster.nodes[2]->expect(0);
  cluster.nodes[0]->commit_leave(0, 2);
  cluster.settle();
  cluster.nodes[2]->install(0, cluster.endpoints[0]);
  cluster.nodes[1]->rank_message(0, 1, note);
  cluster.settle();
  EXPECT_EQ(inbox[2].got.size(), 3U);
  EXPECT_EQ(cluster.nodes[1]->node_of(0), 2U);  // It was told.
}

TEST_P(NodeMessages, NothingGoesThroughANodeThatIsRetired) {
  SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000, .is_ordered = GetParam()}, 3};
  Inbox inbox;
  cluster.nodes[2]->register_rank_handler(1, Inbox::on_note, &inbox);
  ASSERT_TRUE(cluster.nodes[0]->begin_leave(0).has_value());
  cluster.nodes[2]->expect(0);
  cluster.nodes[0]->commit_leave(0, 2);
  cluster.nodes[2]->install(0, cluster.endpoints[0]);
  std::vector<RankPlace> places;
  cluster.nodes[0]->for_each_moved([&](const RankPlace& place) { places.push_back(place); });
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].rank, 0U);
  EXPECT_EQ(places[0].node, 2U);
  cluster.nodes[1]->retire(0, places);
  cluster.nodes[1]->rank_message(0, 1, {});
  cluster.settle();
  EXPECT_EQ(inbox.got.size(), 1U);
  EXPECT_EQ(cluster.nodes[0]->statistics().frames_forwarded, 0U);
}

TEST_P(NodeMessages, AReceiveFromAnybodyOutlivesANodeThatHasNoRank) {
  SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000, .is_ordered = GetParam()}, 2};
  RecvRequest receive;
  std::uint64_t word = 0;
  cluster.nodes[0]->receive(*cluster.endpoints[0], receive, {kAnySource, 0, 0},
                            Buffer::of(&word, sizeof word));
  cluster.network->lose(2);
  cluster.settle();
  EXPECT_FALSE(receive.done.done());
  EXPECT_TRUE(cluster.nodes[0]->cancel_receive(*cluster.endpoints[0], receive));
}

TEST_P(NodeMessages, LargeCopiesLandWhereTheyAreExpected) {
  for (const bool has_direct : {true, false}) {
    SimCluster cluster{{.node_count = 2, .is_ordered = GetParam(), .has_direct = has_direct}, 2};
    std::vector<std::byte> from(3'000'000);
    std::vector<std::byte> to(3'000'000);
    Random random{9};
    for (std::byte& byte : from) {
      byte = static_cast<std::byte>(random.next());
    }
    const Extent local[] = {{from.data(), 1'000'001}, {from.data() + 1'000'001, 1'999'999}};
    const Extent there[] = {{to.data(), 17}, {to.data() + 17, 0}, {to.data() + 17, 2'999'983}};
    std::vector<RemotePiece> remote;
    for (const Extent& extent : there) {
      remote.push_back({reinterpret_cast<std::uintptr_t>(extent.address), extent.bytes});
    }
    Landing landing;
    BulkSend request;
    cluster.nodes[1]->expect_bulk(0, there, landing);
    cluster.nodes[0]->bulk_send(1, landing.id, local, remote, request);
    cluster.settle();
    EXPECT_TRUE(request.done.done() && landing.done.done());
    EXPECT_TRUE(from == to);
    EXPECT_FALSE(cluster.nodes[1]->withdraw_bulk(landing));
  }
}

TEST_P(NodeMessages, ALandingEndsWhenItsSenderIsLost) {
  SimCluster cluster{{.node_count = 2, .is_ordered = GetParam()}, 2};
  std::vector<std::byte> bytes(100);
  const Extent there[] = {{bytes.data(), bytes.size()}};
  Landing landing;
  cluster.nodes[1]->expect_bulk(0, there, landing);
  cluster.network->lose(0);
  cluster.settle();
  EXPECT_TRUE(landing.done.done());
  EXPECT_EQ(landing.fault, Fault::peer_lost);
}
INSTANTIATE_TEST_SUITE_P(Order, NodeMessages, testing::Bool());

TEST(CostModel, WhatSharesAPacketFollowsFromWhatPacketsCost) {
  CostModel model{{.bandwidth_mb_per_s = 1000, .packet_ns = 1000, .cpu_ps_per_byte = 0}, false, {}};
  EXPECT_EQ(model.share_bytes(), 1000U);
  model.take({.latency_ns = 1, .packet_ns = 20, .packet_ps_per_byte = 500}, CostOrigin::sampled);
  EXPECT_EQ(model.share_bytes(), 40U);  // Less than a header: strategy auto sends as direct.
}

TEST(CostModel, PrefersDirectCopiesForLargeMessagesAndSaysWhy) {
  const Capabilities shm{.latency_ns = 200,
                         .bandwidth_mb_per_s = 6000,
                         .direct_latency_ns = 500,
                         .direct_mb_per_s = 8000};
  CostModel model{shm, true, {.eager_bytes_min = 1024}};
  EXPECT_GE(model.eager_bytes(), 1024U);
  EXPECT_LT(model.eager_bytes(), 64U << 10);
  EXPECT_NE(model.explain(1 << 20).find("written directly"), std::string::npos);
  const std::uint64_t before = model.eager_bytes();
  for (int i = 0; i < 100; ++i) {
    model.measured_direct(1 << 20, 4 << 20);  // Four times slower than thought.
  }
  EXPECT_GT(model.eager_bytes(), before);
}

TEST(CostModel, FollowsWhatPacketsAndDirectCopiesTurnOutToCost) {
  const Capabilities near{.latency_ns = 120,
                          .bandwidth_mb_per_s = 30'000,
                          .cpu_ps_per_byte = 10,
                          .direct_latency_ns = 1000,
                          .direct_mb_per_s = 12'000};
  CostModel model{near, true, {.eager_bytes_min = 1024}};
  EXPECT_EQ(model.eager_bytes(), 64U << 10);  // As good as copies by the system: the most there is.
  for (int i = 0; i < 200; ++i) {
    model.measured_packets(8 << 10, 8 << 10);  // One nanosecond a byte: caches that lie far apart.
  }
  const std::uint64_t apart = model.eager_bytes();
  EXPECT_LT(apart, 2048U);
  for (int i = 0; i < 200; ++i) {
    model.measured_direct(16 << 10, 20'000);  // And copies by the system that are slow to begin.
  }
  EXPECT_GT(model.eager_bytes(), 4 * apart);
  for (int i = 0; i < 400; ++i) {
    model.measured_packets(8 << 10, 200);
  }
  EXPECT_EQ(model.eager_bytes(), 64U << 10);
}

TEST(CostModel, SendsInPacketsWhatTheSystemWouldCopyMoreSlowly) {
  const Capabilities near{.latency_ns = 120,
                          .bandwidth_mb_per_s = 30'000,
                          .cpu_ps_per_byte = 10,
                          .direct_latency_ns = 1000,
                          .direct_mb_per_s = 12'000};
  CostModel model{near, true, {}};
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever);
  EXPECT_NE(model.explain(1 << 20).find("packets"), std::string::npos);
  for (int i = 0; i < 200; ++i) {
    model.measured_packets(1 << 20, 200'000);  // The receiver is slow to take them.
  }
  EXPECT_LT(model.direct_from_bytes(), 16U << 10);
  EXPECT_NE(model.explain(1 << 20).find("written directly"), std::string::npos);
  model.lose_direct();
  EXPECT_EQ(model.direct_from_bytes(), CostModel::kNever);
}

TEST(Drivers, AreChosenByNameInTheOrderGiven) {
  auto chosen = choose_drivers("tcp,shm");
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen.value()[0].entry->name, "tcp");
  EXPECT_EQ(chosen.value()[1].entry->name, "shm");
  auto unknown = choose_drivers("shm,pigeon");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().text.find("pigeon"), std::string::npos);
}

TEST(Drivers, AreRepeatedAsOftenAsTheyHaveConnections) {
  const std::vector<DriverChoice> chosen = choose_drivers("shm,tcp@lo,delay(tcp)").value();
  const auto names_with = [&](const char* connections) {
    Settings settings{tcp::kTunables};
    EXPECT_TRUE(settings.set("tcp_connections", connections, SettingSource::command_line, "test")
                    .has_value());
    std::vector<std::string> names;
    auto repeated = repeat_by_connections(chosen, &settings);
    if (!repeated) {
      return std::vector{repeated.error().text};
    }
    for (const DriverChoice& choice : repeated.value()) {
      names.emplace_back(choice.text());
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_with("1"), (Names{"shm", "tcp@lo", "delay(tcp)"}));
  EXPECT_EQ(names_with("2"), (Names{"shm", "tcp@lo", "tcp@lo*2", "delay(tcp)", "delay(tcp)*2"}));
  EXPECT_NE(names_with("8").front().find("17, of at most 16"), std::string::npos);
}

TEST(Drivers, WithOtherParametersAreOtherNetworks) {
  const std::vector<DriverChoice> chosen =
      choose_drivers(
          "shm,drop(delay(tcp@lo,latency=1ms,bandwidth=1M)),delay(tcp),delay(unix,latency=2us)")
          .value();
  std::vector<std::string> names;
  for (const DriverChoice& choice : chosen) {
    names.emplace_back(choice.full_text());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"shm", "drop(delay(tcp@lo,latency=1ms,bandwidth=1M))",
                                             "delay(tcp)", "delay(unix,latency=2us)"}));
  EXPECT_EQ(chosen[1].text(), "drop(delay(tcp@lo))");
  for (const std::string& name : names) {
    EXPECT_EQ(choose_drivers(name).value().front().full_text(), name);
  }
}

}  // namespace
}  // namespace sterna::net
