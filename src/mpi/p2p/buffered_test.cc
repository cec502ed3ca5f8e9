// Blocks of an attached buffer: when they are free again.
#include "mpi/p2p/buffered.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "memory/heap.h"
#include "mpi/rank_state.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kBytes = 1000;  // The overhead is no place for a second block.

struct Buffered : testing::Test {
  Buffered() {
    context.heap = memory::Heap::process();
    pool.base = buffer;
    pool.bytes = sizeof buffer;
  }

  /// As send_buffered() does, up to the return of Transport::send().
  BufferedMessage* begin(RankState& state) {
    BufferedMessage* const message = take_block(state, pool, kBytes);
    if (message != nullptr) {
      message->send.done.reset();
    }
    return message;
  }

  runtime::RankContext context;
  BufferPool pool;
  alignas(16) std::byte buffer[kBytes + MPI_BSEND_OVERHEAD];
};

// Its receiver may have all of a message whose sender is still to send the beginning: it has lost
// its processor, and another thread has sent the rest.
TEST_F(Buffered, ABlockIsTakenWhileItsSenderReadsIt) {
  RankState state{context};
  BufferedMessage* const message = begin(state);
  ASSERT_NE(message, nullptr);
  message->send.done.complete();
  EXPECT_FALSE(is_flushed(state, pool));
  EXPECT_FALSE(is_flushed(state, pool, pool.sent));
  EXPECT_EQ(take_block(state, pool, kBytes), nullptr);
  EXPECT_EQ(pool.first, message);
  message->is_sending.store(false, std::memory_order_release);
  EXPECT_TRUE(is_flushed(state, pool, pool.sent));
  EXPECT_TRUE(is_flushed(state, pool));
  EXPECT_EQ(begin(state), message);
}

TEST_F(Buffered, ABlockIsTakenUntilItsMessageHasLeft) {
  RankState state{context};
  BufferedMessage* const message = begin(state);
  ASSERT_NE(message, nullptr);
  message->is_sending.store(false, std::memory_order_release);
  EXPECT_FALSE(is_flushed(state, pool));
  EXPECT_EQ(take_block(state, pool, kBytes), nullptr);
  message->send.done.complete();
  EXPECT_TRUE(is_flushed(state, pool));
}

}  // namespace
}  // namespace sterna::mpi
