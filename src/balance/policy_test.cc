// Every policy on the same jobs: literal plans where the answer is known, else properties.
#include "balance/policy.h"

#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace sterna::balance {
namespace {

Measures job(std::vector<std::vector<std::uint64_t>> cpu_by_node) {
  Measures measures;
  for (std::uint32_t node = 0; node < cpu_by_node.size(); ++node) {
    measures.nodes.push_back({.speed = 1.0});
    for (const std::uint64_t cpu : cpu_by_node[node]) {
      const auto rank = static_cast<std::uint32_t>(measures.ranks.size());
      measures.ranks.push_back({rank, node, cpu, 0, 0, true});
    }
  }
  return measures;
}

Measures random_job(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Measures measures;
  const std::uint32_t nodes = 1 + random() % 8;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    measures.nodes.push_back({.speed = 1.0 + static_cast<double>(random() % 3)});
  }
  const std::uint32_t ranks = random() % 64;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto node = static_cast<std::uint32_t>(random() % nodes);
    measures.ranks.push_back({rank, node, random() % 1000, 0, 0, random() % 8 != 0});
  }
  return measures;
}

Plan plan_of(const PolicyEntry& entry, const Measures& measures) {
  Result<Plan> plan = entry.plan(measures, {});
  check(plan.has_value(), plan ? "" : plan.error().text.c_str());
  return plan.value();
}

class EveryPolicy : public testing::TestWithParam<const PolicyEntry*> {};

TEST_P(EveryPolicy, MovesEachMovableRankAtMostOnceFromWhereItIs) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Measures measures = random_job(seed);
    std::set<std::uint32_t> moved;
    for (const Move& move : plan_of(*GetParam(), measures)) {
      const RankLoad& rank = measures.ranks.at(move.rank);
      EXPECT_TRUE(rank.movable) << "seed " << seed;
      EXPECT_EQ(rank.node, move.from) << "seed " << seed;
      EXPECT_NE(move.from, move.to) << "seed " << seed;
      EXPECT_LT(move.to, measures.nodes.size()) << "seed " << seed;
      EXPECT_TRUE(moved.insert(move.rank).second) << "seed " << seed;
    }
  }
}

TEST_P(EveryPolicy, GivesTheSamePlanForTheSameMeasures) {
  const Measures measures = random_job(7);
  EXPECT_EQ(plan_of(*GetParam(), measures), plan_of(*GetParam(), measures));
}

TEST_P(EveryPolicy, LeavesABalancedJobAlone) {
  EXPECT_TRUE(plan_of(*GetParam(), job({{5, 5}, {5, 5}})).empty());
  EXPECT_TRUE(plan_of(*GetParam(), job({{}, {}})).empty());
  EXPECT_TRUE(plan_of(*GetParam(), job({{0, 0}, {0}})).empty());
}

INSTANTIATE_TEST_SUITE_P(Builtin, EveryPolicy,
                         testing::ValuesIn(builtin_policies().begin(), builtin_policies().end()),
                         [](const auto& entry) { return std::string{entry.param->name}; });

TEST(Greedy, PutsTheHeaviestFirst) {
  const Measures measures = job({{8, 4, 3, 1}, {}});
  EXPECT_EQ(plan_of(*find_policy("greedy"), measures), (Plan{{.rank = 1, .from = 0, .to = 1},
                                                             {.rank = 2, .from = 0, .to = 1},
                                                             {.rank = 3, .from = 0, .to = 1}}));
}

TEST(Refine, MovesTheOneRankThatMends) {
  const Measures measures = job({{10, 10, 10}, {10}});
  const Plan plan = plan_of(*find_policy("refine"), measures);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].to, 1U);
  EXPECT_DOUBLE_EQ(imbalance(apply(measures, plan)), 1.0);
}

TEST(Refine, ExchangesWhenNoSingleMoveHelps) {
  const Measures measures = job({{6, 6}, {4, 4}});
  const Plan plan = plan_of(*find_policy("refine"), measures);
  EXPECT_EQ(plan.size(), 2U);
  EXPECT_DOUBLE_EQ(imbalance(apply(measures, plan)), 1.0);
}

TEST(Refine, NeverMakesAJobWorse) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Measures measures = random_job(seed);
    const Plan plan = plan_of(*find_policy("refine"), measures);
    EXPECT_LE(imbalance(apply(measures, plan)), imbalance(measures) + 1e-12) << "seed " << seed;
  }
}

TEST(Refine, BalancesAHotSpotWithFewMoves) {
  Measures measures;
  for (std::uint32_t node = 0; node < 16; ++node) {
    measures.nodes.push_back({.speed = 1.0});
    for (std::uint32_t i = 0; i < 16; ++i) {
      measures.ranks.push_back({node * 16 + i, node, node == 3 ? 700U : 100U + i, 0, 0, true});
    }
  }
  const Plan plan = plan_of(*find_policy("refine"), measures);
  EXPECT_LE(imbalance(apply(measures, plan)), 1.05);
  EXPECT_LE(plan.size(), measures.ranks.size() * 8 / 100);
}

TEST(Imbalance, IsTheSlowestOverTheAverage) {
  EXPECT_DOUBLE_EQ(imbalance(job({{30}, {10}})), 1.5);
}

}  // namespace
}  // namespace sterna::balance
