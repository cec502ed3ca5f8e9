// What the contract of Transport says, case by case: between ranks of one node, of two nodes over
// packets, and of two nodes with direct copies.
#include "net/transport.h"

#include <numeric>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

using State = RecvRequest::State;

struct Way {
  const char* name;
  std::uint32_t node_count;
  bool has_direct;
  bool is_ordered;
  bool is_awaited = false;
};

class TransportWays : public testing::TestWithParam<Way> {
 protected:
  SimCluster cluster_{{.node_count = GetParam().node_count,
                       .delay_ns_max = 1000,
                       .is_ordered = GetParam().is_ordered,
                       .has_direct = GetParam().has_direct,
                       .packet_bytes_max = 512},
                      4};

  // Between ranks 0 and 1: of one node, or of two.
  void send(SendRequest& request, const std::vector<char>& bytes, std::int32_t tag = 7,
            SendMode mode = SendMode::standard) {
    request.is_awaited = GetParam().is_awaited;
    cluster_.node_of(0).send(*cluster_.endpoints[0], request, {1, 5, tag},
                             Buffer::of(bytes.data(), bytes.size()), mode);
  }
  void receive(RecvRequest& request, std::vector<char>& bytes, std::uint32_t source = 0,
               std::int32_t tag = 7) {
    cluster_.node_of(1).receive(*cluster_.endpoints[1], request, {source, 5, tag},
                                Buffer::of(bytes.data(), bytes.size()));
  }
  static std::vector<char> pattern(std::size_t bytes, char first = 0) {
    std::vector<char> result(bytes);
    std::iota(result.begin(), result.end(), first);
    return result;
  }
};

TEST_P(TransportWays, MessagesOfAllSizesArriveWholePostedOrNot) {
  for (const std::size_t bytes : {0, 1, 8, 63, 464, 465, 1000, 5000, 17000, 100'000, 3'000'000}) {
    for (const bool is_posted_first : {true, false}) {
      const std::vector<char> sent = pattern(bytes);
      std::vector<char> got(bytes);
      SendRequest send_request;
      RecvRequest receive_request;
      if (is_posted_first) {
        receive(receive_request, got);
        cluster_.settle();
        EXPECT_FALSE(receive_request.done.done());
        send(send_request, sent);
      } else {
        send(send_request, sent);
        cluster_.settle();
        receive(receive_request, got);
      }
      cluster_.settle();
      ASSERT_TRUE(send_request.done.done()) << bytes;
      ASSERT_TRUE(receive_request.done.done()) << bytes;
      EXPECT_EQ(send_request.fault, Fault::none);
      EXPECT_EQ(receive_request.fault, Fault::none);
      EXPECT_EQ(receive_request.envelope.bytes, bytes);
      EXPECT_EQ(receive_request.envelope.source, 0U);
      EXPECT_EQ(receive_request.envelope.tag, 7);
      EXPECT_TRUE(sent == got) << bytes;
    }
  }
}

TEST_P(TransportWays, ExtentsOnBothSidesAreFilledInOrder) {
  for (const std::size_t bytes : {600, 60'000}) {
    std::vector<char> sent = pattern(bytes);
    std::vector<char> got(bytes);
    std::vector<Extent> from;
    std::vector<Extent> to;
    for (std::size_t at = 0; at < bytes; at += 100) {
      from.push_back({reinterpret_cast<std::byte*>(sent.data()) + at, 100});
    }
    for (std::size_t at = 0; at < bytes; at += 150) {
      to.push_back({reinterpret_cast<std::byte*>(got.data()) + at, 150});
    }
    SendRequest send_request;
    RecvRequest receive_request;
    cluster_.node_of(0).send(
        *cluster_.endpoints[0], send_request, {1, 5, 7},
        Buffer{nullptr, bytes, from.data(), static_cast<std::uint32_t>(from.size())});
    cluster_.settle();
    cluster_.node_of(1).receive(
        *cluster_.endpoints[1], receive_request, {0, 5, 7},
        Buffer{nullptr, bytes, to.data(), static_cast<std::uint32_t>(to.size())});
    cluster_.settle();
    ASSERT_TRUE(receive_request.done.done() && send_request.done.done());
    EXPECT_TRUE(sent == got) << bytes;
  }
}

TEST_P(TransportWays, ALongMessageIsTruncatedAndSaysSo) {
  for (const std::size_t bytes : {200, 3000, 200'000}) {
    for (const bool is_posted_first : {true, false}) {
      const std::vector<char> sent = pattern(bytes);
      std::vector<char> got(101, 'x');
      SendRequest send_request;
      RecvRequest request;
      if (!is_posted_first) {
        send(send_request, sent);
        cluster_.settle();
      }
      cluster_.node_of(1).receive(*cluster_.endpoints[1], request, {kAnySource, 5, kAnyTag},
                                  Buffer::of(got.data(), 100));
      if (is_posted_first) {
        send(send_request, sent);
      }
      cluster_.settle();
      ASSERT_TRUE(send_request.done.done());
      ASSERT_TRUE(request.done.done());
      EXPECT_EQ(request.fault, Fault::truncated);
      EXPECT_EQ(request.envelope.bytes, 100U);
      EXPECT_TRUE(std::equal(got.begin(), got.begin() + 100, sent.begin()));
      EXPECT_EQ(got[100], 'x');
    }
  }
}

TEST_P(TransportWays, ASynchronousSendEndsWhenItsReceiveHasStarted) {
  for (const std::size_t bytes : {0, 10, 3000, 100'000}) {
    const std::vector<char> sent = pattern(bytes);
    std::vector<char> got(bytes);
    SendRequest send_request;
    RecvRequest receive_request;
    send(send_request, sent, 7, SendMode::synchronous);
    cluster_.settle();
    EXPECT_FALSE(send_request.done.done());
    receive(receive_request, got);
    cluster_.settle();
    EXPECT_TRUE(send_request.done.done());
    EXPECT_TRUE(receive_request.done.done());
    EXPECT_TRUE(sent == got);
  }
}

TEST_P(TransportWays, AProbeFindsAndAMatchedProbeTakes) {
  const std::vector<char> sent = pattern(2000);
  std::vector<char> got(2000);
  SendRequest requests[2];
  Envelope found;
  Transport& node = cluster_.node_of(1);
  Endpoint& endpoint = *cluster_.endpoints[1];
  EXPECT_FALSE(node.probe(endpoint, {kAnySource, 5, kAnyTag}, found));
  send(requests[0], sent, 3);
  send(requests[1], sent, 4);
  cluster_.settle();
  EXPECT_FALSE(node.probe(endpoint, {0, 6, 3}, found));
  ASSERT_TRUE(node.probe(endpoint, {kAnySource, 5, kAnyTag}, found));
  EXPECT_EQ(found.tag, 3);
  EXPECT_EQ(found.bytes, 2000U);
  Message* message = node.matched_probe(endpoint, {0, 5, 4}, found);
  ASSERT_NE(message, nullptr);
  EXPECT_FALSE(node.probe(endpoint, {0, 5, 4}, found));
  RecvRequest request;
  node.receive_matched(endpoint, request, *message, Buffer::of(got.data(), got.size()));
  cluster_.settle();
  EXPECT_TRUE(request.done.done());
  EXPECT_TRUE(sent == got);
  receive(request, got, kAnySource, kAnyTag);
  cluster_.settle();
  EXPECT_TRUE(request.done.done());
  EXPECT_EQ(request.envelope.tag, 3);
}

TEST_P(TransportWays, ACancelledReceiveTakesNoMessage) {
  std::vector<char> got(10);
  RecvRequest cancelled;
  receive(cancelled, got);
  EXPECT_TRUE(cluster_.node_of(1).cancel_receive(*cluster_.endpoints[1], cancelled));
  EXPECT_TRUE(cancelled.done.done());
  EXPECT_EQ(cancelled.fault, Fault::cancelled);
  EXPECT_FALSE(cluster_.node_of(1).cancel_receive(*cluster_.endpoints[1], cancelled));
  SendRequest send_request;
  RecvRequest request;
  send(send_request, pattern(10, 1));
  receive(request, got);
  cluster_.settle();
  EXPECT_TRUE(request.done.done());
  EXPECT_EQ(got[0], 1);
}

TEST_P(TransportWays, AMessageThatWaitsIsTakenBackAndLeavesNothing) {
  for (const std::size_t bytes : {0, 10, 3000, 100'000}) {
    for (const bool is_settled : {false, true}) {  // The withdrawal comes right behind the message.
      std::vector<char> got(bytes);
      SendRequest sends[3];
      RecvRequest request;
      Transport& sender = cluster_.node_of(0);
      Endpoint& endpoint = *cluster_.endpoints[0];
      const std::vector<char> first = pattern(bytes, 1);
      const std::vector<char> second = pattern(bytes, 2);
      send(sends[0], first, 7, SendMode::synchronous);
      send(sends[1], second, 7, SendMode::synchronous);
      if (is_settled) {
        cluster_.settle();
      }
      EXPECT_TRUE(sender.cancel_send(endpoint, sends[0]));
      cluster_.settle();
      ASSERT_TRUE(sends[0].done.done());
      EXPECT_EQ(sends[0].fault, Fault::cancelled);
      EXPECT_FALSE(sender.cancel_send(endpoint, sends[0]));
      EXPECT_FALSE(sends[1].done.done());
      receive(request, got);
      EXPECT_EQ(sender.cancel_send(endpoint, sends[1]), GetParam().node_count == 2);  // In vain.
      cluster_.settle();
      ASSERT_TRUE(request.done.done() && sends[1].done.done());
      EXPECT_EQ(sends[1].fault, Fault::none);
      EXPECT_TRUE(got == second);
      send(sends[2], second);  // The credit of what was taken back has returned.
      receive(request, got);
      cluster_.settle();
      EXPECT_TRUE(request.done.done() && sends[2].done.done());
      EXPECT_EQ(cluster_.endpoints[1]->message_count, 0U);
      EXPECT_EQ(cluster_.endpoints[1]->unexpected_bytes, 0U);
      EXPECT_EQ(cluster_.endpoints[0]->pending_count, 0U);
    }
  }
}

TEST_P(TransportWays, WhatAMatchedProbeHasTakenIsNotTakenBack) {
  const std::vector<char> sent = pattern(100'000);
  std::vector<char> got(sent.size());
  SendRequest request;
  RecvRequest receive_request;
  Envelope found;
  send(request, sent);
  cluster_.settle();
  Transport& node = cluster_.node_of(1);
  Message* const message = node.matched_probe(*cluster_.endpoints[1], {0, 5, 7}, found);
  ASSERT_NE(message, nullptr);
  (void)cluster_.node_of(0).cancel_send(*cluster_.endpoints[0], request);
  cluster_.settle();
  EXPECT_FALSE(request.done.done());
  node.receive_matched(*cluster_.endpoints[1], receive_request, *message,
                       Buffer::of(got.data(), got.size()));
  cluster_.settle();
  EXPECT_TRUE(request.done.done() && receive_request.done.done());
  EXPECT_EQ(request.fault, Fault::none);
  EXPECT_TRUE(got == sent);
}

TEST_P(TransportWays, ARankSendsToItself) {
  Transport& node = cluster_.node_of(2);
  Endpoint& endpoint = *cluster_.endpoints[2];
  for (const std::size_t bytes : {5, 50'000}) {
    const std::vector<char> sent = pattern(bytes);
    std::vector<char> got(bytes);
    SendRequest send_request;
    RecvRequest request;
    node.send(endpoint, send_request, {2, 0, 0}, Buffer::of(sent.data(), bytes));
    node.receive(endpoint, request, {2, 0, 0}, Buffer::of(got.data(), bytes));
    EXPECT_TRUE(request.done.done());
    EXPECT_TRUE(send_request.done.done());
    EXPECT_TRUE(sent == got);
  }
}

// A sender that is never received from must not fill the receiver's memory; all arrives in the end.
TEST_P(TransportWays, UnexpectedMessagesAreBoundedByCredit) {
  const std::vector<char> sent = pattern(400);
  constexpr int kCount = 20'000;  // 8 MB.
  std::vector<SendRequest> requests(kCount);
  for (SendRequest& request : requests) {
    send(request, sent);
    cluster_.poll();
  }
  cluster_.settle();
  EXPECT_LE(cluster_.endpoints[1]->unexpected_bytes_peak, 7U << 20);  // 16 MB with what it takes.
  EXPECT_FALSE(requests.back().done.done());
  for (int i = 0; i < kCount; ++i) {
    std::vector<char> got(400);
    RecvRequest request;
    receive(request, got);
    cluster_.settle();
    ASSERT_TRUE(request.done.done()) << i;
    ASSERT_TRUE(got == sent);
  }
  for (const SendRequest& request : requests) {
    ASSERT_TRUE(request.done.done());
  }
  EXPECT_EQ(cluster_.endpoints[1]->unexpected_bytes, 0U);
}

INSTANTIATE_TEST_SUITE_P(Ways, TransportWays,
                         testing::Values(Way{"one_node", 1, false, true},
                                         Way{"packets", 2, false, true},
                                         Way{"direct", 2, true, true},
                                         Way{"unordered", 2, false, false},
                                         Way{"awaited", 2, false, true, true},
                                         Way{"awaited_unordered", 2, false, false, true}),
                         [](const auto& way) { return way.param.name; });

TEST(Transport, WhatWaitsForALostNodeEndsWithAnError) {
  SimCluster cluster{{.node_count = 2}, 4};
  Transport& node = *cluster.nodes[0];
  std::vector<char> bytes(100'000);
  SendRequest announced;
  RecvRequest from_lost;
  RecvRequest from_any;
  RecvRequest from_living;
  const Buffer buffer = Buffer::of(bytes.data(), bytes.size());
  node.send(*cluster.endpoints[0], announced, {1, 0, 0}, buffer);
  node.receive(*cluster.endpoints[0], from_lost, {3, 0, 0}, buffer);
  node.receive(*cluster.endpoints[0], from_any, {kAnySource, 0, 0}, buffer);
  node.receive(*cluster.endpoints[0], from_living, {2, 0, 0}, buffer);
  cluster.settle();
  cluster.network->lose(1);
  cluster.settle();
  EXPECT_EQ(announced.fault, Fault::peer_lost);
  EXPECT_EQ(from_lost.fault, Fault::peer_lost);
  EXPECT_EQ(from_any.fault, Fault::peer_lost);
  EXPECT_TRUE(announced.done.done() && from_lost.done.done() && from_any.done.done());
  EXPECT_FALSE(from_living.done.done());
  SendRequest late_send;
  RecvRequest late_receive;
  node.send(*cluster.endpoints[0], late_send, {1, 0, 0}, Buffer::of(bytes.data(), 8));
  node.receive(*cluster.endpoints[0], late_receive, {1, 0, 0}, buffer);
  EXPECT_EQ(late_send.fault, Fault::peer_lost);
  EXPECT_EQ(late_receive.fault, Fault::peer_lost);
  EXPECT_TRUE(late_send.done.done() && late_receive.done.done());
  EXPECT_FALSE(node.node_message(1, 0, {}).has_value());
  EXPECT_TRUE(node.cancel_receive(*cluster.endpoints[0], from_living));
}

TEST(Transport, AMatchedLargeMessagePinsItsRanks) {
  SimCluster cluster{{.node_count = 2}, 2};
  std::vector<char> bytes(1'000'000);
  SendRequest send;
  RecvRequest receive;
  cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                         Buffer::of(bytes.data(), bytes.size()));
  cluster.settle();
  ASSERT_TRUE(cluster.nodes[0]->begin_leave(0).has_value());  // Announced only: it may move.
  cluster.nodes[0]->cancel_leave(0);
  cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                            Buffer::of(bytes.data(), bytes.size()));
  Result<> left = cluster.nodes[1]->begin_leave(1);
  ASSERT_FALSE(left.has_value());
  EXPECT_EQ(left.error().code, Errc::refused);
  cluster.settle();
  EXPECT_TRUE(receive.done.done());
  EXPECT_TRUE(cluster.nodes[1]->begin_leave(1).has_value());
  cluster.nodes[1]->cancel_leave(1);
}

TEST(Transport, GarbageIsDroppedAndCounted) {
  SimCluster cluster{{.node_count = 2}, 2};
  Random random{7};
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes(1 + random.below(200));
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random.below(random.chance(0.5) ? 4 : 256));
    }
    cluster.network->inject(0, 1, bytes);
    cluster.settle();
  }
  EXPECT_GT(cluster.nodes[1]->statistics().frames_malformed, 1000U);
}

}  // namespace
}  // namespace sterna::net
