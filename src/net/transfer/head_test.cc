// The first bytes of an announced message: sent unasked, taken or dropped.
#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"
#include "net/transfer/absence.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

constexpr std::size_t kBytes = 200'000;  // Announced.

struct TwoNodes {
  explicit TwoNodes(const SimOptions& options = {.node_count = 2, .delay_ns_max = 1000},
                    const Settings* settings = nullptr,
                    SimCluster::Rails how = SimCluster::Rails{})
      : cluster{options, 2, settings, nullptr, *memory::Heap::process(), how} {
    for (std::size_t i = 0; i < kBytes; ++i) {
      sent[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
  }
  /// Rank 1.
  void move_to(std::uint32_t node) {
    ASSERT_TRUE(cluster.nodes[1 - node]->begin_leave(1));
    cluster.nodes[node]->expect(1);
    cluster.nodes[1 - node]->commit_leave(1, node);
    cluster.nodes[node]->install(1, cluster.endpoints[1]);
  }
  void post() { post(Buffer::of(got.data(), got.size())); }
  void post(const Buffer& into) {
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0}, into);
  }
  void begin_send() {
    send.is_awaited = true;
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(sent.data(), sent.size()));
  }
  /// One message, with its receive before or after it.
  void exchange(bool is_posted_first) {
    std::fill(got.begin(), got.end(), std::byte{0});
    if (is_posted_first) {
      post();
    }
    begin_send();
    if (!is_posted_first) {
      cluster.settle();
      post();
    }
    cluster.settle();
    ASSERT_TRUE(send.done.done() && receive.done.done());
    ASSERT_EQ(send.fault, Fault::none);
    ASSERT_EQ(receive.fault, Fault::none);
    ASSERT_TRUE(got == sent);
  }
  [[nodiscard]] std::uint64_t heads_sent() { return cluster.nodes[0]->statistics().heads_sent; }
  [[nodiscard]] std::uint64_t heads_dropped() {
    return cluster.nodes[1]->statistics().heads_dropped;
  }

  SendRequest send;
  RecvRequest receive;
  std::vector<std::byte> sent = std::vector<std::byte>(kBytes);
  std::vector<std::byte> got = std::vector<std::byte>(kBytes);
  SimCluster cluster;
};

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

/// Messages of one packet, which are announced all the same.
struct Short : TwoNodes {
  static constexpr std::size_t kShortBytes = 40'000;
  explicit Short(const Settings& settings = announcing())
      : TwoNodes{{.node_count = 2, .delay_ns_max = 1000, .packet_bytes_max = 64 << 10}, &settings} {
    sent.resize(kShortBytes);
    got.resize(kShortBytes);
    check(cluster.nodes[0]->cost(1).head_bytes() < kShortBytes, "a head is a part of it");
  }
  static Settings announcing() {
    Settings settings{transport_tunables()};
    check(settings.set("net_eager_bytes", "4K", SettingSource::command_line, "test").has_value(),
          "the setting exists");
    return settings;
  }

  /// Its receive, posted before, ends before the sender has seen an answer.
  [[nodiscard]] bool comes_unasked() {
    std::fill(got.begin(), got.end(), std::byte{0});
    post();
    begin_send();
    for (int i = 0; i < 100; ++i) {
      cluster.nodes[1]->poll();
      cluster.clock.advance(100);
    }
    const bool has_come = receive.done.done();
    cluster.settle();
    EXPECT_TRUE(send.done.done() && receive.done.done());
    EXPECT_EQ(send.fault, Fault::none);
    EXPECT_TRUE(got == sent);
    return has_come;
  }
};

TEST(Heads, AreWholeMessagesOnceManyWereTaken) {
  Short nodes;
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(nodes.comes_unasked()) << i;
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(nodes.comes_unasked()) << i;
  }
  EXPECT_EQ(nodes.heads_sent(), 12U);
  EXPECT_EQ(nodes.cluster.nodes[0]->statistics().bytes_data, 12 * Short::kShortBytes);
  nodes.exchange(false);  // Dropped, and sent again.
  EXPECT_EQ(nodes.heads_dropped(), 1U);
  EXPECT_EQ(nodes.cluster.nodes[0]->statistics().bytes_data, 13 * Short::kShortBytes);
  nodes.exchange(true);  // Without a head.
  EXPECT_EQ(nodes.heads_sent(), 13U);
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
}  // namespace sterna::net
