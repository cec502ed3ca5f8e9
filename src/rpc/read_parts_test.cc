// Long pieces of arguments that the node reads where they lie, between the nodes of a simulated
// network that copy directly; also where that fails. From one kernel thread.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "net/endpoint.h"
#include "net/simulation/sim_cluster.h"
#include "rpc/filled.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kLong = 70'000;

/// The arguments, seen by the poll, are what the test expects.
Result<Bytes> compare(void* expected, const Request& request) {
  EXPECT_TRUE(request.is_in_poll);
  EXPECT_TRUE(std::ranges::equal(request.arguments, *static_cast<const Bytes*>(expected)));
  return filled(3);
}

class ReadParts : public testing::Test {
 protected:
  ReadParts() {
    for (std::uint32_t node = 0; node < 3; ++node) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = cluster.nodes[node].get(),
                                                      .endpoint = cluster.endpoints[node],
                                                      .part_context = 77}));
      rpcs.back()->add_service("compare", RunIn::poll, compare, &all);
    }
    // The first ones are sent whatever is better.
    for (int i = 0; i < 8; ++i) {
      (void)cluster.nodes[0]->are_better_read(1, kLong, kLong);
    }
  }
  /// One long piece before each byte of `offsets` of five short ones.
  void make(const std::vector<std::size_t>& offsets) {
    const Bytes shorts = filled(5, 7);
    all.clear();
    parts = std::vector<OutPart>(offsets.size());
    pieces.resize(offsets.size());
    std::size_t place = 0;
    const auto add = [&](std::span<const std::byte> bytes) {
      all.insert(all.end(), bytes.begin(), bytes.end());
    };
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      pieces[i] = filled(kLong + i, static_cast<unsigned>(i));
      add(std::span{shorts}.subspan(place, offsets[i] - place));
      add(pieces[i]);
      place = offsets[i];
      parts[i].part = {.offset = static_cast<std::uint32_t>(place), .bytes = pieces[i].size()};
      parts[i].data = pieces[i].data();
    }
    add(std::span{shorts}.subspan(place));
  }
  void start(PendingCall& call, std::string_view service = "compare", std::uint32_t to = 1) {
    rpcs[0]->start(to, service_number(service), filled(5, 7), call,
                   {.parts = parts, .are_parts_kept = true});
  }
  /// How many messages node 0 has announced or sent eagerly since the last time.
  std::uint64_t sent() {
    const net::TransportStatistics now = cluster.nodes[0]->statistics();
    const std::uint64_t count = now.messages_eager + now.messages_rendezvous;
    return count - std::exchange(sent_before, count);
  }
  void expect_rest() {
    cluster.settle();
    for (std::uint32_t node = 0; node < 3; ++node) {
      EXPECT_EQ(cluster.endpoints[node]->message_count, 0U);
      EXPECT_EQ(cluster.endpoints[node]->pending_count, 0U);
      EXPECT_EQ(rpcs[node]->loose_part_count(), 0U);
    }
  }

  net::SimCluster cluster{{.node_count = 3, .delay_ns_max = 3000, .has_direct = true}, 3};
  Bytes all;  // As the service sees them.
  std::vector<Bytes> pieces;
  std::vector<OutPart> parts;
  std::vector<std::unique_ptr<Rpc>> rpcs;
  std::uint64_t sent_before = 0;
};

TEST_F(ReadParts, AreThereWhenAQuickServiceBeginsInThePoll) {
  for (const std::vector<std::size_t>& offsets :
       {std::vector<std::size_t>{0}, {5}, {2, 2}, {0, 3, 5}}) {
    make(offsets);
    PendingCall call;
    start(call);
    for (const OutPart& part : parts) {
      EXPECT_TRUE(part.send.done.done()) << "nothing is sent";
    }
    cluster.settle();
    ASSERT_TRUE(call.done.done());
    EXPECT_EQ(call.reply.value(), filled(3));
    EXPECT_EQ(sent(), 0U);
    expect_rest();
  }
}

TEST_F(ReadParts, AreSentNowAndThenSoThatItIsKnownWhatThatCosts) {
  int sent_count = 0;
  for (int i = 0; i < 640; ++i) {
    sent_count += cluster.nodes[0]->are_better_read(1, kLong, kLong) ? 0 : 1;
  }
  EXPECT_EQ(sent_count, 10);
  EXPECT_FALSE(cluster.nodes[0]->are_better_read(1, 100, 100)) << "so few go with the request";
  EXPECT_FALSE(cluster.nodes[0]->are_better_read(1, kLong, 100));
  EXPECT_FALSE(cluster.nodes[0]->are_better_read(1, 1 << 20, 1 << 20)) << "so many take turns";
}

TEST_F(ReadParts, AreSentWhereTheirMemoryDoesNotStay) {
  make({3});
  PendingCall call;
  rpcs[0]->start(1, service_number("compare"), filled(5, 7), call, {.parts = parts});
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  EXPECT_EQ(sent(), 1U);
  expect_rest();
}

// The first, one in the midst, the last.
TEST_F(ReadParts, ThatCannotBeReadAreSentAfterAll) {
  for (std::uint32_t read = 0; read < 3; ++read) {
    make({0, 3, 5});
    PendingCall call;
    start(call);
    // Whatever fails, all are put together anew.
    cluster.network->refuse_read(read);
    cluster.settle();
    ASSERT_TRUE(call.done.done());
    EXPECT_EQ(call.reply.value(), filled(3));
    EXPECT_EQ(sent(), 3U);
    EXPECT_TRUE(
        std::ranges::all_of(parts, [](const OutPart& part) { return part.send.done.done(); }));
    expect_rest();
  }
}

TEST_F(ReadParts, OfWhomTheNodeHasNoServiceAreTheCallersAgain) {
  make({3});
  PendingCall call;
  start(call, "nothing");
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  EXPECT_EQ(call.reply.error().code, Errc::unsupported);
  EXPECT_EQ(sent(), 0U);
  expect_rest();
}

TEST_F(ReadParts, OfALostNodeAreTheCallersAgain) {
  make({3});
  PendingCall call;
  start(call);
  cluster.nodes[0]->lose_peer(1, "killed");
  rpcs[0]->lose_peer(1);
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  EXPECT_EQ(call.reply.error().code, Errc::closed);
  PendingCall late;
  start(late);
  EXPECT_TRUE(late.done.done());
  EXPECT_TRUE(parts.front().send.done.done());
}

// Of whom the call is not made, beyond its pieces, twice, of a call that is over.
TEST_F(ReadParts, ThatAreWantedByMistakeAreNotSent) {
  make({3});
  PendingCall call;
  start(call);
  const auto want = [&](std::uint32_t node, std::uint64_t id, std::uint32_t first) {
    Message message{.kind = MessageKind::wanted, .reply_to = {.id = id}};
    message.number = first;
    const MessageHead head{message};
    ASSERT_TRUE(cluster.nodes[node]->node_message(0, kNodeHandler, head.bytes()));
  };
  want(2, call.id, 0);
  want(1, call.id, 1);
  want(1, call.id + 1, 0);
  cluster.settle();
  ASSERT_TRUE(call.done.done());
  want(1, call.id, 0);
  cluster.settle();
  EXPECT_EQ(sent(), 0U);
  expect_rest();
}

}  // namespace
}  // namespace sterna::rpc
