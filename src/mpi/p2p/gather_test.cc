// When a rank goes to the one that it talks to.
#include "mpi/p2p/gather.h"

#include <gtest/gtest.h>

#include "mpi/rank_state.h"

namespace sterna::mpi {
namespace {

/// Waits for `source`, each so long after the one before, until the rank should go; how many.
std::uint32_t waits_until_it_goes(CloseWaits& waits, std::uint64_t& now_ns, std::uint32_t source,
                                  std::uint64_t between_ns) {
  for (std::uint32_t count = 1; count < 100'000; ++count) {
    now_ns += between_ns;
    if (add_wait(waits, source, now_ns)) {
      return count;
    }
  }
  return 0;
}

TEST(Gather, CloseWaitsForOneRankLeadThere) {
  CloseWaits waits;
  std::uint64_t now_ns = 1'000'000;
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 3, 1000), 65U);  // The first one follows nothing.
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 3, 2000), 0U);
}

// Nobody went: there was no worker to go to, or it was its own.
TEST(Gather, OnlyWhoHasGoneWaitsLongerUntilTheNextTime) {
  CloseWaits waits;
  std::uint64_t now_ns = 1'000'000;
  (void)waits_until_it_goes(waits, now_ns, 3, 1000);
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 3, 1000), 64U);
  double_limit(waits);
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 3, 1000), 128U);
  double_limit(waits);
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 3, 1000), 256U);
}

TEST(Gather, AnotherRankBeginsAnew) {
  CloseWaits waits;
  std::uint64_t now_ns = 1'000'000;
  for (int i = 0; i < 10; ++i) {
    (void)waits_until_it_goes(waits, now_ns, 3, 1000);
    double_limit(waits);
  }
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 4, 1000), 65U);
}

TEST(Gather, OneLateWaitSpoilsLittle) {
  CloseWaits waits;
  std::uint64_t now_ns = 1'000'000;
  for (int i = 0; i < 41; ++i) {
    now_ns += 1000;
    EXPECT_FALSE(add_wait(waits, 3, now_ns));
  }
  now_ns += 1'000'000;
  EXPECT_FALSE(add_wait(waits, 3, now_ns));
  EXPECT_EQ(waits_until_it_goes(waits, now_ns, 3, 1000), 40U);  // 64 - (40 - 16)
}

}  // namespace
}  // namespace sterna::mpi
