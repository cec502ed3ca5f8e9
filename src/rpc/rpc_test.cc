// Calls between the nodes of a simulated network, from one kernel thread: start and post, errors,
// lost nodes.
#include "rpc/rpc.h"

#include <gtest/gtest.h>

#include "net/sim_cluster.h"

namespace sterna::rpc {
namespace {

Result<Bytes> twice(void* context, const Request& request) {
  ++*static_cast<int*>(context);
  Bytes reply{request.arguments.begin(), request.arguments.end()};
  reply.insert(reply.end(), request.arguments.begin(), request.arguments.end());
  return reply;
}

Result<Bytes> fail(void*, const Request& request) {
  return Error{Errc::refused, "not for node " + std::to_string(request.from_node)};
}

class Calls : public testing::Test {
 protected:
  Calls() {
    for (const auto& node : cluster.nodes) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = node.get()}));
      rpcs.back()->add_service("twice", RunIn::poll, twice, &served);
      rpcs.back()->add_service("fail", RunIn::poll, fail, nullptr);
    }
  }
  const Bytes text{std::byte{1}, std::byte{2}, std::byte{3}};
  int served = 0;
  net::SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000}, 3};
  std::vector<std::unique_ptr<Rpc>> rpcs;
};

TEST_F(Calls, BringTheReplyOfTheService) {
  PendingCall other;
  PendingCall itself;
  rpcs[0]->start(2, "twice", text, other);
  rpcs[0]->start(0, "twice", text, itself);
  EXPECT_FALSE(other.done.done());
  cluster.settle();
  for (PendingCall* call : {&other, &itself}) {
    ASSERT_TRUE(call->done.done());
    ASSERT_TRUE(call->reply.has_value());
    EXPECT_EQ(call->reply.value().size(), 6U);
  }
}

TEST_F(Calls, BringTheErrorOfTheServiceWithItsText) {
  PendingCall call;
  rpcs[1]->start(2, "fail", text, call);
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  ASSERT_FALSE(call.reply.has_value());
  EXPECT_EQ(call.reply.error().code, Errc::refused);
  EXPECT_EQ(call.reply.error().text, "not for node 1");
}

TEST_F(Calls, SayThatThereIsNoSuchService) {
  PendingCall call;
  rpcs[0]->start(1, "nothing of this name", text, call);
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  ASSERT_FALSE(call.reply.has_value());
  EXPECT_EQ(call.reply.error().code, Errc::unsupported);
}

TEST_F(Calls, WithoutReplyAreServedOnce) {
  ASSERT_TRUE(rpcs[0]->post(1, "twice", text).has_value());
  cluster.settle();
  EXPECT_EQ(served, 1);
}

TEST_F(Calls, ToALostNodeEndAtOnceAndALateReplyChangesNothing) {
  PendingCall under_way;
  rpcs[0]->start(1, "twice", text, under_way);
  rpcs[0]->lose_peer(1);
  ASSERT_TRUE(under_way.done.done());
  ASSERT_FALSE(under_way.reply.has_value());
  EXPECT_EQ(under_way.reply.error().code, Errc::closed);
  cluster.settle();  // The reply comes all the same.
  EXPECT_FALSE(under_way.reply.has_value());
  PendingCall later;
  rpcs[0]->start(1, "twice", text, later);
  ASSERT_TRUE(later.done.done());
  EXPECT_EQ(later.reply.error().code, Errc::closed);
  PendingCall other;
  rpcs[0]->start(2, "twice", text, other);
  cluster.settle();
  EXPECT_TRUE(other.reply.has_value());
}

}  // namespace
}  // namespace sterna::rpc
