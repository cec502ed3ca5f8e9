// Long replies, and completions, between the nodes of a simulated network that are ranks; a
// completion of a rank that moves. From one kernel thread.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "memory/iso_space.h"
#include "net/endpoint.h"
#include "net/simulation/sim_cluster.h"
#include "rpc/filled.h"
#include "rpc/rank_call.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kLong = 20'000;

Result<Bytes> give_long(void*, const Request&) {
  return filled(kLong);
}

Result<Bytes> echo(void*, const Request& request) {
  EXPECT_TRUE(request.is_in_poll);
  return Bytes{request.arguments.begin(), request.arguments.end()};
}

class Parts : public testing::Test {
 protected:
  Parts() {
    for (std::uint32_t node = 0; node < 3; ++node) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = cluster.nodes[node].get(),
                                                      .endpoint = cluster.endpoints[node],
                                                      .part_context = 77}));
      rpcs.back()->add_service("give long", RunIn::poll, give_long, nullptr);
      rpcs.back()->add_service("echo", RunIn::poll, echo, nullptr);
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
};

TEST_F(Parts, OfAReplyGoWhereTheCallerWantsThem) {
  PendingCall call;
  rpcs[0]->start(2, "give long", {}, call);
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  ASSERT_EQ(call.part_bytes, kLong);
  Bytes room(kLong);
  net::RecvRequest receive;
  rpcs[0]->receive_reply(call, room, receive);
  cluster.settle();
  ASSERT_TRUE(receive.done.done());
  EXPECT_EQ(room, filled(kLong));
  expect_rest();
}

TEST_F(Parts, ThatNobodyWantsEndAtTheirSender) {
  PendingCall unwanted;
  PendingCall late;
  rpcs[0]->start(2, "give long", {}, unwanted);
  rpcs[0]->start(1, "give long", {}, late);
  rpcs[0]->withdraw(late, {Errc::timed_out, "no time"});
  EXPECT_EQ(late.reply.error().code, Errc::timed_out);
  cluster.settle();
  rpcs[0]->drop_reply(unwanted);
  expect_rest();
}

TEST_F(Parts, OfRepliesThatNobodyWillTakeAreTakenBack) {
  std::array<PendingCall, 3> calls;
  rpcs[0]->start(2, "give long", {}, calls[0]);
  rpcs[1]->start(2, "give long", {}, calls[1]);
  rpcs[2]->start(2, "give long", {}, calls[2]);  // Of the own node as well.
  cluster.settle();
  EXPECT_NE(rpcs[2]->loose_part_count(), 0U);
  rpcs[2]->withdraw_replies();
  rpcs[2]->withdraw_replies();  // Those that end meanwhile are left.
  cluster.settle();
  EXPECT_EQ(rpcs[2]->loose_part_count(), 0U);  // What has gone already lies at its receivers.
}

TEST_F(Parts, SentRequestsChangeWithEachOfThem) {
  const SentRequests before = rpcs[0]->sent_requests();
  EXPECT_EQ(before, rpcs[0]->sent_requests());
  ASSERT_TRUE(rpcs[0]->post(1, "echo", {}));
  const SentRequests posted = rpcs[0]->sent_requests();
  EXPECT_NE(posted, before);
  PendingCall call;
  rpcs[0]->start(1, "echo", {}, call);
  EXPECT_NE(rpcs[0]->sent_requests(), posted);
  cluster.settle();
  EXPECT_FALSE(rpcs[1]->has_unbegun());
  expect_rest();
}

TEST_F(Parts, OfARequestAreDroppedWhereThereIsNoService) {
  const Bytes data = filled(kLong);
  OutPart part{.part = {.offset = 2, .bytes = kLong}, .data = data.data(), .send = {}};
  PendingCall call;
  rpcs[0]->start(1, service_number("nothing"), std::span{data}.first(4), call,
                 {.parts = {&part, 1}});
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  EXPECT_EQ(call.reply.error().code, Errc::unsupported);
  EXPECT_TRUE(part.send.done.done());
  expect_rest();
}

/// Long pieces after so many bytes of the short ones each, in their order.
struct Pieces {
  explicit Pieces(const std::vector<std::pair<std::size_t, std::size_t>>& offsets_and_bytes)
      : parts{offsets_and_bytes.size()} {
    const auto add = [this](std::span<const std::byte> bytes) {
      all.insert(all.end(), bytes.begin(), bytes.end());
    };
    const std::span shorts{short_ones};
    std::size_t place = 0;
    long_ones.reserve(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto [offset, bytes] = offsets_and_bytes[i];
      add(shorts.subspan(place, offset - place));
      add(long_ones.emplace_back(filled(bytes)));
      place = offset;
      parts[i].part.offset = static_cast<std::uint32_t>(offset);
      parts[i].part.bytes = bytes;
      parts[i].data = long_ones.back().data();
    }
    add(shorts.subspan(place));
  }
  [[nodiscard]] bool are_sent() const {
    return std::ranges::all_of(parts, [](const OutPart& part) { return part.send.done.done(); });
  }
  Bytes short_ones = filled(9);
  std::vector<Bytes> long_ones;
  std::vector<OutPart> parts;
  Bytes all;  // As its service sees them.
};

TEST_F(Parts, ForAQuickServiceArePutTogetherByThePoll) {
  for (const auto& which : std::vector<std::vector<std::pair<std::size_t, std::size_t>>>{
           {{0, 10'000}}, {{9, 10'000}}, {{2, kLong}, {2, 9'000}, {9, 30'000}}}) {
    Pieces pieces{which};
    PendingCall call;
    rpcs[0]->start(1, service_number("echo"), pieces.short_ones, call, {.parts = pieces.parts});
    cluster.settle();
    ASSERT_TRUE(call.done.done());
    ASSERT_EQ(call.part_bytes, pieces.all.size());
    Bytes room(pieces.all.size());
    net::RecvRequest receive;
    rpcs[0]->receive_reply(call, room, receive);
    cluster.settle();
    ASSERT_TRUE(receive.done.done());
    EXPECT_EQ(room, pieces.all);
    EXPECT_TRUE(pieces.are_sent());
    expect_rest();
  }
}

TEST_F(Parts, OfSeveralCallsForAQuickServiceAreNotMistaken) {
  constexpr std::size_t kCalls = 20;
  std::vector<std::unique_ptr<Pieces>> pieces;
  std::vector<PendingCall> calls(kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    pieces.push_back(std::make_unique<Pieces>(
        std::vector<std::pair<std::size_t, std::size_t>>{{i % 9, 9'000 + i}, {9, 12'000 - i}}));
    rpcs[i % 2]->start(2, service_number("echo"), pieces[i]->short_ones, calls[i],
                       {.parts = pieces[i]->parts});
  }
  cluster.settle();
  for (std::size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(calls[i].done.done());
    Bytes room(pieces[i]->all.size());
    ASSERT_EQ(calls[i].part_bytes, room.size());
    net::RecvRequest receive;
    rpcs[i % 2]->receive_reply(calls[i], room, receive);
    cluster.settle();
    ASSERT_TRUE(receive.done.done());
    EXPECT_EQ(room, pieces[i]->all);
  }
  expect_rest();
}

TEST_F(Parts, WhoseCallerIsLostBeforeTheyComeAreGivenUp) {
  Pieces pieces{{{0, kLong}, {9, kLong}}};
  PendingCall call;
  rpcs[0]->start(1, service_number("echo"), pieces.short_ones, call, {.parts = pieces.parts});
  // Its request comes, and what it promised does not.
  for (int i = 0; i < 1000 && rpcs[1]->loose_part_count() == 0; ++i) {
    cluster.clock.advance(100);
    (void)cluster.poll();
  }
  ASSERT_EQ(rpcs[1]->loose_part_count(), 1U);
  cluster.nodes[1]->lose_peer(0, "killed");
  for (int i = 0; i < 100 && rpcs[1]->loose_part_count() != 0; ++i) {
    cluster.clock.advance(100);
    (void)cluster.nodes[1]->poll();
  }
  EXPECT_EQ(rpcs[1]->loose_part_count(), 0U);
  EXPECT_EQ(cluster.endpoints[1]->message_count, 0U);
  cluster.nodes[0]->lose_peer(1, "killed");
  rpcs[0]->lose_peer(1);
  cluster.settle();
  EXPECT_TRUE(call.done.done());
}

TEST_F(Parts, ToALostNodeAreTheCallersAgain) {
  const Bytes data = filled(kLong);
  OutPart part{.part = {.bytes = kLong}, .data = data.data(), .send = {}};
  PendingCall call;
  rpcs[0]->lose_peer(1);
  rpcs[0]->start(1, service_number("give long"), {}, call, {.parts = {&part, 1}});
  EXPECT_EQ(call.reply.error().code, Errc::closed);
  EXPECT_TRUE(part.send.done.done());
}

TEST_F(Parts, CompletionsAreSignalledOnceByWhoeverHasTheirToken) {
  PendingCall call;
  const ReplyTo token = rpcs[0]->expect(call);
  ASSERT_TRUE(rpcs[2]->signal(token, {.reply = filled(5)}));
  ASSERT_TRUE(rpcs[1]->signal(token, {.reply = filled(5)}));
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  EXPECT_EQ(call.reply.value(), filled(5));
  const ReplyTo next = rpcs[0]->expect(call);  // In the same slot, with another number.
  ASSERT_TRUE(rpcs[1]->signal(token, {.reply = filled(kLong)}));
  cluster.settle();
  EXPECT_FALSE(call.done.done());
  ASSERT_TRUE(rpcs[1]->signal(next, {.reply = Error{Errc::refused, "no"}}));
  expect_rest();
  EXPECT_EQ(call.reply.error().text, "no");
}

TEST_F(Parts, CompletionsEndWithTheNodeThatWouldSignal) {
  PendingCall of_node;
  PendingCall of_any;
  (void)rpcs[0]->expect(of_node, 2);
  (void)rpcs[0]->expect(of_any);
  rpcs[0]->lose_peer(2);
  ASSERT_TRUE(of_node.done.done());
  EXPECT_EQ(of_node.reply.error().code, Errc::closed);
  EXPECT_FALSE(of_any.done.done());
  rpcs[0]->withdraw(of_any, {Errc::closed, {}});
  EXPECT_EQ(rpcs[0]->expect(of_node, 2).id, 0U);
}

/// Rank 0, which waits for a signal in its system heap, and moves.
class RankCompletions : public Parts {
 protected:
  RankCompletions() {
    auto opened = memory::IsoSpace::open({.rank_count = 64});
    check(opened.has_value(), "the slots of ranks have room");
    space = std::move(opened.value());
    slot = space->map_rank(0, {}).value();
    call = new (slot->system_heap->allocate(sizeof(RankCall))) RankCall{*slot};
  }
  [[nodiscard]] Rpc& here() { return *rpcs[cluster.place[0]]; }
  void move(std::uint32_t to) {
    net::Transport& source = cluster.node_of(0);
    ASSERT_TRUE(source.begin_leave(0).has_value());
    cluster.nodes[to]->expect(0);
    source.commit_leave(0, to);
    cluster.poll();
    cluster.nodes[to]->install(0, cluster.endpoints[0]);
    cluster.place[0] = to;
  }
  /// Twice, when so many polls have passed.
  void move_after(std::uint32_t polls) {
    for (std::uint32_t i = 0; i < polls; ++i) {
      cluster.poll();
      cluster.clock.advance(200);
    }
    move((cluster.place[0] + 1) % 3);
    cluster.poll();
    move((cluster.place[0] + 1) % 3);
    cluster.settle();
  }
  std::unique_ptr<memory::IsoSpace> space;
  memory::RankSlot* slot = nullptr;
  RankCall* call = nullptr;
};

TEST_F(RankCompletions, FindTheRankAtEachMomentOfItsMoves) {
  for (std::uint32_t polls = 0; polls < 40; ++polls) {
    const ReplyTo token = here().expect(*call);
    ASSERT_TRUE(rpcs[polls % 3]->signal(token, {.reply = filled(10'000)}));
    move_after(polls);
    ASSERT_TRUE(call->done()) << polls;
    EXPECT_EQ(here().take(*call).value(), filled(10'000));
  }
}

TEST_F(RankCompletions, ThatAreSignalledTwiceHaveOneOfThePayloadsWhole) {
  const Bytes one = filled(10'000);
  const Bytes other(10'000, std::byte{9});
  for (std::uint32_t polls = 0; polls < 40; ++polls) {
    const ReplyTo token = here().expect(*call);
    ASSERT_TRUE(rpcs[polls % 3]->signal(token, {.reply = one}));
    ASSERT_TRUE(rpcs[(polls + polls / 3) % 3]->signal(token, {.reply = other}));
    move_after(polls);
    ASSERT_TRUE(call->done()) << polls;
    const Bytes got = here().take(*call).value();
    EXPECT_TRUE(got == one || got == other) << polls;
  }
}

}  // namespace
}  // namespace sterna::rpc
