// When yields tell that whom one waits for is on the same processor.
#include "progress/company.h"

#include <gtest/gtest.h>

namespace sterna::progress {
namespace {

void yield(Company& company, int times, std::uint64_t ns) {
  for (int i = 0; i < times; ++i) {
    company.has_yielded(ns);
  }
}

TEST(Company, IsHereAfterYieldsThatEachLetSomebodyRunForATurn) {
  Company company;
  yield(company, 7, 20'000);
  EXPECT_FALSE(company.is_here()) << "that may have been anybody";
  yield(company, 1, 2'000);
  EXPECT_TRUE(company.is_here());
  yield(company, 1000, 20'000);
  EXPECT_TRUE(company.is_here());
}

TEST(Company, HasGoneWithOneYieldInVain) {
  Company company;
  yield(company, 100, 20'000);
  yield(company, 1, 250);
  EXPECT_FALSE(company.is_here());
  yield(company, 7, 20'000);
  EXPECT_FALSE(company.is_here());
}

TEST(Company, WhoKeepsTheProcessorForASliceIsNone) {
  Company company;
  yield(company, 100, 3'000'000);
  EXPECT_FALSE(company.is_here());
  yield(company, 8, 20'000);
  EXPECT_TRUE(company.is_here());
  yield(company, 1, 3'000'000);
  EXPECT_FALSE(company.is_here()) << "the answer may come from elsewhere within that";
}

}  // namespace
}  // namespace sterna::progress
