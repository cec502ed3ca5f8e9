// Which chunk a packet gets: the pool alone, its chunks read at once or not at all.
#include "net/drivers/shm/bulk_pool.h"

#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "net/drivers/test_job.h"

namespace sterna::net::shm {
namespace {

constexpr std::uint32_t kChunkBytes = 22 << 10;
constexpr std::size_t kShort = 1000;
constexpr std::size_t kLong = kChunkBytes;

class ChunksOfAPool : public testing::Test {
 protected:
  /// The receiver has read it.
  void read(std::uint32_t chunk, std::uint32_t receiver = 1) {
    pool.head(chunk).idle.store(idle_at(receiver));
  }
  /// Different chunks that `count` packets get, each read before the next is sent.
  std::set<std::uint32_t> stream(std::size_t bytes, int count) {
    std::set<std::uint32_t> chunks;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t chunk = pool.try_acquire(1, bytes);
      chunks.insert(chunk);
      read(chunk);
    }
    return chunks;
  }
  /// As many as there are for `receiver`, which reads none of them.
  std::uint32_t fill(std::uint32_t receiver, std::size_t bytes = kLong) {
    std::uint32_t count = 0;
    while (pool.try_acquire(receiver, bytes) != BulkPool::kNone) {
      ++count;
    }
    return count;
  }

  TestJob job{1};
  SegmentMapping segment =
      std::move(SegmentMapping::map(job.node(0).host().segment_fd, 0, kSegmentBytes).value());
  BulkPool pool{*segment, kChunkCountMax, kChunkBytes, kChunkCountMax};
};

TEST_F(ChunksOfAPool, FitTheSegment) {
  EXPECT_LE(Segment::kChunksBegin + kChunkCountMax * Segment::chunk_stride(kChunkBytes),
            kSegmentBytes);
}

TEST_F(ChunksOfAPool, AStreamOfLongPacketsGoesThroughMoreThanACacheHolds) {
  stream(kLong, 1000);
  EXPECT_GE(stream(kLong, 96).size() * kChunkBytes, std::size_t{2} << 20);
}

TEST_F(ChunksOfAPool, TheOneThatIsFreeLongestIsTakenByALongPacket) {
  stream(kLong, 1000);
  const std::uint32_t chunk = pool.try_acquire(1, kLong);
  read(chunk);
  EXPECT_FALSE(stream(kLong, 90).contains(chunk));
}

TEST_F(ChunksOfAPool, ShortPacketsStayInFew) {
  EXPECT_LE(stream(kShort, 1000).size(), 8U);
}

TEST_F(ChunksOfAPool, FewLongPacketsTouchFew) {
  EXPECT_LE(stream(kLong, 6).size(), 8U);
}

TEST_F(ChunksOfAPool, OneReceiverLeavesAQuarterToTheOthers) {
  EXPECT_EQ(fill(1), kChunkCountMax / 4 * 3);
  EXPECT_FALSE(pool.has_room(1));
  EXPECT_TRUE(pool.has_room(2));
  EXPECT_EQ(fill(2, kShort), kChunkCountMax / 4);
  EXPECT_FALSE(pool.has_room(2));
}

TEST_F(ChunksOfAPool, AReceiverThatIsBehindIsSeenUntilItHasCaughtUp) {
  const std::set<std::uint32_t> chunks = stream(kLong, 1000);
  EXPECT_FALSE(pool.is_crowded());
  fill(1);
  EXPECT_TRUE(pool.is_crowded());
  for (const std::uint32_t chunk : chunks) {
    read(chunk);
  }
  stream(kLong, kChunkCountMax);
  EXPECT_FALSE(pool.is_crowded());
}

TEST_F(ChunksOfAPool, EachIsOneReceiversAtATime) {
  std::set<std::uint32_t> all;
  for (std::uint32_t i = 0; i < kChunkCountMax; ++i) {
    const std::uint32_t chunk = pool.try_acquire(i % 3, i % 2 == 0 ? kLong : kShort);
    ASSERT_LT(chunk, kChunkCountMax);
    EXPECT_TRUE(all.insert(chunk).second);
  }
  EXPECT_FALSE(pool.has_room(3));
  pool.reclaim(1);
  EXPECT_TRUE(pool.has_room(3));
}

TEST_F(ChunksOfAPool, OfTwoOneReceiverHasOne) {
  BulkPool small{*segment, 2, kChunkBytes, kChunkCountMax};
  EXPECT_NE(small.try_acquire(1, kLong), BulkPool::kNone);
  EXPECT_EQ(small.try_acquire(1, kLong), BulkPool::kNone);
  EXPECT_NE(small.try_acquire(2, kLong), BulkPool::kNone);
}

/// Where a second-level cache holds less.
class ChunksOfAStream : public testing::Test {
 protected:
  static constexpr std::uint32_t kStreamed = 32;
  static constexpr std::uint32_t kShare = kStreamed / 4 * 3;

  /// Different chunks of `count` packets, each read before the next is sent.
  std::set<std::uint32_t> stream(int count) {
    std::set<std::uint32_t> chunks;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t chunk = pool.try_acquire(1, kLong);
      chunks.insert(chunk);
      pool.head(chunk).idle.store(idle_at(1));
    }
    return chunks;
  }
  std::vector<std::uint32_t> fill(std::uint32_t receiver, std::size_t bytes) {
    std::vector<std::uint32_t> chunks;
    for (std::uint32_t chunk = pool.try_acquire(receiver, bytes); chunk != BulkPool::kNone;
         chunk = pool.try_acquire(receiver, bytes)) {
      chunks.push_back(chunk);
    }
    return chunks;
  }
  void read(const std::vector<std::uint32_t>& chunks, std::uint32_t receiver) {
    for (const std::uint32_t chunk : chunks) {
      pool.head(chunk).idle.store(idle_at(receiver));
    }
  }

  TestJob job{1};
  SegmentMapping segment =
      std::move(SegmentMapping::map(job.node(0).host().segment_fd, 0, kSegmentBytes).value());
  BulkPool pool{*segment, kChunkCountMax, kChunkBytes, kStreamed};
};

TEST_F(ChunksOfAStream, AreThoseOfTheCacheAndNoMore) {
  stream(1000);
  EXPECT_EQ(stream(1000).size(), kStreamed);
  EXPECT_EQ(pool.in_use(), kStreamed);
}

TEST_F(ChunksOfAStream, TakeTheSenderNoFurtherAheadThanTheirShare) {
  EXPECT_EQ(fill(1, kLong).size(), kShare);
  EXPECT_FALSE(pool.has_room(1));
  EXPECT_EQ(fill(2, kLong).size(), kShare) << "each has one";
  EXPECT_GT(fill(1, kShort).size(), kStreamed) << "who has many short ones takes the others";
}

TEST_F(ChunksOfAStream, AreTheSameBehindManyShortPackets) {
  const std::vector<std::uint32_t> many = fill(1, kShort);
  EXPECT_EQ(many.size(), kChunkCountMax / 4 * 3);
  read(many, 1);
  stream(1000);
  const std::set<std::uint32_t> chunks = stream(1000);
  EXPECT_EQ(chunks.size(), kStreamed);
  EXPECT_LT(*chunks.rbegin(), kStreamed);
}

TEST_F(ChunksOfAStream, AreEachOneReceiversAtATime) {
  std::set<std::uint32_t> all;
  for (std::uint32_t receiver = 1; receiver <= kChunkCountMax / kShare + 1; ++receiver) {
    for (const std::uint32_t chunk : fill(receiver, kLong)) {
      EXPECT_TRUE(all.insert(chunk).second);
    }
  }
  EXPECT_EQ(all.size(), kChunkCountMax);
  pool.reclaim(1);
  EXPECT_EQ(fill(1, kLong).size(), kShare);
}

}  // namespace
}  // namespace sterna::net::shm
