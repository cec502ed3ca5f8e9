// The machine as a tree: literal synthetic machines, shares of nodes, the real processors.
#include "topology/topology.h"

#include <set>

#include <gtest/gtest.h>

#include "topology/description.h"

namespace sterna::topology {
namespace {

std::unique_ptr<Topology> machine(const char* description) {
  Result<std::unique_ptr<Topology>> made = Topology::synthetic(description);
  EXPECT_TRUE(made) << (made ? "" : made.error().text);
  return std::move(made.value());
}

std::vector<std::uint32_t> indexes(const std::vector<const Place*>& pus) {
  std::vector<std::uint32_t> result;
  for (const Place* pu : pus) {
    result.push_back(pu->index);
  }
  return result;
}

TEST(Topology, TwoNodesOfFourCoresOfTwoThreads) {
  const auto topology = machine("node:2 core:4 pu:2");
  EXPECT_EQ(topology->depth_count(), 4u);
  EXPECT_EQ(topology->pu_count(), 16u);
  EXPECT_EQ(topology->count(PlaceKind::numa), 2u);
  EXPECT_EQ(topology->count(PlaceKind::core), 8u);
  EXPECT_TRUE(topology->is_synthetic());
  const Place& root = topology->root();
  EXPECT_EQ(root.kind, PlaceKind::machine);
  ASSERT_EQ(root.children.size(), 2u);
  const Place& second = *root.children[1];
  EXPECT_EQ(second.kind, PlaceKind::numa);
  EXPECT_EQ(second.child_index, 1u);
  EXPECT_EQ(second.pu_first, 8u);
  EXPECT_EQ(second.pu_count, 8u);
  EXPECT_EQ(second.cpus.text(), "8-15");
  EXPECT_EQ(second.children.size(), 4u);
  EXPECT_EQ(topology->level(2).size(), 8u);
  EXPECT_EQ(topology->level(3)[5]->os_index, 5u);
}

TEST(Topology, PackagesWithCachesKeepTheirOrder) {
  const auto topology = machine("package:2 l3:2 core:2 pu:1");
  EXPECT_EQ(topology->pu_count(), 8u);
  EXPECT_EQ(topology->count(PlaceKind::package), 2u);
  EXPECT_EQ(topology->count(PlaceKind::l3), 4u);
  const Place& pu = *topology->pus()[5];
  EXPECT_EQ(enclosing(pu, PlaceKind::l3)->index, 2u);
  EXPECT_EQ(enclosing(pu, PlaceKind::package)->index, 1u);
  EXPECT_EQ(enclosing(topology->root(), PlaceKind::pu), nullptr);
  // Parents come before their children, and contain them.
  for (const Place* place : topology->places()) {
    EXPECT_EQ(topology->places()[place->id], place);
    if (place->parent != nullptr) {
      EXPECT_LT(place->parent->id, place->id);
      EXPECT_TRUE(place->parent->cpus.includes(place->cpus));
      EXPECT_EQ(place->parent->children[place->child_index], place);
    }
  }
}

TEST(Topology, PackagesWithOwnMemoryHaveANumaLevelInside) {
  const auto topology = machine("package:2 numa:1 core:2 pu:1");
  EXPECT_EQ(topology->count(PlaceKind::numa), 2u);
  EXPECT_EQ(enclosing(*topology->pus()[3], PlaceKind::numa)->index, 1u);
  EXPECT_EQ(enclosing(*topology->pus()[3], PlaceKind::numa)->parent->kind, PlaceKind::package);
  EXPECT_EQ(topology->root().pu_count, 4u);
  EXPECT_EQ(topology->find(PlaceKind::numa, 1)->pu_first, 2u);
}

/// How many places there are at each depth: levels of hwloc, one to one.
std::vector<std::size_t> widths(const Topology& topology) {
  std::vector<std::size_t> widths;
  for (std::uint32_t depth = 0; depth < topology.depth_count(); ++depth) {
    widths.push_back(topology.level(depth).size());
  }
  return widths;
}

TEST(Topology, DiesAndCachesBesideL2AndL3AreLevels) {
  using Widths = std::vector<std::size_t>;
  const auto dies = machine("package:2 die:3 l3:2 core:2 pu:2");
  EXPECT_EQ(widths(*dies), (Widths{1, 2, 6, 12, 24, 48}));
  const Place& die = *dies->find(PlaceKind::group, 4);
  EXPECT_EQ(die.parent, dies->find(PlaceKind::package, 1));
  EXPECT_EQ(die.pu_first, 32u);
  EXPECT_EQ(die.pu_count, 8u);
  EXPECT_EQ(die.children.size(), 2u);
  EXPECT_EQ(die.children[0]->kind, PlaceKind::l3);
  EXPECT_EQ(widths(*machine("l5:2 l4:2 l3:2 core:2 pu:1")), (Widths{1, 2, 4, 8, 16, 16}));
  const auto first = machine("l2:2 l1:2 core:2 pu:1");
  EXPECT_EQ(widths(*first), (Widths{1, 2, 4, 8, 8}));
  EXPECT_EQ(enclosing(*first->pus()[3], PlaceKind::group)->index, 1u);
}

TEST(Topology, DiesAndCachesThatDivideNothingAreNoLevels) {
  EXPECT_EQ(machine("package:2 die:1 core:4 pu:1")->count(PlaceKind::group), 0u);
  EXPECT_EQ(machine("l4:1 l3:2 core:2 pu:1")->count(PlaceKind::group), 0u);
  EXPECT_EQ(machine("core:2 l1:1 pu:2")->count(PlaceKind::group), 0u);
}

TEST(Topology, DiesWithOwnMemoryHaveANumaLevelInside) {
  const auto topology = machine("package:2 die:2 numa:1 core:2 pu:1");
  EXPECT_EQ(topology->count(PlaceKind::numa), 4u);
  const Place& node = *enclosing(*topology->pus()[5], PlaceKind::numa);
  EXPECT_EQ(node.index, 2u);
  EXPECT_EQ(node.parent->kind, PlaceKind::group);
  EXPECT_EQ(node.parent->parent->kind, PlaceKind::package);
  EXPECT_EQ(node.pu_count, 2u);
}

TEST(Topology, DistanceCountsTheStepsToTheCommonAncestor) {
  const auto topology = machine("node:2 core:2 pu:2");
  const auto pus = topology->pus();
  EXPECT_EQ(distance(*pus[0], *pus[0]), 0u);
  EXPECT_EQ(distance(*pus[0], *pus[1]), 1u);
  EXPECT_EQ(distance(*pus[0], *pus[2]), 2u);
  EXPECT_EQ(distance(*pus[0], *pus[7]), 3u);
  EXPECT_EQ(&common_ancestor(*pus[4], *pus[6]), topology->root().children[1]);
  EXPECT_EQ(&common_ancestor(*pus[4], topology->root()), &topology->root());
}

TEST(Topology, NodesShareTheProcessors) {
  const auto topology = machine("core:5 pu:1");
  using Indexes = std::vector<std::uint32_t>;
  EXPECT_EQ(indexes(topology->share({0, 1})), (Indexes{0, 1, 2, 3, 4}));
  EXPECT_EQ(indexes(topology->share({0, 2})), (Indexes{0, 1}));
  EXPECT_EQ(indexes(topology->share({1, 2})), (Indexes{2, 3, 4}));
  std::multiset<std::uint32_t> used;
  for (std::uint32_t node = 0; node < 12; ++node) {
    const Indexes own = indexes(topology->share({node, 12}));
    ASSERT_EQ(own.size(), 1u);
    used.insert(own[0]);
  }
  for (std::uint32_t pu = 0; pu < 5; ++pu) {
    EXPECT_GE(used.count(pu), 2u);
    EXPECT_LE(used.count(pu), 3u);
  }
}

TEST(Topology, WorkersGetEveryNthProcessorFromTheFirstOneOn) {
  const auto topology = machine("core:6 pu:1");
  const std::vector<const Place*> pus = topology->share({0, 1});
  using Indexes = std::vector<std::uint32_t>;
  EXPECT_EQ(indexes(every_nth(pus, 0, 1, 0)), (Indexes{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(indexes(every_nth(pus, 0, 2, 0)), (Indexes{0, 2, 4}));
  EXPECT_EQ(indexes(every_nth(pus, 1, 3, 0)), (Indexes{1, 4}));
  EXPECT_EQ(indexes(every_nth(pus, 5, 9, 0)), (Indexes{5}));
  EXPECT_EQ(indexes(every_nth(pus, 0, 2, 2)), (Indexes{0, 2}));
  EXPECT_EQ(indexes(every_nth(pus, 0, 2, 5)), (Indexes{0, 2, 4, 1, 3})) << "then the gaps";
  EXPECT_EQ(indexes(every_nth(pus, 2, 2, 6)), (Indexes{2, 4, 3, 5, 2, 4})) << "then again";
}

/// "machine(group(pu pu) group(pu))".
std::string shape(const Place& place) {
  std::string text{to_string(place.kind)};
  for (const Place* const child : place.children) {
    text += (child->child_index == 0 ? "(" : " ") + shape(*child);
  }
  return text + (place.children.empty() ? "" : ")");
}

TEST(Topology, WideLevelsAreGrouped) {
  using Widths = std::vector<std::size_t>;
  EXPECT_EQ(shape(machine("arity:2 pu:3")->root()), "machine(group(pu) group(pu pu))");
  EXPECT_EQ(shape(machine("arity:4 pu:6")->root()), "machine(group(pu pu pu) group(pu pu pu))");
  // Levels as they are where they are narrow enough.
  EXPECT_EQ(widths(*machine("arity:4 node:4 core:4 pu:2")), (Widths{1, 4, 16, 32}));
  EXPECT_EQ(widths(*machine("arity:4 node:2 core:16 pu:2")), (Widths{1, 2, 8, 32, 64}));
  // Groups of groups, none wider than allowed.
  EXPECT_EQ(widths(*machine("arity:4 pu:64")), (Widths{1, 4, 16, 64}));
  EXPECT_EQ(widths(*machine("arity:8 pu:1024")), (Widths{1, 2, 16, 128, 1024}));
  for (const std::uint32_t count : {5U, 7U, 9U, 17U, 33U, 65U, 100U, 1000U}) {
    const auto topology = machine(("arity:4 pu:" + std::to_string(count)).c_str());
    EXPECT_EQ(topology->pu_count(), count);
    for (const Place* const place : topology->places()) {
      EXPECT_LE(place->children.size(), 4U) << count;
      std::uint32_t inside = 0;
      for (const Place* const child : place->children) {
        EXPECT_EQ(child->pu_first, place->pu_first + inside);
        EXPECT_TRUE(place->cpus.includes(child->cpus));
        inside += child->pu_count;
      }
      EXPECT_TRUE(place->children.empty() || inside == place->pu_count);
    }
  }
}

TEST(Topology, ANetworkHoldsMachines) {
  const auto topology = machine("network:3 node:2 pu:2");
  EXPECT_EQ(shape(topology->root()),
            "network(machine(numa(pu pu) numa(pu pu)) machine(numa(pu pu) numa(pu pu)) "
            "machine(numa(pu pu) numa(pu pu)))");
  EXPECT_EQ(topology->pu_count(), 12U);
  EXPECT_EQ(topology->pus()[9]->index, 9U);
  EXPECT_EQ(topology->pus()[9]->os_index, 1U) << "of its machine";
  EXPECT_EQ(enclosing(*topology->pus()[9], PlaceKind::machine)->index, 2U);
  EXPECT_EQ(topology->find(PlaceKind::machine, 1)->pu_first, 4U);
  EXPECT_EQ(distance(*topology->pus()[3], *topology->pus()[4]), 3U);
  EXPECT_TRUE(topology->is_synthetic());
  EXPECT_EQ(topology->text().substr(0, 47), "network 0 [3 machines]\n  machine 0 [0-3]\n    nu");
  EXPECT_EQ(shape(machine("network:3 arity:2 pu:1")->root()),
            "network(group(machine(pu)) group(machine(pu) machine(pu)))");
}

TEST(Topology, WrongDescriptionsAreRefused) {
  for (const char* description :
       {"", "network:2", "network:0 pu:1", "network:x pu:1", "arity:2", "arity:0 pu:2",
        "network:99999 pu:1", "core", "core:x", "bogus:2 pu:1", "core:2 node:2 zebra"}) {
    Result<std::unique_ptr<Topology>> made = Topology::synthetic(description);
    ASSERT_FALSE(made) << description;
    EXPECT_NE(made.error().text.find("for example"), std::string::npos);
  }
}

TEST(Topology, AMachineThatWouldTakeMinutesToLoadIsRefused) {
  for (const char* description :
       {"pu:20000", "pu:99999999999999999999", "node:100 core:100 pu:1", "network:4096 pu:33",
        "node:64(memory=1024) core:64 pu:4"}) {
    Result<std::unique_ptr<Topology>> made = Topology::synthetic(description);
    ASSERT_FALSE(made) << description;
  }
  EXPECT_EQ(processors_of("node:4(memory=65536) core:2 pu:8"), 64U);
  EXPECT_EQ(processors_of("2 4 2"), 16U);
}

TEST(Topology, TheRealMachineHasTheProcessorsOfThisProcess) {
  Result<CpuSet> own = current_thread_cpus();
  ASSERT_TRUE(own);
  for (const bool is_full : {false, true}) {
    Result<std::unique_ptr<Topology>> made = is_full ? Topology::detect() : Topology::flat();
    ASSERT_TRUE(made) << (made ? "" : made.error().text);
    EXPECT_EQ(made.value()->root().cpus, own.value());
    EXPECT_EQ(made.value()->pu_count(), own.value().count());
    EXPECT_NE(made.value()->text().find("pu 0 (processor "), std::string::npos);
  }
}

TEST(Topology, ABoundThreadSeesAndUsesItsPartOnly) {
  Result<CpuSet> before = current_thread_cpus();
  ASSERT_TRUE(before);
  const CpuSet last{before.value().list().back()};
  ASSERT_TRUE(bind_current_thread(last));
  EXPECT_EQ(current_thread_cpus().value(), last);
  Result<std::unique_ptr<Topology>> made = Topology::detect();
  ASSERT_TRUE(made);
  EXPECT_EQ(made.value()->pu_count(), 1u);
  EXPECT_EQ(made.value()->pus()[0]->os_index, last.list()[0]);
  ASSERT_TRUE(bind_current_thread(before.value()));
  EXPECT_FALSE(bind_current_thread(CpuSet{}));
  EXPECT_FALSE(bind_current_thread(CpuSet{60'000}));
}

TEST(CpuSet, ListsAndText) {
  CpuSet cpus{0, 1, 2, 8, 130};
  EXPECT_EQ(cpus.text(), "0-2,8,130");
  EXPECT_EQ(cpus.count(), 5u);
  EXPECT_TRUE(cpus.includes(CpuSet{1, 130}));
  EXPECT_FALSE(cpus.includes(CpuSet{3}));
  EXPECT_FALSE(CpuSet{1}.includes(cpus));
  CpuSet sum{500};
  sum.add(cpus);
  EXPECT_EQ(sum.count(), 6u);
  EXPECT_EQ(CpuSet{}.text(), "");
  EXPECT_EQ((CpuSet{1}), (CpuSet{1}));
}

}  // namespace
}  // namespace sterna::topology
