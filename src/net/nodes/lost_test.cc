// What becomes of messages whose rest is lost: with their sender, or for want of memory. Nobody
// waits for them for ever.
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "net/peer.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr Pattern kPattern{0, 5, 7};

/// A message of three packets, of which one arrives; then its sender is lost.
TEST(LostMessages, AMatchedProbeMayHoldOneWhoseSenderIsLost) {
  Settings settings{transport_tunables()};
  ASSERT_TRUE(settings.set("net_eager_bytes", "8K", SettingSource::command_line, "the test"));
  SimCluster cluster{{.node_count = 2, .channel_packets_max = 1}, 2, &settings};
  const std::vector<char> sent(2500, 's');
  std::vector<char> got(2500, 'g');
  SendRequest send;
  cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 5, 7},
                         Buffer::of(sent.data(), sent.size()));
  (void)cluster.nodes[1]->poll();
  Envelope found;
  Message* const message = cluster.nodes[1]->matched_probe(*cluster.endpoints[1], kPattern, found);
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(found.bytes, 2500U);
  cluster.network->lose(0);
  cluster.settle();
  // What was freed would be given out again, and overwritten.
  void* const again = std::malloc(sizeof(Message) + 2500);
  std::memset(again, 0xee, sizeof(Message) + 2500);
  RecvRequest receive;
  cluster.nodes[1]->receive_matched(*cluster.endpoints[1], receive, *message,
                                    Buffer::of(got.data(), got.size()));
  cluster.settle();
  ASSERT_TRUE(receive.done.done());
  EXPECT_EQ(receive.fault, Fault::peer_lost);
  EXPECT_EQ(receive.envelope.bytes, 0U);
  EXPECT_EQ(cluster.endpoints[1]->unexpected_bytes, 0U);
  std::free(again);
}

/// Ranks on a heap that can be filled.
struct SmallHeap {
  static constexpr std::size_t kBytes = 8 * memory::kHeapChunkBytes;
  SmallHeap() {
    memory = static_cast<std::byte*>(std::aligned_alloc(memory::kHeapChunkBytes, kBytes));
    std::memset(memory, 0, kBytes);
    heap = memory::Heap::create_in({.base = memory, .bytes = kBytes, .bytes_max = kBytes});
    (void)settings.set("net_eager_bytes", "32K", SettingSource::command_line, "the test");
  }
  ~SmallHeap() { std::free(memory); }
  /// Blocks of all sizes: what is free of one size is for no other.
  void fill() {
    for (std::size_t bytes = kBytes; bytes >= 16; bytes -= bytes / 16) {
      while (void* const block = heap->allocate(bytes)) {
        taken.push_back(block);
      }
    }
  }

  std::byte* memory;
  memory::Heap* heap;
  std::vector<void*> taken;
  Settings settings{transport_tunables()};
};

void send(SimCluster& cluster, const std::vector<char>& bytes) {
  SendRequest request;
  cluster.nodes[0]->send(*cluster.endpoints[0], request, {1, 5, 7},
                         Buffer::of(bytes.data(), bytes.size()));
  cluster.settle();
  EXPECT_TRUE(request.done.done());
  EXPECT_EQ(request.fault, Fault::none);
}
void receive(SimCluster& cluster, RecvRequest& request, std::vector<char>& into) {
  cluster.nodes[1]->receive(*cluster.endpoints[1], request, kPattern,
                            Buffer::of(into.data(), into.size()));
  cluster.settle();
}

constexpr SimOptions kTwoNodes{.node_count = 2, .packet_bytes_max = 16 << 10};

TEST(LostMessages, AReceiveLearnsThatThereWasNoRoomForItsMessage) {
  SmallHeap small;
  SimCluster cluster{kTwoNodes, 2, &small.settings, nullptr, *small.heap};
  std::vector<char> got(20'000);
  {  // A message that came too early leaves its envelope behind, to be used again.
    RecvRequest first;
    send(cluster, std::vector<char>(10, 'a'));
    receive(cluster, first, got);
    ASSERT_EQ(first.fault, Fault::none);
  }
  small.fill();
  send(cluster, std::vector<char>(20'000, 'b'));
  Envelope found;
  ASSERT_TRUE(cluster.nodes[1]->probe(*cluster.endpoints[1], kPattern, found));
  EXPECT_EQ(found.bytes, 20'000U);
  RecvRequest lost;
  receive(cluster, lost, got);
  ASSERT_TRUE(lost.done.done());
  EXPECT_EQ(lost.fault, Fault::no_memory);
  // Those behind it are received as ever.
  send(cluster, std::vector<char>(10, 'c'));
  RecvRequest next;
  receive(cluster, next, got);
  ASSERT_TRUE(next.done.done());
  EXPECT_EQ(next.fault, Fault::none);
  EXPECT_EQ(got[9], 'c');
}

struct Told {
  explicit Told(Transport& node) {
    node.register_full_handler(
        [](void* context, std::uint32_t its_rank, const std::string& its_text) noexcept {
          Told& told = *static_cast<Told*>(context);
          told.rank = its_rank;
          told.text = its_text;
        },
        this);
  }
  std::uint32_t rank = 99;
  std::string text;
};

TEST(LostMessages, ARankWithoutRoomForAnEnvelopeEndsTheJob) {
  SmallHeap small;
  SimCluster cluster{kTwoNodes, 2, &small.settings, nullptr, *small.heap};
  const Told told{*cluster.nodes[1]};
  std::vector<char> got(20'000);
  RecvRequest first;
  receive(cluster, first, got);
  send(cluster, std::vector<char>(10, 'a'));
  ASSERT_TRUE(first.done.done());
  small.fill();
  EXPECT_EQ(told.rank, 99U);
  send(cluster, std::vector<char>(10, 'b'));
  EXPECT_EQ(told.rank, 1U);
  EXPECT_NE(told.text.find("system heap is full"), std::string::npos);
}

TEST(LostMessages, AMessageThatNeverComesEndsTheJobWhenTooManyWaitBehindIt) {
  SimCluster cluster{kTwoNodes, 2};
  const Told told{*cluster.nodes[1]};
  FrameHeader header;
  header.kind = FrameKind::eager;
  header.source = 0;
  header.destination = 1;
  std::byte bytes[kHeaderBytes];
  for (header.sequence = 1; header.sequence <= kEarlyFramesMax + 1; ++header.sequence) {
    EXPECT_EQ(told.rank, 99U);
    std::memcpy(bytes, &header, kHeaderBytes);
    cluster.network->inject(0, 1, bytes);
    cluster.settle();
  }
  EXPECT_EQ(told.rank, 1U);
  EXPECT_NE(told.text.find("before one that is missing"), std::string::npos) << told.text;
}

}  // namespace
}  // namespace sterna::net
