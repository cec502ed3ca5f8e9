// Ranks that move while frames come: what waits for the end of a move is neither lost nor left.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 5;
constexpr std::int32_t kTag = 7;

/// A heap that can be filled.
struct SmallHeap {
  static constexpr std::size_t kBytes = 8 * memory::kHeapChunkBytes;
  SmallHeap() {
    std::memset(bytes, 0, kBytes);
    heap = memory::Heap::create_in({.base = bytes, .bytes = kBytes, .bytes_max = kBytes});
  }
  ~SmallHeap() { std::free(bytes); }
  SmallHeap(const SmallHeap&) = delete;
  SmallHeap& operator=(const SmallHeap&) = delete;
  void fill() const {
    for (std::size_t size = kBytes; size >= 16; size /= 2) {
      while (heap->allocate(size) != nullptr) {
      }
    }
  }

  std::byte* const bytes =
      static_cast<std::byte*>(std::aligned_alloc(memory::kHeapChunkBytes, kBytes));
  memory::Heap* heap;
};

/// Rank 1, on node 1 of two, whose heap can be filled: a frame for which there is no room is told
/// of before the next one is taken, and then the rank begins to leave.
class EarlyFrames : public testing::Test {
 protected:
  void SetUp() override {
    cluster.nodes[1]->register_full_handler(
        [](void* self, std::uint32_t rank, const std::string&) noexcept {
          auto& test = *static_cast<EarlyFrames*>(self);
          test.has_begun = test.cluster.nodes[1]->begin_leave(rank).has_value();
        },
        this);
  }
  /// An empty message of rank 0, as if it had come now.
  void come(std::uint32_t sequence, std::int32_t tag) {
    FrameHeader header;
    header.kind = FrameKind::eager;
    header.source = 0;
    header.destination = 1;
    header.context = kContext;
    header.tag = tag;
    header.sequence = sequence;
    std::array<std::byte, kHeaderBytes> bytes;
    std::memcpy(bytes.data(), &header, kHeaderBytes);
    cluster.network->inject(0, 1, bytes);
    cluster.settle();
  }
  /// A receive waits for the second and the third of three frames, which have come. The first comes
  /// now, and is in the middle of being taken when its rank begins to leave.
  void begin_leave_between() {
    for (std::int32_t i = 0; i < 2; ++i) {
      cluster.nodes[1]->receive(*cluster.endpoints[1], receives[static_cast<std::size_t>(i)],
                                Pattern{0, kContext, kTag + 1 + i}, Buffer{});
    }
    come(2, kTag + 2);
    come(1, kTag + 1);
    small.fill();
    come(0, kTag);
    ASSERT_TRUE(has_begun);
    ASSERT_FALSE(receives[0].done.done());
  }
  void expect_all_received() const {
    for (const RecvRequest& receive : receives) {
      EXPECT_TRUE(receive.done.done());
      EXPECT_EQ(receive.fault, Fault::none);
    }
    EXPECT_EQ(cluster.endpoints[1]->early_count, 0U);
  }

  SmallHeap small;
  SimCluster cluster{{.node_count = 2}, 2, nullptr, nullptr, *small.heap};
  std::array<RecvRequest, 2> receives;
  bool has_begun = false;
};

TEST_F(EarlyFrames, AreTakenWhereTheRankArrives) {
  begin_leave_between();
  cluster.nodes[0]->expect(1);
  cluster.nodes[1]->commit_leave(1, 0);
  cluster.nodes[0]->install(1, cluster.endpoints[1]);
  cluster.place[1] = 0;
  expect_all_received();
}

TEST_F(EarlyFrames, AreTakenWhereTheRankStaysAfterAll) {
  begin_leave_between();
  cluster.nodes[1]->cancel_leave(1);
  expect_all_received();
}

}  // namespace
}  // namespace sterna::net
