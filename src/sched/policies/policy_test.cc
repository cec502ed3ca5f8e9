// Policies on synthetic machines: literal placements, and properties of random trees. Nothing runs.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

using Views = std::vector<EntityView>;
constexpr EntityView kThread{};

EntityView bubble() {
  return {.is_bubble = true};
}
EntityView thread(std::uint32_t parent, std::uint64_t load = 1) {
  return {.parent = parent, .load = load};
}

class Machine {
 public:
  explicit Machine(const std::string& description) {
    auto made = topology::Topology::synthetic(description);
    check(made.has_value(), "the machine is described well");
    topology_ = std::move(made.value());
  }
  const topology::Topology& operator*() const { return *topology_; }
  const topology::Topology* operator->() const { return topology_.get(); }

  std::vector<std::uint32_t> plan(const PolicyEntry& policy, const Views& views) const {
    std::vector<std::uint32_t> places(views.size(), kNoPlace);
    policy.plan({*topology_, topology_->root(), views}, places);
    return places;
  }
  /// "numa 0, pu 3": kind and index of each place.
  std::string text(const PolicyEntry& policy, const Views& views) const {
    std::string line;
    for (const std::uint32_t id : plan(policy, views)) {
      const topology::Place& place = *topology_->places()[id];
      line += (line.empty() ? "" : ", ") + std::string{topology::to_string(place.kind)} + " " +
              std::to_string(place.index);
    }
    return line;
  }

 private:
  std::unique_ptr<topology::Topology> topology_;
};

TEST(FlatPolicy, EverythingIsOnTheMachine) {
  const Machine machine{"node:2 pu:2"};
  EXPECT_EQ(machine.text(kFlatPolicy, {bubble(), thread(0), thread(0), kThread}),
            "machine 0, machine 0, machine 0, machine 0");
}

TEST(FlatPolicy, WhatTheProgramPlacedIsThereWithWhatItHolds) {
  const Machine machine{"node:2 pu:2"};
  EntityView placed = bubble();
  placed.program_place = machine->find(topology::PlaceKind::numa, 1)->id;
  EXPECT_EQ(machine.text(kFlatPolicy, {placed, thread(0), kThread}), "numa 1, numa 1, machine 0");
}

TEST(SpreadPolicy, OneThreadPerProcessor) {
  const Machine machine{"node:2 pu:2"};
  EXPECT_EQ(machine.text(kSpreadPolicy, {kThread, kThread, kThread, kThread}),
            "pu 0, pu 2, pu 1, pu 3");
}

TEST(SpreadPolicy, BubblesStayTogetherOnTheirNode) {
  const Machine machine{"node:2 pu:2"};
  EXPECT_EQ(
      machine.text(kSpreadPolicy, {bubble(), thread(0), thread(0), bubble(), thread(3), thread(3)}),
      "numa 0, pu 0, pu 1, numa 1, pu 2, pu 3");
}

TEST(SpreadPolicy, LoneBubbleBurstsOverTheMachine) {
  const Machine machine{"node:2 pu:2"};
  EXPECT_EQ(machine.text(kSpreadPolicy, {bubble(), thread(0), thread(0), thread(0), thread(0)}),
            "machine 0, pu 0, pu 2, pu 1, pu 3");
}

TEST(SpreadPolicy, HeavyThreadHasAProcessorForItself) {
  const Machine machine{"pu:2"};
  EXPECT_EQ(machine.text(kSpreadPolicy, {thread(kNoParent, 1), thread(kNoParent, 5),
                                         thread(kNoParent, 1), thread(kNoParent, 2)}),
            "pu 1, pu 0, pu 1, pu 1");
}

TEST(SpreadPolicy, NothingToPlaceIsFine) {
  EXPECT_EQ(Machine{"pu:4"}.text(kSpreadPolicy, {}), "");
}

TEST(SpreadPolicy, ThreadThatTheProgramPlacedIsNotMoved) {
  const Machine machine{"node:2 pu:2"};
  EntityView placed = thread(0);
  placed.program_place = machine->find(topology::PlaceKind::pu, 3)->id;
  EXPECT_EQ(machine.text(kSpreadPolicy, {bubble(), thread(0), placed}), "machine 0, pu 0, pu 3");
}

TEST(Policies, NamesFindTheirEntries) {
  EXPECT_EQ(find_policy("spread"), &kSpreadPolicy);
  EXPECT_EQ(find_policy("flat"), &kFlatPolicy);
  EXPECT_EQ(find_policy("no such"), nullptr);
}

class PolicyProperties : public testing::TestWithParam<const PolicyEntry*> {};
INSTANTIATE_TEST_SUITE_P(All, PolicyProperties,
                         testing::ValuesIn(builtin_policies().begin(), builtin_policies().end()),
                         [](const auto& its) { return std::string{its.param->name}; });

TEST_P(PolicyProperties, EveryEntityIsPlacedWhereItMayBe) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    const char* const machines[] = {"pu:1", "pu:3", "node:2 core:2 pu:2",
                                    "package:2 l3:3 core:2 pu:1"};
    const Machine machine{machines[random.below(4)]};
    Views views;
    const std::uint64_t count = random.below(60);
    for (std::uint32_t i = 0; i < count; ++i) {
      EntityView view{.is_bubble = random.below(3) == 0, .load = random.below(10)};
      if (i > 0 && random.below(2) == 0) {
        const auto parent = static_cast<std::uint32_t>(random.below(i));
        view.parent = views[parent].is_bubble ? parent : kNoParent;
      }
      if (random.below(10) == 0) {
        view.program_place = static_cast<std::uint32_t>(random.below(machine->places().size()));
      }
      views.push_back(view);
    }
    const auto places = machine.plan(*GetParam(), views);
    for (std::size_t i = 0; i < views.size(); ++i) {
      ASSERT_LT(places[i], machine->places().size()) << "entity " << i << " is not placed";
      if (views[i].program_place != kNoPlace) {
        const topology::Place& asked = *machine->places()[views[i].program_place];
        const topology::Place& planned = *machine->places()[places[i]];
        EXPECT_EQ(&topology::common_ancestor(asked, planned), &asked) << "entity " << i;
      }
    }
  }
}

TEST(SpreadPolicy, LoadsOfEqualThreadsDifferByOneAtMost) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random{seed};
    const Machine machine{"node:2 core:2 pu:2"};
    Views views(random.below(50));
    std::vector<int> counts(8);
    for (const std::uint32_t id : machine.plan(kSpreadPolicy, views)) {
      ++counts[machine->places()[id]->pu_first];
    }
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    EXPECT_LE(*most - *least, 1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sterna::sched
