// Loops: the chunks of each scheme as the literature has them, and every iteration once on real
// workers.
#include "sched/loop.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/policies/builtin.h"
#include "threads/team_fixture.h"

namespace sterna::sched {
namespace {

using Sizes = std::vector<std::uint64_t>;

/// What one after the other gets who ask in turn; of the central schemes it is all the same.
Sizes sizes_of(const LoopPlan& plan, std::uint32_t only_party = ~0U) {
  auto chunks = LoopChunks::make(plan);
  Sizes sizes;
  for (std::uint32_t party = 0, empty = 0; empty < plan.parties;
       party = only_party != ~0U ? only_party : (party + 1) % plan.parties) {
    const LoopRange range = chunks->next(only_party != ~0U ? only_party : party);
    empty = range.size() != 0 ? 0 : empty + 1;
    if (range.size() != 0) {
      sizes.push_back(range.size());
    }
  }
  return sizes;
}

// 1000 iterations for 4 processors: the example of the literature.
TEST(LoopChunks, GuidedIsThatOfPolychronopoulosAndKuck) {
  EXPECT_EQ(
      sizes_of({.count = 1000, .parties = 4, .scheme = LoopScheme::guided}),
      (Sizes{250, 188, 141, 106, 79, 59, 45, 33, 25, 19, 14, 11, 8, 6, 4, 3, 3, 2, 1, 1, 1, 1}));
  EXPECT_EQ(sizes_of({.count = 100, .parties = 4, .scheme = LoopScheme::guided, .chunk = 10}),
            (Sizes{25, 19, 14, 11, 10, 10, 10, 1}));
}

TEST(LoopChunks, TrapezoidIsThatOfTzenAndNi) {
  EXPECT_EQ(sizes_of({.count = 1000, .parties = 4, .scheme = LoopScheme::trapezoid}),
            (Sizes{125, 117, 109, 101, 93, 85, 77, 69, 61, 53, 45, 37, 28}));
  EXPECT_EQ(
      sizes_of(
          {.count = 100, .parties = 2, .scheme = LoopScheme::trapezoid, .chunk = 4, .first = 16}),
      (Sizes{16, 15, 14, 13, 12, 11, 10, 9}));
}

TEST(LoopChunks, FactoringIsThatOfHummelSchonbergAndFlynn) {
  EXPECT_EQ(sizes_of({.count = 1000, .parties = 4, .scheme = LoopScheme::factoring}),
            (Sizes{125, 125, 125, 125, 63, 63, 63, 63, 31, 31, 31, 31, 16, 16, 16, 16,
                   8,   8,   8,   8,   4,  4,  4,  4,  2,  2,  2,  2,  1,  1,  1,  1}));
}

TEST(LoopChunks, StaticAndDynamicOnes) {
  EXPECT_EQ(sizes_of({.count = 10, .parties = 4, .scheme = LoopScheme::block}),
            (Sizes{3, 3, 2, 2}));
  EXPECT_EQ(sizes_of({.count = 10, .parties = 4, .scheme = LoopScheme::dynamic, .chunk = 4}),
            (Sizes{4, 4, 2}));
  auto chunks =
      LoopChunks::make({.count = 10, .parties = 2, .scheme = LoopScheme::cyclic, .chunk = 2});
  std::vector<std::uint64_t> begins;
  for (LoopRange range = chunks->next(1); range.size() != 0; range = chunks->next(1)) {
    begins.push_back(range.begin);
  }
  EXPECT_EQ(begins, (std::vector<std::uint64_t>{2, 6}));
}

TEST(LoopChunks, AffinityTakesOfItsOwnThenFromTheEndOfTheFullest) {
  // Its own 250 by quarters of what is left, as Markatos and LeBlanc; then of those of the others,
  // which are equal: the first.
  auto chunks = LoopChunks::make({.count = 1000, .parties = 4, .scheme = LoopScheme::affinity});
  Sizes own;
  LoopRange range;
  for (range = chunks->next(1); range.begin >= 250 && range.end <= 500; range = chunks->next(1)) {
    own.push_back(range.size());
  }
  EXPECT_EQ(own, (Sizes{63, 47, 35, 27, 20, 15, 11, 8, 6, 5, 4, 3, 2, 1, 1, 1, 1}));
  EXPECT_EQ(range.begin, 250U - 63U);
  EXPECT_EQ(range.end, 250U);
  range = chunks->next(1);  // The next fullest one: party 2.
  EXPECT_EQ(range.begin, 750U - 63U);
}

TEST(LoopChunks, ClusteredStaysInItsGroup) {
  // 9 parties in groups of 3: the second group has [300, 600).
  const LoopPlan plan{.count = 900, .parties = 9, .scheme = LoopScheme::clustered};
  auto chunks = LoopChunks::make(plan);
  std::uint64_t sum = 0;
  for (LoopRange range = chunks->next(4); range.size() != 0; range = chunks->next(4)) {
    EXPECT_GE(range.begin, 300U);
    EXPECT_LE(range.end, 600U);
    sum += range.size();
  }
  EXPECT_EQ(sum, 300U);
}

TEST(LoopChunks, HierarchicalLeavesItsGroupWhenThatIsEmpty) {
  LoopPlan plan{.count = 900, .parties = 9, .scheme = LoopScheme::hierarchical};
  auto chunks = LoopChunks::make(plan);
  std::uint64_t sum = 0;
  bool has_left = false;
  for (LoopRange range = chunks->next(4); range.size() != 0; range = chunks->next(4)) {
    const bool is_own = range.begin >= 300 && range.end <= 600;
    EXPECT_FALSE(is_own && has_left);
    EXPECT_TRUE(is_own || sum >= 300);
    has_left = has_left || !is_own;
    sum += range.size();
  }
  EXPECT_EQ(sum, 900U);
}

TEST(LoopChunks, AnyPlanHandsOutEachIterationOnce) {
  Random random{3};
  for (int i = 0; i < 4000; ++i) {
    LoopPlan plan{.count = random.below(i % 4 == 0 ? 5 : 700),
                  .parties = static_cast<std::uint32_t>(1 + random.below(20)),
                  .scheme = static_cast<LoopScheme>(random.below(kLoopSchemeCount)),
                  .chunk = random.below(3) == 0 ? random.below(50) : 0,
                  .first = random.below(3) == 0 ? random.below(100) : 0,
                  .group = static_cast<std::uint32_t>(random.below(6))};
    SCOPED_TRACE(std::string{to_string(plan.scheme)} + ", " + std::to_string(plan.count) + " for " +
                 std::to_string(plan.parties) + ", chunk " + std::to_string(plan.chunk) +
                 ", first " + std::to_string(plan.first));
    auto chunks = LoopChunks::make(plan);
    std::vector<int> seen(plan.count);
    std::vector<std::uint32_t> open(plan.parties);
    std::iota(open.begin(), open.end(), 0);
    while (!open.empty()) {
      const std::size_t at = random.below(open.size());
      const LoopRange range = chunks->next(open[at]);
      if (range.size() == 0) {
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      ASSERT_LE(range.end, plan.count);
      for (std::uint64_t k = range.begin; k < range.end; ++k) {
        ++seen[k];
      }
    }
    ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(plan.count));
  }
}

TEST(LoopChunks, LargeCountsDoNotOverflow) {
  for (std::uint32_t s = 0; s < kLoopSchemeCount; ++s) {
    auto chunks = LoopChunks::make({.count = (std::uint64_t{1} << 62) - 1,
                                    .parties = 3,
                                    .scheme = static_cast<LoopScheme>(s),
                                    .chunk = std::uint64_t{1} << 56});
    std::uint64_t sum = 0;
    for (std::uint32_t party = 0; party < 3; ++party) {
      for (LoopRange range = chunks->next(party); range.size() != 0; range = chunks->next(party)) {
        sum += range.size();
      }
    }
    EXPECT_EQ(sum, (std::uint64_t{1} << 62) - 1) << to_string(static_cast<LoopScheme>(s));
  }
}

TEST(LoopSchemes, HaveNames) {
  for (std::uint32_t s = 0; s < kLoopSchemeCount; ++s) {
    const auto scheme = static_cast<LoopScheme>(s);
    EXPECT_EQ(to_loop_scheme(to_string(scheme)), scheme);
  }
  EXPECT_EQ(to_loop_scheme("guidance"), std::nullopt);
}

class Loops : public testing::TestWithParam<LoopScheme> {};
INSTANTIATE_TEST_SUITE_P(Schemes, Loops,
                         testing::Values(LoopScheme::block, LoopScheme::cyclic, LoopScheme::dynamic,
                                         LoopScheme::guided, LoopScheme::trapezoid,
                                         LoopScheme::factoring, LoopScheme::affinity,
                                         LoopScheme::clustered, LoopScheme::hierarchical),
                         [](const auto& its) { return std::string{to_string(its.param)}; });

TEST_P(Loops, RunEachIterationOnceOnRealWorkers) {
  const threads::TestTeam team{4};
  std::vector<std::atomic<int>> seen(10'000);
  auto loop = [&] {
    parallel_for(*team, 100, 10'000,
                 [&](std::uint64_t i) {
                   seen[i].fetch_add(1, std::memory_order_relaxed);
                   if (i % 500 == 0) {
                     threads::yield();
                   }
                 },
                 {.scheme = GetParam(), .parties = 7});
  };
  team.run(loop);
  loop();  // From a kernel thread.
  for (std::size_t i = 0; i < seen.size(); ++i) {
    ASSERT_EQ(seen[i].load(), i < 100 ? 0 : 2) << i;
  }
}

TEST_P(Loops, NestAndRunInBubbles) {
  auto topology = topology::Topology::synthetic("node:2 pu:2");
  ASSERT_TRUE(topology);
  auto scheduler = Scheduler::open({.topology = topology.value().get(),
                                    .workers = topology.value()->pus(),
                                    .policy = std::move(make_policy("spread").value())});
  ASSERT_TRUE(scheduler);
  const threads::TestTeam team{4, {.dispatch = scheduler.value().get()}};
  scheduler.value()->attach(*team);
  std::atomic<std::uint64_t> sum{0};
  team.run([&] {
    parallel_for(*team, 0, 20,
                 [&](std::uint64_t i) {
                   parallel_for(*team, 0, 50, [&](std::uint64_t j) { sum.fetch_add(i * j); },
                                {.scheme = GetParam(), .scheduler = scheduler.value().get()});
                 },
                 {.scheme = GetParam(), .scheduler = scheduler.value().get()});
  });
  EXPECT_EQ(sum.load(), std::uint64_t{190} * 1225);
  EXPECT_TRUE(scheduler.value()->root().empty());
}

}  // namespace
}  // namespace sterna::sched
