// Bytes that a driver receives straight into the memory of a receive: the simulated driver asks for
// every second packet, and again for its second half (in the simulation with all other events,
// too).
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr std::size_t kBytes = 200'000;  // Announced.

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  return data;
}

struct TwoNodes {
  void exchange(RecvRequest& receive, const Buffer& into) {
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0}, into);
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0},
                           Buffer::of(sent.data(), sent.size()));
  }
  [[nodiscard]] std::uint64_t placed() const { return cluster.network->placed_count(); }
  SendRequest send;
  std::vector<std::byte> sent = numbered(kBytes);
  std::vector<std::byte> got = std::vector<std::byte>(kBytes);
  SimCluster cluster{{.node_count = 2, .delay_ns_max = 1000}, 2};
};

TEST(PlacedData, GoesStraightToItsReceive) {
  TwoNodes nodes;
  RecvRequest receive;
  nodes.exchange(receive, Buffer::of(nodes.got.data(), kBytes));
  nodes.cluster.settle();
  ASSERT_TRUE(receive.done.done() && nodes.send.done.done());
  EXPECT_EQ(receive.fault, Fault::none);
  EXPECT_TRUE(nodes.got == nodes.sent);
  EXPECT_GT(nodes.placed(), 50U);
}

TEST(PlacedData, AReceiveOfFewerBytesGetsThoseAndNoMore) {
  TwoNodes nodes;
  RecvRequest receive;
  nodes.exchange(receive, Buffer::of(nodes.got.data(), kBytes - 1001));
  nodes.cluster.settle();
  ASSERT_TRUE(receive.done.done());
  EXPECT_EQ(receive.fault, Fault::truncated);
  EXPECT_EQ(std::memcmp(nodes.got.data(), nodes.sent.data(), kBytes - 1001), 0);
  EXPECT_EQ(nodes.got[kBytes - 1001], std::byte{0});
}

TEST(PlacedData, SeveralExtentsAreFilledAcrossTheirEdges) {
  TwoNodes nodes;
  std::vector<Extent> extents;
  std::vector<std::byte> memory(2 * kBytes);
  for (std::size_t i = 0; i < 40; ++i) {  // With gaps, of another size than the packets.
    extents.push_back({memory.data() + i * 10'000, kBytes / 40});
  }
  RecvRequest receive;
  nodes.exchange(receive, {nullptr, kBytes, extents.data(), 40});
  nodes.cluster.settle();
  ASSERT_TRUE(receive.done.done());
  EXPECT_GT(nodes.placed(), 10U) << "most packets lie within one extent";
  for (std::size_t i = 0; i < 40; ++i) {
    ASSERT_EQ(std::memcmp(extents[i].address, &nodes.sent[i * kBytes / 40], kBytes / 40), 0);
    ASSERT_EQ(extents[i].address[kBytes / 40], std::byte{0}) << "the gap";
  }
}

TEST(PlacedData, TheLossOfTheSenderEndsIt) {
  TwoNodes nodes;
  RecvRequest receive;
  nodes.exchange(receive, Buffer::of(nodes.got.data(), kBytes));
  while (nodes.placed() < 5) {
    nodes.cluster.poll();
    nodes.cluster.clock.advance(100);
  }
  nodes.cluster.network->lose(0);
  nodes.cluster.settle();
  ASSERT_TRUE(receive.done.done());
  EXPECT_EQ(receive.fault, Fault::peer_lost);
  std::vector<std::byte>{}.swap(nodes.got);  // Nobody writes there any more (address sanitizer).
  nodes.cluster.settle();
}

/// Node 0 is played by the test.
TEST(PlacedData, BytesThatNobodyExpectsGoNowhere) {
  TwoNodes nodes;
  for (const std::uint64_t offset : {std::uint64_t{0}, kBytes - 10, ~std::uint64_t{0} - 99}) {
    FrameHeader header;
    header.kind = FrameKind::data;
    header.destination = 1;
    header.cookie = 1ULL << 32;  // The first that the receiver might give.
    header.payload_bytes = 100;
    header.total_bytes = offset;
    std::vector<std::byte> bytes(kHeaderBytes + 100);
    std::memcpy(bytes.data(), &header, kHeaderBytes);
    for (int i = 0; i < 4; ++i) {  // By either way.
      nodes.cluster.network->inject(0, 1, bytes);
      nodes.cluster.settle();
    }
  }
  EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 12U);
  EXPECT_EQ(nodes.placed(), 0U);
}

}  // namespace
}  // namespace sterna::net
