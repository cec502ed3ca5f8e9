// What is learnt of waits whose lengths are given: no clock, no waiting.
#include "base/spin_budget.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/random.h"

namespace sterna {
namespace {

constexpr std::uint64_t kPrice = 20'000;

/// What waits of these lengths cost with this budget, or (`fixed` >= 0) with that fixed time.
std::uint64_t cost_of(SpinBudget* budget, std::uint64_t fixed, int count,
                      const std::function<std::uint64_t(int)>& length_of) {
  std::uint64_t cost = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t length = length_of(i);
    const std::uint64_t limit = budget != nullptr ? budget->begin() : fixed;
    cost += length <= limit ? length : limit + kPrice;
    if (budget != nullptr) {
      budget->end(length <= limit ? length : length + kPrice / 2);  // Measured with the wake-up.
    }
  }
  return cost;
}

TEST(SpinBudgetTest, LooksForThePriceOfASleepWhileNothingIsKnown) {
  SpinBudget budget{kPrice};
  EXPECT_EQ(budget.begin(), kPrice);
  EXPECT_EQ(budget.begin(), kPrice);
}

TEST(SpinBudgetTest, LongWaitsAreNotLookedForButOneInMany) {
  SpinBudget budget{kPrice};
  (void)cost_of(&budget, 0, 64, [](int) { return 1'000'000; });
  EXPECT_EQ(budget.learnt(), 0U);
  std::uint32_t explored = 0;
  for (std::uint32_t i = 0; i < 4 * SpinBudget::kExploreEvery; ++i) {
    explored += budget.begin() != 0 ? 1 : 0;
  }
  EXPECT_GE(explored, 3U);
  EXPECT_LE(explored, 5U);
}

TEST(SpinBudgetTest, ShortWaitsAreLookedForUntilTheyEnd) {
  SpinBudget budget{kPrice};
  (void)cost_of(&budget, 0, 64, [](int) { return 3'000; });
  EXPECT_GE(budget.learnt(), 3'000U);
  EXPECT_LE(budget.learnt(), 4'000U) << "and hardly longer";
}

TEST(SpinBudgetTest, WhatHasBecomeShortIsFoundOut) {
  SpinBudget budget{kPrice};
  (void)cost_of(&budget, 0, 1000, [](int) { return 1'000'000; });
  ASSERT_EQ(budget.learnt(), 0U);
  // A sleep hides how short they are, one look in kExploreEvery shows it.
  (void)cost_of(&budget, 0, 40'000, [](int) { return 2'000; });
  EXPECT_GE(budget.learnt(), 2'000U);
  EXPECT_LE(budget.learnt(), 3'000U);
}

TEST(SpinBudgetTest, OfMixedWaitsTheShortOnesAreLookedFor) {
  SpinBudget budget{kPrice};
  (void)cost_of(&budget, 0, 1000, [](int i) { return i % 2 == 0 ? 2'000 : 5'000'000; });
  EXPECT_GE(budget.learnt(), 2'000U);
  EXPECT_LE(budget.learnt(), 3'000U);
}

TEST(SpinBudgetTest, CostsLessThanAnyFixedTimeWhereTheWaitsChange) {
  // Phases of 4000 waits: near ones, far ones, mixed ones.
  const auto lengths = [](int i) -> std::uint64_t {
    constexpr std::uint64_t kPhases[3][2] = {{3'000, 9'000}, {80'000, 900'000}, {1'000, 400'000}};
    Random random{static_cast<std::uint64_t>(i)};
    return kPhases[i / 4000 % 3][random.below(2)];
  };
  SpinBudget budget{kPrice};
  const std::uint64_t adaptive = cost_of(&budget, 0, 24'000, lengths);
  for (std::uint64_t fixed = 0; fixed <= 2 * kPrice; fixed += 500) {
    EXPECT_LT(adaptive, cost_of(nullptr, fixed, 24'000, lengths)) << "against " << fixed;
  }
}

TEST(SpinBudgetTest, NeverLosesMoreThanTwiceAndWhatItExplores) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random of_seed{seed};
    const std::uint64_t span = std::uint64_t{1} << (8 + of_seed.below(16));
    const auto lengths = [&](int i) {
      Random random{seed * 100'000 + static_cast<std::uint64_t>(i)};
      return random.below(span);
    };
    SpinBudget budget{kPrice};
    std::uint64_t ideal = 0;  // Of who knows each length before.
    for (int i = 0; i < 5000; ++i) {
      ideal += std::min(lengths(i), kPrice);
    }
    EXPECT_LE(cost_of(&budget, 0, 5000, lengths), 2 * ideal + ideal / 4) << "seed " << seed;
  }
}

TEST(SpinBudgetTest, WhatIsNotKnownOfLongWaitsDoesNotHideShortOnes) {
  SpinBudget budget{20};
  const auto wait = [&](int count, std::uint64_t length) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t limit = budget.begin();
      budget.end_if_all_is_known(length <= limit ? length : budget.price(), limit);
    }
  };
  wait(1'000, 500);
  EXPECT_EQ(budget.learnt(), 0U);
  wait(4'000, 3);
  EXPECT_GE(budget.learnt(), 3U);
  EXPECT_LE(budget.learnt(), 4U);
  // One in eight is near, but later than it pays to look: the short ones that it finds while it
  // looks for so long must not keep it there.
  for (int i = 0; i < 500; ++i) {
    wait(1, 15);
    wait(7, 500);
  }
  EXPECT_EQ(budget.learnt(), 0U);
}

TEST(SpinBudgetTest, AtNoPriceItNeverLooks) {
  SpinBudget budget{0};
  EXPECT_EQ(budget.begin(), 0U);
  budget.end(5);
  EXPECT_EQ(budget.begin(), 0U);
}

TEST(SpinBudgetTest, CountsTurnsAsWellAsTime) {
  SpinBudget budget{12};
  for (int i = 0; i < 64; ++i) {
    (void)budget.begin();
    budget.end(2);
  }
  EXPECT_EQ(budget.learnt(), 3U) << "two turns in vain, and the one that finds it";
}

TEST(SpinBudgetTest, LearnsAnewWhenThePriceChanges) {
  SpinBudget budget{1000};
  for (int i = 0; i < 100; ++i) {
    budget.end(2500);  // Longer than any sleep is worth.
  }
  EXPECT_EQ(budget.learnt(), 0U);
  budget.change_price(5000);
  EXPECT_EQ(budget.price(), 5000U);
  EXPECT_EQ(budget.begin(), 5000U);
  for (int i = 0; i < 100; ++i) {
    budget.end(2500);
  }
  EXPECT_GE(budget.learnt(), 2500U);
  EXPECT_LT(budget.learnt(), 3000U);
}

}  // namespace
}  // namespace sterna
