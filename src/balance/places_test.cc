// The policy places: literal placements on synthetic networks, and what holds for every scheduling
// policy: nobody lost, nobody twice, only nodes that live, and no second thoughts.
#include <algorithm>
#include <cctype>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "balance/network.h"
#include "balance/policy.h"
#include "sched/policy.h"

namespace sterna::balance {
namespace {

/// Ranks in the order of the nodes, with these loads.
Measures job(const std::vector<std::vector<std::uint64_t>>& cpu_by_node,
             const std::vector<NodeCapacity>& nodes) {
  Measures measures;
  measures.nodes = nodes;
  for (std::uint32_t node = 0; node < cpu_by_node.size(); ++node) {
    for (const std::uint64_t cpu : cpu_by_node[node]) {
      const auto rank = static_cast<std::uint32_t>(measures.ranks.size());
      measures.ranks.push_back({rank, node, cpu, 0, 1000, true});
    }
  }
  return measures;
}

Measures job(const std::vector<std::vector<std::uint64_t>>& cpu_by_node) {
  return job(cpu_by_node, std::vector<NodeCapacity>(cpu_by_node.size(), {.speed = 1.0}));
}

Plan plan_of(std::string_view policy, const Measures& measures) {
  Result<Choice> choice = choose_policy(policy);
  check(choice.has_value(), "the policy is written well");
  Result<Plan> plan = choice.value().plan(measures);
  check(plan.has_value(), "the policy plans");
  return plan.value();
}

/// The nodes of all ranks afterwards: "0011".
std::string placed(std::string_view policy, const Measures& measures) {
  std::string nodes;
  for (const RankLoad& rank : balance::apply(measures, plan_of(policy, measures)).ranks) {
    nodes += std::to_string(rank.node);
  }
  return nodes;
}

Measures random_job(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Measures measures;
  const auto nodes = static_cast<std::uint32_t>(2 + random() % 5);
  const std::uint64_t hosts = 1 + random() % 3;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    measures.nodes.push_back(
        {.speed = random() % 6 == 0 ? 1e-6 : static_cast<double>(1 + random() % 3),
         .host = static_cast<std::uint32_t>(random() % hosts)});
  }
  const std::uint64_t ranks = random() % 48;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    // Now and then one is on its way, and in no report.
    const auto node = static_cast<std::uint32_t>(random() % nodes);
    if (measures.nodes[node].speed >= kSpeedMin && random() % 16 != 0) {
      measures.ranks.push_back({rank, node, random() % 4 == 0 ? 0 : random() % 1'000'000, 0,
                                random() % 4096, random() % 8 != 0});
    }
  }
  return measures;
}

class EverySchedulingPolicy : public testing::TestWithParam<std::string> {
 protected:
  static std::string balancer() { return "places(" + GetParam() + ")"; }
};

TEST_P(EverySchedulingPolicy, MovesEachMovableRankAtMostOnceToANodeThatLives) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Measures measures = random_job(seed);
    std::set<std::uint32_t> moved;
    for (const Move& move : plan_of(balancer(), measures)) {
      const auto rank = std::ranges::find(measures.ranks, move.rank, &RankLoad::rank);
      ASSERT_NE(rank, measures.ranks.end()) << "seed " << seed;
      EXPECT_TRUE(rank->movable) << "seed " << seed;
      EXPECT_EQ(rank->node, move.from) << "seed " << seed;
      EXPECT_NE(move.to, move.from) << "seed " << seed;
      ASSERT_LT(move.to, measures.nodes.size()) << "seed " << seed;
      EXPECT_GE(measures.nodes[move.to].speed, kSpeedMin) << "seed " << seed;
      EXPECT_TRUE(moved.insert(move.rank).second) << "seed " << seed;
    }
  }
}

TEST_P(EverySchedulingPolicy, HasNoSecondThoughts) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Measures measures = random_job(seed);
    const Plan plan = plan_of(balancer(), measures);
    EXPECT_EQ(plan, plan_of(balancer(), measures)) << "seed " << seed;
    EXPECT_TRUE(plan_of(balancer(), balance::apply(measures, plan)).empty()) << "seed " << seed;
  }
}

TEST_P(EverySchedulingPolicy, MovesOnlyWhatGains) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Measures measures = random_job(seed);
    const Plan plan = plan_of(balancer(), measures);
    EXPECT_TRUE(plan.empty() || imbalance(balance::apply(measures, plan)) <=
                                    (1.0 - kGainMin) * imbalance(measures) + 1e-9)
        << "seed " << seed;
  }
}

TEST_P(EverySchedulingPolicy, MendsAJobWithAllWorkOnOneNode) {
  const Measures measures = job({{9, 9, 9, 9, 9, 9, 9, 9}, {1, 1, 1, 1, 1, 1, 1, 1}});
  EXPECT_LE(imbalance(balance::apply(measures, plan_of(balancer(), measures))), 1.25);
}

INSTANTIATE_TEST_SUITE_P(Builtin, EverySchedulingPolicy,
                         testing::Values("flat", "spread", "burst", "gang", "steal", "cache",
                                         "memory", "parts(machine,steal)",
                                         "fallback(parts(machine,burst),steal)"),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

// Two nodes of one worker, all ranks on the first of them.
TEST(Places, KeepsBubblesWhole) {
  const Measures measures = job({{4, 4, 4, 4, 4, 4, 4, 4}, {}});
  EXPECT_EQ(placed("places(burst,block=2)", measures), "00110011");
  EXPECT_EQ(placed("places(gang,block=2)", measures), "00110011");
  EXPECT_EQ(placed("places(cache,block=2)", measures), "00110011");
  EXPECT_EQ(placed("places(spread,block=4)", measures), "00001111");
  EXPECT_EQ(placed("places(flat,block=2)", measures), "01010101");
}

TEST(Places, OpensBubblesThatAreTooHeavy) {
  EXPECT_EQ(placed("places(burst,block=8)", job({{4, 4, 4, 4, 4, 4, 4, 4}, {}})), "01010101");
  EXPECT_EQ(placed("places(burst)", job({{9, 9, 9, 9}, {1, 1, 1, 1}})), "01010101");
}

TEST(Places, GivesANodeWhatItsWorkersCanDo) {
  const Measures measures = job({{4, 4, 4, 4, 4, 4, 4, 4}, {}}, {{.speed = 3}, {.speed = 1}});
  EXPECT_EQ(placed("places(burst,block=1)", measures), "00010001");
  EXPECT_EQ(placed("places(spread,block=4)", measures), "00001100");
}

TEST(Places, DistributesOverHostsFirst) {
  const std::vector<NodeCapacity> nodes{{.speed = 2, .host = 0},
                                        {.speed = 2, .host = 0},
                                        {.speed = 2, .host = 2},
                                        {.speed = 2, .host = 2}};
  EXPECT_EQ(placed("places(spread,block=4)", job({{4, 4, 4, 4, 4, 4, 4, 4}, {}, {}, {}}, nodes)),
            "01012323");
}

TEST(Places, LeavesWhoHoldsSomethingAndWhoDoesNothing) {
  Measures measures = job({{4, 4, 4, 4, 0}, {0, 0, 0, 0}});
  measures.ranks[1].movable = false;
  EXPECT_EQ(placed("places(burst,block=2)", measures), "001101111");
}

// The names of nodes are no reason to move: here the policy's first node is not the first one.
TEST(Places, CallsNodesSoThatMemoryStays) {
  Measures measures = job({{}, {4, 4, 4, 4, 4, 4}, {}});
  for (RankLoad& rank : measures.ranks) {
    rank.bytes = rank.rank < 2 ? 1'000'000 : 1000;
  }
  const std::string nodes = placed("places(burst,block=2)", measures);
  EXPECT_EQ(nodes.substr(0, 2), "11") << nodes;
}

TEST(Places, SaysWhatIsWrongWithItsArguments) {
  const auto refusal = [](std::string_view text) {
    Result<Choice> choice = choose_policy(text);
    return choice ? std::string{} : choice.error().text;
  };
  EXPECT_EQ(refusal("places"), "");
  EXPECT_EQ(refusal("places(block=3)"), "");
  EXPECT_EQ(refusal("places(parts(machine,steal),block=4)"), "");
  EXPECT_NE(refusal("places(burst,block=0)").find("block=0"), std::string::npos);
  EXPECT_NE(refusal("places(parts(machine)").find("parts"), std::string::npos);
  EXPECT_NE(refusal("places(burst").find("do not match"), std::string::npos);
  EXPECT_NE(refusal("refine(burst)").find("nothing in brackets"), std::string::npos);
  EXPECT_NE(refusal("place").find("none, greedy, refine, places"), std::string::npos);
}

// Its program may register it until it is needed.
TEST(Places, TellsOfASchedulingPolicyThatNobodyKnowsWhenItIsAsked) {
  Result<Choice> choice = choose_policy("places(no-such)");
  ASSERT_TRUE(choice.has_value());
  Result<Plan> plan = choice.value().plan(job({{1, 1}, {}}));
  ASSERT_FALSE(plan.has_value());
  EXPECT_NE(plan.error().text.find("no-such"), std::string::npos);
}

TEST(Network, HasAPlaceForEachNodeBelowItsHost) {
  const std::vector<NodeCapacity> nodes{{.speed = 2, .host = 0},
                                        {.speed = 1, .host = 1},
                                        {.speed = 1e-6, .host = 0},
                                        {.speed = 2, .host = 0}};
  const Network network{nodes};
  EXPECT_EQ(network.topology(), "network:2 arity:16 package:3 pu:2");
  EXPECT_EQ(network.processors(), (std::vector<std::uint32_t>{0, 1, 4, 5, 6}));
  EXPECT_EQ(network.worker_count(2), 0U);
  for (const std::uint32_t node : {0U, 1U, 3U}) {
    EXPECT_EQ(network.node_of_processor(network.first_processor(node)), node);
  }
}

TEST(Network, OfOneHostHasItsNodesAsMachines) {
  const Network network{std::vector<NodeCapacity>(4, {.speed = 1.0})};
  EXPECT_EQ(network.topology(), "network:4 arity:16 pu:1");
  EXPECT_EQ(network.node_kind(), topology::PlaceKind::machine);
}

TEST(Network, OfWideNodesCountsProcessorsInGroups) {
  const std::vector<NodeCapacity> nodes{{.speed = 256}, {.speed = 128}};
  const Network network{nodes};
  EXPECT_EQ(network.worker_count(0), 64U);
  EXPECT_EQ(network.worker_count(1), 32U);
}

}  // namespace
}  // namespace sterna::balance
