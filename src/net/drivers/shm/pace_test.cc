// When the receiver of a stream calls lines ahead, on a clock of its own.
#include "net/drivers/shm/pace.h"

#include <gtest/gtest.h>

namespace sterna::net::shm {
namespace {

std::uint64_t test_now_ns = 1000;
std::uint64_t read_test_clock() noexcept {
  return test_now_ns;
}

class PaceOfStream : public testing::Test {
 protected:
  /// Polls that take 64 packets each, one in `packet_ns`. Returns of how many a line was called.
  int take(int polls, std::uint64_t packet_ns) {
    int called = 0;
    for (int poll = 0; poll < polls; ++poll) {
      for (std::uint32_t count = 0; count < 64; ++count) {
        test_now_ns += packet_ns;
        called += pace.is_fast(count) ? 1 : 0;
      }
    }
    return called;
  }
  Pace pace{read_test_clock};
};

TEST_F(PaceOfStream, IsFastWherePacketsAreTakenFast) {
  EXPECT_EQ(take(1, 20), 39);  // Behind those that were measured.
  EXPECT_EQ(take(1, 20), 62);  // But the first two of a poll.
}

TEST_F(PaceOfStream, IsNotWhereEachIsWaitedFor) {
  EXPECT_EQ(take(50, 100), 0);
}

TEST_F(PaceOfStream, IsMeasuredAnew) {
  EXPECT_GT(take(2, 20), 0);
  (void)take(20, 100);
  EXPECT_EQ(take(20, 100), 0);
  (void)take(20, 20);
  EXPECT_GT(take(20, 20), 20 * 40);
}

TEST_F(PaceOfStream, IsNotMeasuredOverPollsThatTakeFew) {
  for (int i = 0; i < 100; ++i) {
    for (std::uint32_t count = 0; count < 20; ++count) {
      EXPECT_FALSE(pace.is_fast(count));
    }
  }
}

}  // namespace
}  // namespace sterna::net::shm
