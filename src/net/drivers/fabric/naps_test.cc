// How long who waits in vain sleeps where nothing wakes it.
#include "net/drivers/fabric/naps.h"

#include <gtest/gtest.h>

namespace sterna::net::fabric {
namespace {

/// A nap that begins at `now` and lasts; its end.
std::uint64_t sleep_through(Naps& naps, std::uint64_t now) {
  naps.begin(now);
  const std::uint64_t end_ns = naps.end_ns();
  naps.end(end_ns);
  return end_ns;
}

TEST(FabricNaps, InVainTheyGrowUpToABound) {
  Naps naps;
  EXPECT_EQ(naps.end_ns(), kNever);
  std::uint64_t now = 1'000;
  for (std::uint64_t length = Naps::kShortestNs; length < Naps::kLongestNs; length *= 2) {
    const std::uint64_t end_ns = sleep_through(naps, now);
    EXPECT_EQ(end_ns - now, length);
    now = end_ns;
  }
  EXPECT_EQ(sleep_through(naps, now) - now, Naps::kLongestNs);
  EXPECT_EQ(sleep_through(naps, now) - now, Naps::kLongestNs);
  EXPECT_EQ(naps.end_ns(), kNever);
}

TEST(FabricNaps, ASecondInVainIsAThousandLooks) {
  Naps naps;
  int looks = 0;
  for (std::uint64_t now = 0; now < 1'000'000'000; ++looks) {
    now = sleep_through(naps, now);
  }
  EXPECT_LT(looks, 1'010);
}

TEST(FabricNaps, WhatComesMakesTheNextOneShort) {
  Naps naps;
  std::uint64_t now = 0;
  for (int i = 0; i < 10; ++i) {
    now = sleep_through(naps, now);
  }
  naps.shorten();
  EXPECT_EQ(sleep_through(naps, now) - now, Naps::kShortestNs);
  EXPECT_EQ(sleep_through(naps, now) - now, 2 * Naps::kShortestNs);
}

// A tick of a program that computes looks as if it would sleep, and does not.
TEST(FabricNaps, OneThatDidNotLastIsNone) {
  Naps naps;
  for (int i = 0; i < 20; ++i) {
    naps.begin(1'000);
    EXPECT_EQ(naps.end_ns(), 1'000 + Naps::kShortestNs);
    naps.end(1'001);
  }
}

}  // namespace
}  // namespace sterna::net::fabric
