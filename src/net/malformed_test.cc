// Frames that are well formed, but that no sender of ours sends so: they are refused, and what they
// would have hurt goes on.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

/// Node 0 is played by the test, rank 1 is on node 1.
struct Stranger {
  void send(FrameKind kind, std::uint32_t payload_bytes, std::uint64_t total_bytes) {
    FrameHeader header;
    header.kind = kind;
    header.flags = flags;
    header.destination = 1;
    header.sequence = sequence++;
    header.payload_bytes = payload_bytes;
    header.total_bytes = total_bytes;
    std::vector<std::byte> bytes(kHeaderBytes + payload_bytes);
    std::memcpy(bytes.data(), &header, kHeaderBytes);
    cluster.network->inject(0, 1, bytes);
    cluster.settle();
  }
  void receive(RecvRequest& request) {
    cluster.nodes[1]->receive(*cluster.endpoints[1], request, {0, 0, 0},
                              Buffer::of(into.data(), into.size()));
  }
  [[nodiscard]] std::uint64_t refused() { return cluster.nodes[1]->statistics().frames_malformed; }

  std::uint32_t sequence = 0;
  std::uint8_t flags = 0;
  std::vector<std::byte> into = std::vector<std::byte>(1000);
  SimCluster cluster{{.node_count = 2}, 2};
};

TEST(Malformed, AMessageThatBeginsBeforeTheOneBeforeHasEndedIsRefused) {
  Stranger stranger;
  RecvRequest first;
  RecvRequest second;
  stranger.receive(first);
  stranger.receive(second);
  stranger.send(FrameKind::eager, 10, 100);
  stranger.send(FrameKind::eager, 10, 100);
  EXPECT_EQ(stranger.refused(), 1U);
  stranger.send(FrameKind::eager_more, 90, 0);
  EXPECT_TRUE(first.done.done());
  EXPECT_EQ(first.envelope.bytes, 100U);
  EXPECT_FALSE(second.done.done());
  stranger.send(FrameKind::eager, 20, 20);
  EXPECT_TRUE(second.done.done());
}

TEST(Malformed, MoreOfAMessageThatIsCompleteIsRefused) {
  Stranger stranger;
  {
    RecvRequest receive;
    stranger.receive(receive);
    stranger.send(FrameKind::eager, 10, 10);
    EXPECT_TRUE(receive.done.done());
  }
  stranger.send(FrameKind::eager_more, 1, 0);
  EXPECT_EQ(stranger.refused(), 1U);
}

TEST(Malformed, AMessageBeyondTheCreditOfItsSenderLeavesTheOneBeforeAlone) {
  Stranger stranger;
  stranger.send(FrameKind::eager, 10, 2 << 20);  // More than net_eager_window.
  stranger.send(FrameKind::eager_more, 1, 0);
  EXPECT_EQ(stranger.refused(), 2U);
  EXPECT_EQ(stranger.cluster.endpoints[1]->unexpected_bytes, 0U);
}

TEST(Malformed, AnnouncementsBeyondTheCreditOfTheirSenderAreRefused) {
  Stranger stranger;
  for (int i = 0; i < 4000; ++i) {
    stranger.send(FrameKind::rendezvous, 0, 1 << 30);
  }
  EXPECT_GT(stranger.refused(), 300U);
  EXPECT_LE(stranger.cluster.endpoints[1]->message_count, (2U << 20) / 640);
}

TEST(Malformed, WhatWasNotAskedIsNotAnswered) {
  Stranger stranger;
  RecvRequest receive;
  stranger.receive(receive);
  stranger.send(FrameKind::nothing, 0, 0);
  EXPECT_EQ(stranger.refused(), 1U);
  stranger.flags = kFrameHeld | kFrameSought;
  stranger.send(FrameKind::rendezvous, 0, 1 << 30);
  stranger.flags = kFrameWithdrawn;
  stranger.send(FrameKind::claim, 0, 0);
  stranger.flags = 0;
  stranger.send(FrameKind::claim, 0, 0);
  stranger.send(FrameKind::seek, 0, 7);
  EXPECT_EQ(receive.state, RecvRequest::State::posted);
  stranger.send(FrameKind::eager, 20, 20);
  EXPECT_TRUE(receive.done.done());
}

}  // namespace
}  // namespace sterna::net
