// When a process that yields takes its processor for shared, with times that are given; and where
// it goes. That a home is another processor for each process is all that spreads them.
#include <set>

#include <gtest/gtest.h>

#include "progress/home.h"

namespace sterna::progress {
namespace {

constexpr std::uint64_t kShort = HomeWatch::kSharedNs - 1;
constexpr std::uint64_t kLong = HomeWatch::kSharedNs;
constexpr HomeWatch::Rule kRule = HomeWatch::kOfOneCaller;

struct Yields {
  /// How often it went home.
  int of(std::uint32_t count, std::uint64_t each_ns) {
    int times = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      times += watch.has_yielded(now_ns, now_ns + each_ns) ? 1 : 0;
      now_ns += each_ns;
    }
    return times;
  }
  HomeWatch watch{kRule};
  std::uint64_t now_ns = 5'000'000'000;
};

TEST(Home, WhoHasItsProcessorAloneStays) {
  Yields yields;
  EXPECT_EQ(yields.of(100'000, kShort), 0);
}

TEST(Home, AFewLongYieldsAreNotEnoughAndAShortOneBeginsAnew) {
  Yields yields;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(yields.of(kRule.in_a_row - 1, kLong), 0);
    EXPECT_EQ(yields.of(1, kShort), 0);
  }
  EXPECT_EQ(yields.of(kRule.in_a_row, kLong), 1);
}

TEST(Home, WhoSharesAtHomeGoesThereLessAndLessOften) {
  Yields yields;
  EXPECT_EQ(yields.of(kRule.in_a_row, kLong), 1);
  std::uint64_t pause_ns = kRule.pause_ns;
  for (int i = 0; i < 14; ++i) {
    const std::uint64_t begin_ns = yields.now_ns;
    while (yields.of(1, kLong) == 0) {
    }
    const std::uint64_t took_ns = yields.now_ns - begin_ns;
    EXPECT_GE(took_ns, pause_ns);
    EXPECT_LE(took_ns, pause_ns + kRule.in_a_row * kLong);
    pause_ns = std::min(2 * pause_ns, HomeWatch::kPauseNsMax);
  }
  EXPECT_EQ(pause_ns, HomeWatch::kPauseNsMax);
}

TEST(Home, WhoWasAloneThereGoesAgainAsSoon) {
  Yields yields;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(yields.of(kRule.in_a_row, kLong), 1);
    EXPECT_EQ(yields.of(kRule.pause_ns / kShort, kShort), 0);
    yields.now_ns += kShort;
  }
}

TEST(Home, WhoIsOneOfSeveralGoesAsSoonAgainOnlyIfThatHasHelped) {
  constexpr HomeWatch::Rule kOf = HomeWatch::kOfSeveral;
  Yields yields{.watch = HomeWatch{kOf}};
  const auto goes_after_ns = [&] {
    const std::uint64_t begin_ns = yields.now_ns;
    while (yields.of(1, kLong) == 0) {
    }
    return yields.now_ns - begin_ns;
  };
  EXPECT_EQ(yields.of(kOf.in_a_row, kLong), 1);
  EXPECT_EQ(yields.of(kOf.helped - 1, kShort), 0);  // Here and there a short one is none.
  EXPECT_GE(goes_after_ns(), kOf.pause_ns - kOf.helped * kShort);
  EXPECT_GE(goes_after_ns(), 2 * kOf.pause_ns);
  EXPECT_EQ(yields.of(kOf.helped, kShort), 0);
  yields.now_ns += 4 * kOf.pause_ns;
  EXPECT_EQ(yields.of(kOf.in_a_row, kLong), 1);
  EXPECT_LT(goes_after_ns(), kOf.pause_ns + kOf.in_a_row * kLong);
}

TEST(Home, IsAnotherProcessorForEachProcessOfAHost) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  EXPECT_EQ(home_in(allowed, 3), -1);
  for (const int processor : {1, 4, 5, CPU_SETSIZE - 1}) {
    CPU_SET(processor, &allowed);
  }
  std::set<int> homes;
  for (std::uint32_t index = 0; index < 4; ++index) {
    const int home = home_in(allowed, index);
    EXPECT_TRUE(CPU_ISSET(home, &allowed));
    homes.insert(home);
    EXPECT_EQ(home_in(allowed, index + 4), home);
  }
  EXPECT_EQ(homes.size(), 4U);
}

TEST(Home, HowManyRunIsReadFromTheLoad) {
  EXPECT_EQ(running_in("0.20 0.18 0.12 1/80 11206\n"), 1U);
  EXPECT_EQ(running_in("10.00 8.15 7.00 123/4567 99999\n"), 123U);
  for (const char* const text : {"", "/", " /", "1/80", "0.2 x/80", "0.2 /80", "0.20 0.18 0.12",
                                 "0.2 99999999999999/3", "0.2 -1/3"}) {
    EXPECT_EQ(running_in(text), 0U) << text;
  }
}

TEST(Home, WhoHasGoneThereMayRunWhereItCouldBefore) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  for (std::uint32_t index = 0; index < 3; ++index) {
    go_home(index);
    go_elsewhere();
    cpu_set_t after;
    ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }
}

}  // namespace
}  // namespace sterna::progress
