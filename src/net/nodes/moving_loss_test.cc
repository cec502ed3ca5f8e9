// Nodes that are lost while ranks move, and what becomes of requests: those of a rank that moves,
// which no node finds at that moment, and those that name a rank whose place was not known then.
#include <array>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "net/matching/matching.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 5;
constexpr std::int32_t kTag = 7;

/// Rank r is on node r of three. Rank 0 waits, and moves from node 0 to node 1; node 2 is lost.
class MovingLosses : public testing::Test {
 protected:
  void receive(std::uint32_t at, RecvRequest& request, std::uint32_t source) {
    cluster.node_of(at).receive(*cluster.endpoints[at], request, Pattern{source, kContext, kTag},
                                Buffer{});
  }
  void send(std::uint32_t from, SendRequest& request, std::uint32_t to,
            std::span<const std::byte> bytes) {
    cluster.node_of(from).send(*cluster.endpoints[from], request, {to, kContext, kTag},
                               Buffer::of(bytes.data(), bytes.size()));
  }
  /// All that only rank 2, or possibly it, could end.
  void wait_for_two() {
    receive(0, named, 2);
    receive(0, any, kAnySource);
    cluster.node_of(0).receive(*cluster.endpoints[0], masked,
                               MaskedPattern{{kAnySource, kContext, 0x10}, 0xf0}, Buffer{});
    send(0, announced, 2, long_bytes);
    cluster.settle();
    ASSERT_FALSE(announced.done.done());
  }
  void lose(std::uint32_t node) {
    cluster.network->lose(node);
    cluster.settle();
  }
  void begin_move() {
    ASSERT_TRUE(cluster.nodes[0]->begin_leave(0));
    cluster.nodes[1]->expect(0);
  }
  void arrive() {
    cluster.nodes[0]->commit_leave(0, 1);
    cluster.nodes[1]->install(0, cluster.endpoints[0]);
    cluster.place[0] = 1;
  }
  [[nodiscard]] bool is_any_done() const {
    return named.done.done() || any.done.done() || masked.done.done() || announced.done.done();
  }
  void expect_all_lost() const {
    for (const RecvRequest* receive : {&named, &any, &masked}) {
      EXPECT_TRUE(receive->done.done());
      EXPECT_EQ(receive->fault, Fault::peer_lost);
    }
    EXPECT_TRUE(announced.done.done());
    EXPECT_EQ(announced.fault, Fault::peer_lost);
    EXPECT_EQ(Transport::loss_count(*cluster.endpoints[0]), 1U);
  }

  const std::vector<std::byte> long_bytes{300'000};
  SimCluster cluster{{.node_count = 3}, 3};
  RecvRequest named;
  RecvRequest any;
  RecvRequest masked;
  SendRequest announced;
};

TEST_F(MovingLosses, EndRequestsWhereTheRankArrives) {
  wait_for_two();
  begin_move();
  lose(2);
  EXPECT_FALSE(is_any_done()) << "nobody touches it while its bytes are copied";
  arrive();
  expect_all_lost();
}

TEST_F(MovingLosses, EndRequestsWhereTheRankStaysAfterAll) {
  wait_for_two();
  begin_move();
  lose(2);
  cluster.nodes[0]->cancel_leave(0);
  cluster.nodes[1]->unexpect(0, 0);
  expect_all_lost();
}

TEST_F(MovingLosses, OfWhichOnlyTheNewNodeKnowsEndRequestsThere) {
  wait_for_two();
  cluster.network->sever(1, 2);
  cluster.settle();
  EXPECT_FALSE(is_any_done());
  begin_move();
  arrive();
  expect_all_lost();
}

TEST_F(MovingLosses, LeaveWhatHadComeBefore) {
  const std::array<std::byte, 8> bytes{};
  SendRequest sent;
  receive(0, named, 2);
  begin_move();
  cluster.nodes[2]->learn(0, 1, 1);
  send(2, sent, 0, bytes);
  cluster.settle();
  lose(2);
  arrive();
  EXPECT_TRUE(named.done.done());
  EXPECT_EQ(named.fault, Fault::truncated) << "its message was held there, and is not lost";
}

TEST_F(MovingLosses, ThatWereKnownEndNothingThatWasPostedAfterThem) {
  lose(2);
  receive(0, any, kAnySource);
  EXPECT_EQ(Transport::loss_count(*cluster.endpoints[0]), 1U);
  begin_move();
  arrive();
  EXPECT_FALSE(any.done.done());
  ASSERT_TRUE(cluster.nodes[1]->begin_leave(0));
  cluster.nodes[1]->cancel_leave(0);
  EXPECT_FALSE(any.done.done());
  EXPECT_EQ(Transport::loss_count(*cluster.endpoints[0]), 1U);
  SendRequest sent;
  send(1, sent, 0, {});
  cluster.settle();
  EXPECT_TRUE(any.done.done());
  EXPECT_EQ(any.fault, Fault::none);
}

TEST_F(MovingLosses, OfWhichTheNewNodeHearsLaterEndNothingThatWasPostedAfterThem) {
  cluster.network->sever(0, 2);
  cluster.settle();
  receive(0, any, kAnySource);
  begin_move();
  arrive();
  receive(0, named, 2);
  lose(2);
  EXPECT_TRUE(named.done.done());
  EXPECT_EQ(named.fault, Fault::peer_lost);
  EXPECT_FALSE(any.done.done());
  EXPECT_EQ(Transport::loss_count(*cluster.endpoints[0]), 1U);
  lose(0);  // Which it has left.
  EXPECT_FALSE(any.done.done());
}

/// Rank 1 has moved to node 2, and node 0 does not know it: there rank 0 waits for it.
class LossesBeforeNews : public MovingLosses {
 protected:
  void move(std::uint32_t rank, std::uint32_t to) {
    const std::uint32_t from = cluster.place[rank];
    ASSERT_TRUE(cluster.nodes[from]->begin_leave(rank));
    cluster.nodes[to]->expect(rank);
    cluster.nodes[from]->commit_leave(rank, to);
    cluster.nodes[to]->install(rank, cluster.endpoints[rank]);
    cluster.place[rank] = to;
  }
  void wait_for(std::uint32_t rank) {
    receive(0, named, rank);
    receive(0, any, kAnySource);
    ASSERT_FALSE(cluster.nodes[0]->probe(*cluster.endpoints[0], Pattern{rank, kContext + 1, kTag},
                                         found, &watch));
  }
  void expect_lost(std::uint32_t rank) {
    EXPECT_TRUE(named.done.done());
    EXPECT_EQ(named.fault, Fault::peer_lost);
    EXPECT_TRUE(any.done.done()) << "it may have been the sender";
    EXPECT_TRUE(watch.done.done());
    EXPECT_TRUE(cluster.nodes[0]->is_rank_lost(rank));
    EXPECT_EQ(Transport::loss_count(*cluster.endpoints[0]), 1U);
  }
  /// Of node 2, where no rank is by what node 0 knows.
  void lose_two_as_an_empty_node() {
    move(2, 1);
    cluster.nodes[0]->learn(2, 1, 1);
    lose(2);
    ASSERT_FALSE(named.done.done());
    ASSERT_FALSE(watch.done.done());
  }

  MessageWatch watch;
  Envelope found;
};

TEST_F(LossesBeforeNews, EndWithTheNewsOfTheLauncher) {
  move(1, 2);
  wait_for(1);
  lose_two_as_an_empty_node();
  cluster.nodes[0]->learn(1, 2, 1);
  expect_lost(1);
  cluster.nodes[0]->learn(1, 2, 1);
  EXPECT_EQ(Transport::loss_count(*cluster.endpoints[0]), 1U) << "no news";
}

TEST_F(LossesBeforeNews, EndWithTheNewsOfANodeThatHadTheRank) {
  move(1, 2);
  wait_for(1);
  lose_two_as_an_empty_node();
  const RankPlace place{.rank = 1, .node = 2, .move = 1};
  cluster.nodes[0]->retire(1, std::span{&place, 1});
  expect_lost(1);
}

TEST_F(LossesBeforeNews, EndWithTheAnswerOfWhoShouldForward) {
  move(1, 2);
  wait_for(1);
  lose_two_as_an_empty_node();
  send(0, announced, 1, long_bytes);
  cluster.settle();
  EXPECT_TRUE(announced.done.done());
  EXPECT_EQ(announced.fault, Fault::peer_lost);
  expect_lost(1);
}

TEST_F(LossesBeforeNews, EndWhereTheRankHasLeftForTheNode) {
  wait_for(1);
  // Rank 1 comes to node 0, and leaves for node 2, which is lost meanwhile.
  move(1, 0);
  lose_two_as_an_empty_node();
  ASSERT_TRUE(cluster.nodes[0]->begin_leave(1));
  cluster.nodes[0]->commit_leave(1, 2);
  expect_lost(1);
}

TEST_F(LossesBeforeNews, EndWhereTheRankDoesNotComeFromTheNode) {
  move(1, 2);
  wait_for(1);
  // It is to come from node 2, not from node 1, as node 0 has it.
  cluster.nodes[0]->expect(1);
  lose_two_as_an_empty_node();
  cluster.nodes[0]->unexpect(1, 2);
  expect_lost(1);
}

}  // namespace
}  // namespace sterna::net
