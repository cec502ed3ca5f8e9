// The first bytes of an announced message: sent unasked, taken or dropped.
#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/packet.h"
#include "net/transfer/absence.h"
#include "net/transfer/head_pair.h"
#include "progress/progress.h"

namespace sterna::net::heads {
namespace {

TEST(Heads, OfAMessageThatIsExpectedIsTakenAndNotSentAgain) {
  TwoNodes nodes;
  nodes.exchange(true);
  EXPECT_EQ(nodes.heads_sent(), 1U);
  EXPECT_EQ(nodes.heads_dropped(), 0U);
  EXPECT_EQ(nodes.cluster.nodes[0]->statistics().bytes_data, kBytes) << "each byte once";
}

// Who may write there writes the whole message. Nobody may here: it goes on behind the head.
TEST(Heads, OfAReceiverThatWillComputeAreNotSentAgain) {
  TwoNodes nodes{{.node_count = 2, .delay_ns_max = 1000}, nullptr, SimCluster::Rails{true}};
  nodes.cluster.nodes[1]->absence().leave_reads(true);
  nodes.receive.may_be_written = true;
  // The last poll was not one of somebody who waits.
  const auto progress = std::move(progress::Progress::open().value());
  nodes.cluster.nodes[1]->add_to(*progress);
  (void)progress->poll(threads::SchedulingPoint::switching);
  for (int i = 1; i <= 20; ++i) {
    nodes.exchange(true);
    EXPECT_EQ(nodes.cluster.nodes[0]->statistics().bytes_data, kBytes * i) << "each byte once";
  }
  EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 0U);
  EXPECT_EQ(nodes.heads_sent(), 20U);
  nodes.cluster.nodes[1]->remove_from(*progress);
}

TEST(Heads, WhereReceivesComeLateAreSentLessAndLess) {
  TwoNodes nodes;
  for (int i = 0; i < 100; ++i) {
    nodes.exchange(false);
  }
  EXPECT_EQ(nodes.heads_sent(), 6U) << "of messages 1, 3, 7, 15, 31, 63";
  EXPECT_EQ(nodes.heads_dropped(), 6U);
  EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 0U);
  for (int i = 0; i < 40; ++i) {  // In time again: the next head is taken, and so all that follow.
    nodes.exchange(true);
  }
  EXPECT_EQ(nodes.heads_dropped(), 6U);
  EXPECT_EQ(nodes.heads_sent(), 6U + 14U) << "messages 127 to 140";
}

// Announced where it was, it is cleared from another node: that drops no head.
TEST(Heads, AMessageWithinTheNodeHasNone) {
  TwoNodes nodes;
  nodes.exchange(true);
  EXPECT_EQ(nodes.heads_sent(), 1U);
  nodes.move_to(0);
  nodes.begin_send();
  nodes.cluster.settle();
  nodes.move_to(1);
  std::fill(nodes.got.begin(), nodes.got.end(), std::byte{0});
  nodes.post();
  nodes.cluster.settle();
  ASSERT_TRUE(nodes.send.done.done() && nodes.receive.done.done());
  EXPECT_TRUE(nodes.got == nodes.sent);
  nodes.exchange(true);
  EXPECT_EQ(nodes.heads_sent(), 2U) << "the one before was taken";
  EXPECT_EQ(nodes.heads_dropped(), 0U);
}

TEST(Heads, AReceiveWithRoomForPartOfItGetsThatPart) {
  for (const std::size_t room : {0, 1, 100, 463, 464, 465, 2000}) {
    TwoNodes nodes;
    std::vector<std::byte> got(room + 1, std::byte{77});
    nodes.post(Buffer::of(got.data(), room));
    nodes.begin_send();
    nodes.cluster.settle();
    ASSERT_TRUE(nodes.send.done.done() && nodes.receive.done.done()) << room;
    EXPECT_EQ(nodes.send.fault, Fault::none);
    EXPECT_EQ(nodes.receive.fault, Fault::truncated);
    EXPECT_EQ(nodes.receive.envelope.bytes, room);
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(room),
                           nodes.sent.begin()));
    EXPECT_EQ(got[room], std::byte{77}) << "behind its memory";
    EXPECT_EQ(nodes.cluster.nodes[0]->statistics().frames_malformed, 0U);
    EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 0U);
  }
}

TEST(Heads, TheLossOfTheSenderEndsAReceiveThatHasItsHead) {
  TwoNodes nodes;
  nodes.post();
  nodes.begin_send();
  while (nodes.got[0] != nodes.sent[0] || nodes.got[1] != nodes.sent[1]) {
    nodes.cluster.poll();
    nodes.cluster.clock.advance(100);
  }
  nodes.cluster.network->lose(0);
  nodes.cluster.settle();
  ASSERT_TRUE(nodes.receive.done.done());
  EXPECT_EQ(nodes.receive.fault, Fault::peer_lost);
  std::vector<std::byte>{}.swap(nodes.got);  // Nobody writes there any more (address sanitizer).
  nodes.cluster.settle();
}

// Where others are under way they keep the network busy.
TEST(Heads, WhoDoesNotWaitSendsOneIfNothingElseIsUnderWay) {
  TwoNodes nodes;
  RecvRequest receive;
  SendRequest send;
  std::vector<std::byte> got(kBytes);
  nodes.post();
  nodes.cluster.nodes[1]->receive(*nodes.cluster.endpoints[1], receive, {0, 0, 1},
                                  Buffer::of(got.data(), kBytes));
  const auto start = [&](SendRequest& request, std::int32_t tag) {
    request.is_awaited = false;
    nodes.cluster.nodes[0]->send(*nodes.cluster.endpoints[0], request, {1, 0, tag},
                                 Buffer::of(nodes.sent.data(), kBytes));
  };
  start(nodes.send, 0);
  EXPECT_EQ(nodes.heads_sent(), 1U);
  start(send, 1);
  EXPECT_EQ(nodes.heads_sent(), 1U);
  nodes.cluster.settle();
  EXPECT_TRUE(nodes.got == nodes.sent);
  EXPECT_TRUE(got == nodes.sent);
}

TEST(Heads, AreWholeMessagesOnceManyWereTaken) {
  Short nodes;
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(nodes.comes_unasked()) << i;
  }
  // Only the first of eight such is announced, and counts as a head.
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(nodes.comes_unasked()) << i;
  }
  EXPECT_EQ(nodes.heads_sent(), 10U);
  EXPECT_EQ(nodes.cluster.nodes[0]->statistics().bytes_data, 10 * Short::kShortBytes);
  nodes.exchange(false);  // Dropped, and sent again.
  EXPECT_EQ(nodes.heads_dropped(), 1U);
  EXPECT_EQ(nodes.cluster.nodes[0]->statistics().bytes_data, 11 * Short::kShortBytes);
  nodes.exchange(true);  // Without a head.
  EXPECT_EQ(nodes.heads_sent(), 11U);
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(nodes.comes_unasked()) << i;
  }
  EXPECT_TRUE(nodes.comes_unasked());
}

TEST(Heads, OfAWholeMessageAShortReceiveGetsAPart) {
  Short nodes;
  for (int i = 0; i < 8; ++i) {
    nodes.exchange(true);
  }
  std::vector<std::byte> part(1001, std::byte{77});
  nodes.post(Buffer::of(part.data(), 1000));
  nodes.begin_send();
  nodes.cluster.settle();
  ASSERT_TRUE(nodes.send.done.done() && nodes.receive.done.done());
  EXPECT_EQ(nodes.send.fault, Fault::none);
  EXPECT_EQ(nodes.receive.fault, Fault::truncated);
  EXPECT_TRUE(std::equal(part.begin(), part.end() - 1, nodes.sent.begin()));
  EXPECT_EQ(part.back(), std::byte{77}) << "behind its memory";
  EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 0U);
}

/// Node 0 is played by the test.
TEST(Heads, OneThatNobodyExpectsIsDropped) {
  TwoNodes nodes;
  nodes.post();
  std::vector<std::byte> bytes(kHeaderBytes + 100);
  FrameHeader header;
  header.kind = FrameKind::head;
  header.destination = 1;
  header.payload_bytes = 100;
  header.total_bytes = 100;
  for (; header.sequence < 4; ++header.sequence) {  // By either way.
    std::memcpy(bytes.data(), &header, kHeaderBytes);
    nodes.cluster.network->inject(0, 1, bytes);
    nodes.cluster.settle();
  }
  EXPECT_EQ(nodes.heads_dropped(), 4U);
  EXPECT_FALSE(nodes.receive.done.done());
  ASSERT_TRUE(nodes.cluster.nodes[1]->cancel_receive(*nodes.cluster.endpoints[1], nodes.receive));
}

}  // namespace
}  // namespace sterna::net::heads
