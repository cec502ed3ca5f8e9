// The chunks of a node: which is taken, and that none is lost or given twice.
#include "net/drivers/shm/bulk_pool.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace sterna::net::shm {
namespace {

constexpr std::uint32_t kChunks = 16;
constexpr std::size_t kShort = 1000;
constexpr std::size_t kLong = 8000;

class ShmBulkPool : public testing::Test {
 protected:
  void finish(std::uint32_t chunk) { segment->chunk_is_busy[chunk].store(0); }

  std::unique_ptr<Segment> segment = std::make_unique<Segment>();
  BulkPool pool{*segment, kChunks, 1024};
};

TEST_F(ShmBulkPool, ShortPacketsTakeWhatAReceiverIsDoneWith) {
  const std::uint32_t first = pool.try_acquire(3, kShort);
  for (int i = 0; i < 100; ++i) {
    finish(first);
    EXPECT_EQ(pool.try_acquire(3, kShort), first);
  }
}

TEST_F(ShmBulkPool, AsManyChunksAreInUseAsShortPacketsAreUnderWay) {
  std::vector<std::uint32_t> under_way{pool.try_acquire(3, kShort), pool.try_acquire(3, kShort)};
  std::vector<std::uint32_t> used = under_way;
  for (int i = 0; i < 100; ++i) {
    finish(under_way.front());
    under_way.erase(under_way.begin());
    under_way.push_back(pool.try_acquire(3, kShort));
    used.push_back(under_way.back());
  }
  std::ranges::sort(used);
  EXPECT_EQ(std::ranges::distance(used.begin(), std::ranges::unique(used).begin()), 2);
}

TEST_F(ShmBulkPool, LongPacketsGoThroughAllChunksInTurn) {
  for (std::uint32_t i = 0; i < 5 * kChunks; ++i) {
    const std::uint32_t chunk = pool.try_acquire(3, kLong);
    EXPECT_EQ(chunk, i % kChunks);
    finish(chunk);
  }
}

// Receivers that finish in any order, one that never does and dies: against plain lists.
TEST_F(ShmBulkPool, EveryChunkIsWithOneAtATimeInAnyOrder) {
  Random random{5};
  constexpr std::uint32_t kReceivers = 4;
  std::vector<std::uint32_t> held[kReceivers];
  const auto is_held = [&](std::uint32_t chunk) {
    return std::ranges::any_of(
        held, [&](const auto& list) { return std::ranges::find(list, chunk) != list.end(); });
  };
  for (int i = 0; i < 20'000; ++i) {
    const auto receiver = static_cast<std::uint32_t>(random.below(kReceivers));
    std::vector<std::uint32_t>& list = held[receiver];
    if (random.chance(0.5)) {
      const std::uint32_t chunk = pool.try_acquire(receiver, random.chance(0.5) ? kShort : kLong);
      const std::size_t held_count =
          held[0].size() + held[1].size() + held[2].size() + held[3].size();
      ASSERT_EQ(chunk == BulkPool::kNone, list.size() >= kChunks / 2 || held_count == kChunks);
      if (chunk != BulkPool::kNone) {
        ASSERT_LT(chunk, kChunks);
        ASSERT_FALSE(is_held(chunk));
        ASSERT_EQ(segment->chunk_is_busy[chunk].load(), 1);
        list.push_back(chunk);
      }
    } else if (random.chance(0.01)) {
      pool.reclaim(receiver);
      list.clear();
    } else if (!list.empty()) {
      const auto place = list.begin() + static_cast<std::ptrdiff_t>(random.below(list.size()));
      if (random.chance(0.1)) {
        pool.release_unsent(*place);
      } else {
        finish(*place);
      }
      list.erase(place);
    }
  }
}

}  // namespace
}  // namespace sterna::net::shm
