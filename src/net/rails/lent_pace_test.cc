// What a rail is taken to move of loans, from when they begin and end.
#include "net/rails/lent_pace.h"

#include <vector>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr std::uint64_t kBytes = 256 << 10;
constexpr std::uint64_t kProfile = 500;
constexpr std::uint64_t kMs = 1'000'000;

/// `count` loans that begin at once at `now_ns`, and end one after the other, each after `each_ns`,
/// the first one `turns_ns` later. When the last has ended.
std::uint64_t burst(LentPace& pace, int count, std::uint64_t each_ns, std::uint64_t turns_ns,
                    std::uint64_t now_ns) {
  std::vector<LentStamp> stamps;
  for (int i = 0; i < count; ++i) {
    stamps.push_back(pace.begin(kBytes, now_ns));
  }
  now_ns += turns_ns;
  for (const LentStamp& stamp : stamps) {
    now_ns += each_ns;
    pace.end(stamp, true, turns_ns, now_ns);
  }
  return now_ns;
}

double expected_ps(std::uint64_t each_ns) {
  return static_cast<double>(each_ns) * 1000 / kBytes;
}

TEST(LentPace, IsTheProfileUntilALoanHasEnded) {
  LentPace pace;
  const LentStamp stamp = pace.begin(kBytes, kMs);
  EXPECT_EQ(pace.ps_per_byte(kProfile), kProfile);
  EXPECT_EQ(pace.bytes_under_way(), kBytes);
  pace.end(stamp, false, 0, 9 * kMs);
  EXPECT_EQ(pace.ps_per_byte(kProfile), kProfile) << "it was given back: no measure";
  EXPECT_EQ(pace.bytes_under_way(), 0U);
}

TEST(LentPace, OfABusyRailIsWhatItsBytesTakeWithoutTheTurns) {
  LentPace pace;
  std::uint64_t now_ns = kMs;
  for (int i = 0; i < 8; ++i) {
    now_ns = burst(pace, 4, 5 * kMs, 8 * kMs, now_ns) + kMs;
  }
  EXPECT_NEAR(double(pace.ps_per_byte(kProfile)), expected_ps(5 * kMs), 0.1 * expected_ps(5 * kMs));
}

TEST(LentPace, SeveralThatAreSeenToEndAtOnceCountTogether) {
  LentPace pace;
  std::uint64_t now_ns = kMs;
  for (int i = 0; i < 8; ++i) {
    const LentStamp one = pace.begin(kBytes, now_ns);
    const LentStamp other = pace.begin(kBytes, now_ns);
    now_ns += 10 * kMs;
    pace.end(one, true, 0, now_ns);
    pace.end(other, true, 0, now_ns);
  }
  EXPECT_NEAR(double(pace.ps_per_byte(kProfile)), expected_ps(5 * kMs), 0.1 * expected_ps(5 * kMs));
}

TEST(LentPace, ALoanByAnIdleRailSaysOnlyThatItIsNoSlower) {
  LentPace fresh;
  const std::uint64_t fresh_ns = burst(fresh, 1, 50 * kMs, 0, kMs);
  EXPECT_EQ(fresh.ps_per_byte(kProfile), kProfile);
  burst(fresh, 1, 50 * kMs, 0, fresh_ns);
  EXPECT_EQ(fresh.ps_per_byte(1'000'000), fresh.ps_per_byte(UINT64_MAX));

  LentPace pace;
  std::uint64_t now_ns = burst(pace, 4, 5 * kMs, 0, kMs);
  const std::uint64_t before = pace.ps_per_byte(kProfile);
  now_ns = burst(pace, 1, 50 * kMs, 0, now_ns);
  EXPECT_EQ(pace.ps_per_byte(kProfile), before);
  burst(pace, 1, 2 * kMs, 0, now_ns);
  EXPECT_NEAR(double(pace.ps_per_byte(kProfile)), expected_ps(2 * kMs), 0.1 * expected_ps(2 * kMs));
}

TEST(LentPace, OfARailThatIsNeverChosenGetsBetterUntilItIs) {
  LentPace pace;
  std::uint64_t now_ns = burst(pace, 2, 100 * kMs, 0, kMs);
  const std::uint64_t slow = pace.ps_per_byte(kProfile);
  for (int i = 0; i < 300; ++i) {
    pace.pass_over();
  }
  EXPECT_LT(pace.ps_per_byte(kProfile), slow / 3);
  for (int i = 0; i < 4; ++i) {
    now_ns = burst(pace, 4, 100 * kMs, 0, now_ns);
  }
  EXPECT_GT(pace.ps_per_byte(kProfile), slow / 2) << "it was as slow as it had been taken to be";
}

}  // namespace
}  // namespace sterna::net
