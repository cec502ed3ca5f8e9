// How far the receiver of a stream calls lines ahead, on a clock of its own.
#include "net/drivers/shm/read_ahead.h"

#include <functional>

#include <gtest/gtest.h>

namespace sterna::net::shm {
namespace {

std::uint64_t test_now_ns = 1000;
std::uint64_t read_test_clock() noexcept {
  return test_now_ns;
}

/// What a packet takes when so many cells are called ahead.
using Machine = std::function<std::uint64_t(std::uint32_t cells)>;

std::uint64_t near(std::uint32_t cells) {
  return cells == 0 ? 30 : cells == 4 ? 20 : 25;
}
std::uint64_t far(std::uint32_t cells) {
  return cells == 0 ? 75 : cells == 4 ? 60 : 50;
}
std::uint64_t sender_is_behind(std::uint32_t cells) {
  return cells == 0 ? 100 : 130;
}
std::uint64_t alike(std::uint32_t cells) {
  return cells == 0 ? 100 : 97;
}

class StreamOfPackets : public testing::Test {
 protected:
  /// Polls that take `packets` each. How many cells were called with the last packet.
  std::uint32_t take(int polls, const Machine& machine, std::uint32_t packets = 64) {
    std::uint32_t cells = 0;
    for (int poll = 0; poll < polls; ++poll) {
      for (std::uint32_t count = 0; count < packets; ++count) {
        cells = ahead.cells(count);
        EXPECT_TRUE(count >= 2 || cells == 0) << "alone it may be the only one";
        took_ns += machine(cells);
        best_ns += std::min({machine(0), machine(4), machine(8)});
        test_now_ns += machine(cells);
      }
    }
    return cells;
  }
  ReadAhead ahead{read_test_clock};
  std::uint64_t took_ns = 0;
  std::uint64_t best_ns = 0;
};

TEST_F(StreamOfPackets, TakesWhatIsFastest) {
  EXPECT_EQ(take(20, near), 4);
  EXPECT_EQ(take(200, far), 8);
  EXPECT_EQ(take(200, near), 4) << "measured anew";
}

TEST_F(StreamOfPackets, CallsNothingWhereThatIsFastestOrDoesNotMatter) {
  EXPECT_EQ(take(20, sender_is_behind), 0);
  EXPECT_EQ(take(200, alike), 0);
}

TEST_F(StreamOfPackets, OneThatLostItsProcessorIsNoMeasure) {
  int packets = 0;
  EXPECT_EQ(take(20, [&](std::uint32_t cells) {
              return far(cells) + (++packets % 150 == 0 ? 1'000'000 : 0);
            }),
            8);
}

TEST_F(StreamOfPackets, MeasuringCostsLittle) {
  (void)take(20'000, sender_is_behind);
  EXPECT_LT(took_ns, best_ns + best_ns / 50);
}

TEST_F(StreamOfPackets, PollsThatTakeFewMeasureNothing) {
  EXPECT_EQ(take(1000, far, 20), 0);
}

}  // namespace
}  // namespace sterna::net::shm
