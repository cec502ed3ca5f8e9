// Calls between the nodes of a simulated network, from one kernel thread: start and post, errors,
// lost nodes, ranks that move while they wait for a reply.
#include "rpc/rpc.h"

#include <algorithm>
#include <new>

#include <gtest/gtest.h>

#include "memory/iso_space.h"
#include "net/simulation/sim_cluster.h"
#include "rpc/handlers.h"
#include "rpc/rank_call.h"

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

Result<Bytes> want_too_much(void*, const Request&) {
  throw std::bad_alloc{};
}

class Calls : public testing::Test {
 protected:
  Calls() {
    for (const auto& node : cluster.nodes) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = node.get()}));
      rpcs.back()->add_service("twice", RunIn::poll, twice, &served);
      rpcs.back()->add_service("fail", RunIn::poll, fail, nullptr);
      rpcs.back()->add_service("want too much", RunIn::poll, want_too_much, nullptr);
    }
  }
  const Bytes text{std::byte{1}, std::byte{2}, std::byte{3}};
  int served = 0;
  net::SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000}, 3};
  std::vector<std::unique_ptr<Rpc>> rpcs;
};

TEST(PlainHeads, AreThoseOfMessagesWithNothingMoreToSay) {
  const Message request{.kind = MessageKind::request, .service = 77, .reply_to = {.id = 5}};
  const Message reply{.kind = MessageKind::reply, .reply_to = {.id = 6}};
  const auto is_same = [](const PlainHead& plain, const Message& message) {
    const MessageHead head{message};
    const PlainHead back = PlainHead::of(head.bytes());
    return std::ranges::equal(plain.bytes(), head.bytes()) &&
           std::ranges::equal(back.bytes(), head.bytes()) && back.id() == message.reply_to.id;
  };
  EXPECT_TRUE(is_same(PlainHead::of_request(5, 77), request));
  EXPECT_TRUE(is_same(PlainHead::of_reply(6), reply));
  EXPECT_EQ(PlainHead::of(MessageHead{request}.bytes()).service(), 77U);

  Message more = request;
  more.wish.stack_kib = 1;
  EXPECT_TRUE(PlainHead::of(MessageHead{more}.bytes()).bytes().empty());
  more = reply;
  more.status = 1;
  EXPECT_TRUE(PlainHead::of(MessageHead{more}.bytes()).bytes().empty());
  more = {.kind = MessageKind::error, .reply_to = {.id = 6}};
  EXPECT_TRUE(PlainHead::of(MessageHead{more}.bytes()).bytes().empty());
  const MessageHead whole{request};
  for (std::size_t bytes = 0; bytes < whole.bytes().size(); ++bytes) {
    EXPECT_TRUE(PlainHead::of(whole.bytes().first(bytes)).bytes().empty()) << bytes;
  }
}

TEST(MessageHeads, OfManyPartsAndLongTextsComeBackWhole) {
  for (const std::uint32_t count : {1U, 9U, 12U, kPartsMax}) {
    std::vector<Part> parts(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      parts[i] = {.offset = 0, .bytes = 9000 + i};
    }
    const Message sent{
        .service = 77, .reply_to = {.id = 5}, .wish = {.priority = 3}, .number = 4, .parts = parts};
    const MessageHead head{sent};
    Message message;
    ASSERT_TRUE(decode(head.bytes(), message)) << count;
    EXPECT_EQ(message.service, 77U);
    EXPECT_EQ(message.number, 4U);
    ASSERT_EQ(message.part_count, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(part_of(message, i).bytes, 9000 + i);
    }
  }
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{128}, kErrorTextBytesMax}) {
    const std::string text(bytes, 't');
    const MessageHead head{
        {.kind = MessageKind::reply, .reply_to = {.id = 6}, .status = 1, .text = text}};
    Message message;
    ASSERT_TRUE(decode(head.bytes(), message)) << bytes;
    EXPECT_EQ(message.text, text);
  }
}

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

TEST_F(Calls, EndWithAnErrorWhereThereIsNoMemoryForTheService) {
  PendingCall call;
  rpcs[1]->start(2, "want too much", text, call);
  ASSERT_TRUE(rpcs[1]->post(2, "want too much", text).has_value());
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  ASSERT_FALSE(call.reply.has_value());
  EXPECT_EQ(call.reply.error().code, Errc::out_of_memory);
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

/// Rank 0 starts on node 0 and makes its calls in the system heap of its slot.
class RankCalls : public Calls {
 protected:
  RankCalls() {
    auto opened = memory::IsoSpace::open({.rank_count = 64});
    check(opened.has_value(), "the slots of ranks have room");
    space = std::move(opened.value());
    slot = space->map_rank(0, {}).value();
    call = new (slot->system_heap->allocate(sizeof(RankCall))) RankCall{*slot};
  }
  void move(std::uint32_t to) {
    net::Transport& source = cluster.node_of(0);
    ASSERT_TRUE(source.begin_leave(0).has_value());
    cluster.nodes[to]->expect(0);
    source.commit_leave(0, to);
    cluster.poll();  // Notes on their way are forwarded, or held.
    cluster.nodes[to]->install(0, cluster.endpoints[0]);
    cluster.place[0] = to;
  }
  void expect_twice(Result<Bytes> reply, std::size_t bytes) {
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply.value().size(), 2 * bytes);
    EXPECT_TRUE(std::ranges::all_of(reply.value(), [](std::byte b) { return b == std::byte{7}; }));
  }
  std::unique_ptr<memory::IsoSpace> space;
  memory::RankSlot* slot = nullptr;
  RankCall* call = nullptr;
};

TEST_F(RankCalls, FindTheRankThatMovedBeforeTheRequestArrived) {
  const Bytes sent(3, std::byte{7});
  ASSERT_TRUE(rpcs[0]->start(2, "twice", sent, *call).has_value());
  move(1);
  EXPECT_FALSE(call->done());
  cluster.settle();
  ASSERT_TRUE(call->done());
  expect_twice(rpcs[1]->take(*call), sent.size());
}

TEST_F(RankCalls, FindTheRankAtEachMomentOfItsMoves) {
  // Of several notes each: some come to the old node, some while the rank is away, some to the new.
  const Bytes sent(10'000, std::byte{7});
  for (int polls = 0; polls < 40; ++polls) {
    ASSERT_TRUE(rpcs[cluster.place[0]]->start(2, "twice", sent, *call).has_value());
    for (int i = 0; i < polls; ++i) {
      cluster.poll();
      cluster.clock.advance(200);
    }
    move((cluster.place[0] + 1) % 3);
    cluster.poll();
    move((cluster.place[0] + 1) % 3);
    cluster.settle();
    ASSERT_TRUE(call->done()) << polls;
    expect_twice(rpcs[cluster.place[0]]->take(*call), sent.size());
  }
  EXPECT_EQ(served, 40);
}

TEST_F(RankCalls, BringTheErrorOfTheServiceWithItsText) {
  ASSERT_TRUE(rpcs[0]->start(1, "fail", text, *call).has_value());
  cluster.settle();
  const auto reply = rpcs[0]->take(*call);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().text, "not for node 0");
}

TEST_F(RankCalls, TakenBeforeTheReplyTakeNothingOfIt) {
  const Bytes sent(5000, std::byte{7});
  ASSERT_TRUE(rpcs[0]->start(2, "twice", sent, *call).has_value());
  auto early = rpcs[0]->take(*call);
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code, Errc::timed_out);
  // The same memory, another call: the first reply is not its reply.
  ASSERT_TRUE(rpcs[0]->start(1, "fail", text, *call).has_value());
  cluster.settle();
  EXPECT_EQ(rpcs[0]->take(*call).error().code, Errc::refused);
  EXPECT_EQ(served, 1);
}

TEST_F(RankCalls, ToANodeThatIsLostSaySoWhereverTheRankIs) {
  ASSERT_TRUE(rpcs[0]->start(2, "twice", text, *call).has_value());
  move(1);
  rpcs[1]->lose_peer(2);
  EXPECT_TRUE(rpcs[1]->wait(*call, {.deadline_ns = 0}));
  EXPECT_EQ(rpcs[1]->take(*call).error().code, Errc::closed);
}

TEST_F(RankCalls, NotesOfStrangersChangeNothing) {
  ASSERT_TRUE(rpcs[0]->start(2, "twice", text, *call).has_value());
  for (const std::uint64_t address :
       {std::uint64_t{0}, ~std::uint64_t{0}, reinterpret_cast<std::uint64_t>(call),
        reinterpret_cast<std::uint64_t>(call) + 1, reinterpret_cast<std::uint64_t>(slot),
        std::uint64_t{slot->stack.base - 8},
        std::uint64_t{slot->stack.base + slot->stack.bytes - 8},
        std::uint64_t{slot->system_heap_region.base + slot->system_heap_region.bytes_max - 8}}) {
    std::vector<std::byte> note;
    wire::Writer writer{note, 64};
    writer.u64(address);
    writer.u64(1);  // No cookie of ours, but with luck.
    writer.u64(0);
    writer.boolean(false);
    writer.u32(0);
    writer.u32(4);
    writer.blob(std::span{text}.first(3));
    cluster.nodes[1]->rank_message(0, kRankHandler, note);
    cluster.nodes[1]->rank_message(0, kRankHandler, std::span{note}.first(note.size() - 1));
  }
  cluster.settle();
  ASSERT_TRUE(call->done());
  EXPECT_EQ(rpcs[0]->take(*call).value().size(), 6U);
}

}  // namespace
}  // namespace sterna::rpc
