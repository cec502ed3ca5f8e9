// A node dies while requests of every kind wait for it: each ends with an error, at the moment at
// which the loss is known (by the network, by the launcher, or because a link could not be made
// anew in the time that was set), and those for the living go on.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

enum class News : std::uint8_t { network, launcher, reconnect };

struct Death {
  const char* name;
  News news;
  bool has_links;
  std::uint64_t revive_patience_ns = 0;  // See SimOptions.
};

/// Ranks 0 and 2 on node 0, which lives; 1 and 3 on node 1.
class DeadPeer : public testing::TestWithParam<Death> {
 protected:
  static constexpr std::size_t kLong = 100'000;
  static constexpr std::uint64_t kReconnectNs = 2'000'000'000;

  DeadPeer() : settings_{transport_tunables()} {
    if (GetParam().has_links) {
      set("net_links", "on");
      set("net_reconnect", "2s");
    }
    set("net_eager_bytes", "8K");
    SimOptions slow;
    slow.ps_per_byte = 1'000'000;  // A packet takes a millisecond.
    slow.delay_ns_max = slow.delay_ns_min = 1000;
    slow.channel_packets_max = 4;
    slow.revive_patience_ns = GetParam().revive_patience_ns;
    cluster_ = std::make_unique<SimCluster>(slow, 4, &settings_);
    node().register_lost_handler(
        [](void* self, std::uint32_t, std::string_view) noexcept {
          auto& test = *static_cast<DeadPeer*>(self);
          test.told_ns_ = test.cluster_->clock.now_ns();
        },
        this);
  }
  void set(const char* name, const char* value) {
    ASSERT_TRUE(settings_.set(name, value, SettingSource::command_line, "the test"));
  }
  Transport& node(std::uint32_t which = 0) { return *cluster_->nodes[which]; }
  Endpoint& at(std::uint32_t rank) { return *cluster_->endpoints[rank]; }
  Buffer buffer(std::size_t bytes) { return Buffer::of(memory_.data(), bytes); }

  SendRequest& send(std::uint32_t from, std::uint32_t to, std::int32_t tag, std::size_t bytes,
                    SendMode mode = SendMode::standard) {
    sends_.push_back(std::make_unique<SendRequest>());
    node(from % 2).send(at(from), *sends_.back(), {to, 0, tag}, buffer(bytes), mode);
    return *sends_.back();
  }
  RecvRequest& receive(std::uint32_t rank, std::uint32_t source, std::int32_t tag) {
    receives_.push_back(std::make_unique<RecvRequest>());
    node(rank % 2).receive(at(rank), *receives_.back(), {source, 0, tag}, buffer(kLong));
    return *receives_.back();
  }
  void run_for(std::uint64_t ns) {
    for (const std::uint64_t end_ns = cluster_->clock.now_ns() + ns;
         cluster_->clock.now_ns() < end_ns;) {
      (void)node(0).poll();
      if (!is_dead_) {
        (void)node(1).poll();
      }
      cluster_->clock.advance(10'000);
    }
  }
  void die() {
    is_dead_ = true;
    died_ns_ = cluster_->clock.now_ns();
    switch (GetParam().news) {
      case News::network:
        cluster_->network->lose(1);
        break;
      case News::launcher:
        cluster_->network->lose(1);
        node().lose_peer(1, "killed");
        break;
      case News::reconnect:
        cluster_->network->sever(0, 1);
        break;
    }
    while (told_ns_ == 0 && cluster_->clock.now_ns() - died_ns_ < 10'000'000'000) {
      (void)node(0).poll();
      cluster_->clock.advance(10'000);
    }
    (void)node(0).poll();  // What was in parts ends with the next poll.
  }
  /// In the order of the requests; "peer lost" of each that ended so.
  void expect_all_lost() {
    for (std::size_t i = 0; i < sends_.size(); ++i) {
      EXPECT_TRUE(sends_[i]->done.done()) << "send " << i;
      EXPECT_EQ(sends_[i]->fault, Fault::peer_lost) << "send " << i;
    }
    for (std::size_t i = 0; i < receives_.size(); ++i) {
      EXPECT_TRUE(receives_[i]->done.done()) << "receive " << i;
      EXPECT_EQ(receives_[i]->fault, Fault::peer_lost) << "receive " << i;
    }
  }

  Settings settings_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kLong);
  std::unique_ptr<SimCluster> cluster_;
  std::vector<std::unique_ptr<SendRequest>> sends_;
  std::vector<std::unique_ptr<RecvRequest>> receives_;
  std::uint64_t died_ns_ = 0;
  std::uint64_t told_ns_ = 0;
  bool is_dead_ = false;
};

TEST_P(DeadPeer, EveryKindOfRequestEndsWhenItsLossIsKnown) {
  // Those of the living, which wait for each other.
  RecvRequest living;
  node().receive(at(0), living, {2, 0, 9}, buffer(8));
  // Of the living node, in all the states that a request may be in.
  send(0, 1, 0, kLong);                       // Announced.
  send(0, 1, 1, 100, SendMode::synchronous);  // It waits at the other node.
  SendRequest& asked_back = send(0, 3, 2, kLong);
  receive(0, 1, 3);  // Nothing has been sent.
  receive(0, kAnySource, 4);
  receives_.push_back(std::make_unique<RecvRequest>());
  node().receive(at(0), *receives_.back(), MaskedPattern{{1, 0, 5}, 7}, buffer(kLong));
  Landing landing;
  const Extent into[] = {{memory_.data(), kLong}};
  node().expect_bulk(1, into, landing);
  run_for(50'000'000);
  // These are in parts when it dies.
  RecvRequest other_side[2];
  node(1).receive(at(1), other_side[0], {2, 0, 6}, buffer(kLong));
  send(2, 1, 6, kLong);
  receive(2, 3, 7);
  SendRequest their_long;
  node(1).send(at(3), their_long, {2, 0, 7}, buffer(kLong));
  receive(2, 1, 8);
  SendRequest their_eager;
  node(1).send(at(1), their_eager, {2, 0, 8}, buffer(7000));
  BulkSend bulk;
  const Extent from[] = {{memory_.data(), kLong}};
  node().bulk_send(1, 12345, from, {}, bulk);
  run_for(10'000'000);
  EXPECT_TRUE(node().cancel_send(at(0), asked_back));
  for (const auto& request : sends_) {
    ASSERT_FALSE(request->done.done()) << "the test has what it is about";
  }
  for (const auto& request : receives_) {
    ASSERT_FALSE(request->done.done()) << "the test has what it is about";
  }
  ASSERT_FALSE(bulk.done.done());
  die();
  ASSERT_NE(told_ns_, 0U);
  expect_all_lost();
  EXPECT_TRUE(bulk.done.done());
  EXPECT_EQ(bulk.fault, Fault::peer_lost);
  EXPECT_TRUE(landing.done.done());
  EXPECT_EQ(landing.fault, Fault::peer_lost);
  EXPECT_FALSE(living.done.done());
  const std::uint64_t took_ns = told_ns_ - died_ns_;
  const std::uint64_t wire_ns = 6'000'000;  // Four packets, and one that was on its way to leave.
  EXPECT_GE(took_ns, GetParam().news == News::reconnect ? kReconnectNs : 0);
  EXPECT_LE(took_ns, (GetParam().news == News::reconnect ? kReconnectNs : 0) + wire_ns);
  // What begins later ends at once.
  send(0, 1, 0, 8);
  send(2, 3, 0, kLong);
  receive(0, 1, 0);
  expect_all_lost();
  SendRequest to_living;
  node().send(at(2), to_living, {0, 0, 9}, buffer(8));
  EXPECT_TRUE(living.done.done());
  EXPECT_EQ(living.fault, Fault::none);
}
INSTANTIATE_TEST_SUITE_P(Ways, DeadPeer,
                         testing::Values(Death{"network", News::network, false},
                                         Death{"launcher", News::launcher, false},
                                         Death{"launcher_of_a_link", News::launcher, true},
                                         Death{"link", News::reconnect, true},
                                         Death{"link_that_is_patient", News::reconnect, true,
                                               20'000'000'000},
                                         Death{"link_that_is_lost_again", News::reconnect, true,
                                               300'000'000}),
                         [](const auto& death) { return death.param.name; });

}  // namespace
}  // namespace sterna::net
