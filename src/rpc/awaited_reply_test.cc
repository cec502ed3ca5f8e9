// Long replies that their services wait for, between the nodes of a simulated network. From one
// kernel thread.
#include <array>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/endpoint.h"
#include "net/simulation/sim_cluster.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kLong = 20'000;
constexpr std::size_t kAnnounced = 300'000;  // It waits at its sender.

Result<Bytes> give_long(void*, const Request&) {
  return Bytes(kLong, std::byte{9});
}

/// A service that replies now. It does not wait: the test sees the end of its reply.
struct Giver {
  Rpc* rpc = nullptr;
  Bytes bytes = Bytes(kAnnounced, std::byte{7});
  AwaitedReply reply;
};

Result<Bytes> give_now(void* its, const Request& request) {
  auto& giver = *static_cast<Giver*>(its);
  giver.rpc->reply_now(request, giver.bytes, giver.reply);
  return Bytes{};  // Dropped.
}

class AwaitedReplyTest : public testing::Test {
 protected:
  AwaitedReplyTest() {
    for (std::uint32_t node = 0; node < 3; ++node) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = cluster.nodes[node].get(),
                                                      .endpoint = cluster.endpoints[node],
                                                      .part_context = 77}));
      rpcs.back()->add_service("give long", RunIn::poll, give_long, nullptr);
      rpcs.back()->add_service("give now", RunIn::poll, give_now, &givers[node]);
      givers[node].rpc = rpcs.back().get();
    }
  }
  /// Nothing waits for anything any more.
  void expect_rest() {
    cluster.settle();
    for (const net::Endpoint* endpoint : cluster.endpoints) {
      EXPECT_EQ(endpoint->message_count, 0U);
      EXPECT_EQ(endpoint->pending_count, 0U);
    }
  }
  net::SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000}, 3};
  std::vector<std::unique_ptr<Rpc>> rpcs;
  std::array<Giver, 3> givers;
};

TEST_F(AwaitedReplyTest, IsTakenFromWhereItLies) {
  PendingCall call;
  rpcs[0]->start(2, "give now", {}, call);
  cluster.settle();
  ASSERT_EQ(call.part_bytes, kAnnounced);
  EXPECT_FALSE(givers[2].reply.done.done());
  const AwaitedReplies awaited = rpcs[2]->awaited_replies();
  EXPECT_EQ(awaited.waiting, 1U);
  const SentRequests before = rpcs[0]->sent_requests();
  Bytes room(kAnnounced);
  net::RecvRequest receive;
  rpcs[0]->receive_reply(call, room, receive);
  EXPECT_NE(rpcs[0]->sent_requests(), before);
  cluster.settle();
  ASSERT_TRUE(receive.done.done() && givers[2].reply.done.done());
  EXPECT_EQ(rpcs[2]->await(givers[2].reply), net::Fault::none);
  EXPECT_EQ(room, givers[2].bytes);
  EXPECT_EQ(rpcs[2]->awaited_replies(), (AwaitedReplies{.waiting = 0, .given = awaited.given}));
  expect_rest();
}

TEST_F(AwaitedReplyTest, ThatNobodyWillTakeIsTakenBack) {
  for (const std::uint32_t node : {0, 1}) {  // Of its own node, and of another one.
    Giver& giver = givers[1];
    const AwaitedReplies before = rpcs[1]->awaited_replies();
    const SentRequests sent_before = rpcs[1]->sent_requests();
    PendingCall call;
    PendingCall forgotten;
    rpcs[node]->start(1, "give now", {}, call);
    rpcs[node]->start(1, "give long", {}, forgotten);
    cluster.settle();
    EXPECT_NE(rpcs[1]->sent_requests(), sent_before);
    rpcs[1]->withdraw_awaited(before);  // It came later.
    cluster.settle();
    EXPECT_FALSE(giver.reply.done.done());
    const AwaitedReplies awaited = rpcs[1]->awaited_replies();
    EXPECT_EQ(awaited.waiting, 1U);
    rpcs[1]->withdraw_awaited(awaited);
    EXPECT_EQ(rpcs[1]->awaited_replies().waiting, 0U) << "before its service goes on";
    rpcs[1]->withdraw_awaited(awaited);
    cluster.settle();
    ASSERT_TRUE(giver.reply.done.done());
    EXPECT_EQ(rpcs[1]->await(giver.reply), net::Fault::cancelled);
    // Who takes it after all hears of it, and what nobody waits for is as it was.
    Bytes room(kLong);
    net::RecvRequest receive;
    rpcs[node]->receive_reply(call, room, receive);
    cluster.settle();
    ASSERT_TRUE(receive.done.done());
    EXPECT_EQ(receive.envelope.bytes, 0U);
    net::RecvRequest second;
    rpcs[node]->receive_reply(forgotten, room, second);
    cluster.settle();
    ASSERT_TRUE(second.done.done());
    EXPECT_EQ(room, Bytes(kLong, std::byte{9}));
    EXPECT_EQ(rpcs[1]->loose_part_count(), 0U);
    expect_rest();
  }
}

}  // namespace
}  // namespace sterna::rpc
