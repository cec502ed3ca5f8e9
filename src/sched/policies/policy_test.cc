// Policies on synthetic machines: literal placements of trees of bubbles. "t" is a thread, brackets
// are a bubble; "inside" is what goes with its holder. Nothing runs.
#include <gtest/gtest.h>

#include "sched/policies/builtin.h"
#include "sched/testing.h"

namespace sterna::sched {
namespace {

using topology::PlaceKind;

struct Placement {
  const char* name;
  const char* policy;
  const char* machine;
  const char* tree;
  const char* expected;
};

std::ostream& operator<<(std::ostream& stream, const Placement& its) {
  return stream << its.name;
}

class Placements : public testing::TestWithParam<Placement> {};

TEST_P(Placements, AreAsWritten) {
  Machine machine{GetParam().machine, GetParam().policy};
  machine.start(GetParam().tree);
  EXPECT_EQ(machine.engine->placement(), GetParam().expected);
  EXPECT_TRUE(machine.engine->audit().empty());
}

constexpr Placement kPlacements[] = {
    {"Flat", "flat", "node:2 pu:2", "(tt)t", "machine 0, inside, inside, machine 0"},
    {"SpreadOneThreadAProcessor", "spread", "node:2 pu:2", "tttt", "pu 0, pu 2, pu 1, pu 3"},
    {"SpreadBubblesStayOnTheirNode", "spread", "node:2 pu:2", "(tt)(tt)",
     "numa 0, pu 0, pu 1, numa 1, pu 2, pu 3"},
    {"SpreadKeepsBubblesOnADie", "spread", "package:2 die:2 pu:2", "(tt)(tt)(tt)(tt)",
     "group 0, pu 0, pu 1, group 2, pu 4, pu 5, group 1, pu 2, pu 3, group 3, pu 6, pu 7"},
    {"SpreadMixesBubblesOnAWideLevel", "spread", "pu:4", "(tt)t(t)",
     "machine 0, pu 2, pu 3, pu 0, pu 1, inside"},
    {"SpreadKeepsThemInGroupsOfIt", "spread", "arity:2 pu:4", "(tt)t(t)",
     "group 0, pu 0, pu 1, pu 2, pu 3, inside"},
    {"SpreadOverANetwork", "spread", "network:2 pu:2", "(tt)(tt)",
     "machine 0, pu 0, pu 1, machine 1, pu 2, pu 3"},
    {"PartsOverANetwork", "parts(machine,flat)", "network:2 pu:2", "(tt)(tt)t",
     "machine 0, inside, inside, machine 1, inside, inside, machine 0"},
    {"GangsOverANetwork", "gang(machine)", "network:2 pu:2", "(t)(t)(t)",
     "machine 0, inside, machine 1, inside, aside, inside"},
    {"FlatOverANetwork", "flat", "network:2 pu:2", "(t)t", "network 0, inside, network 0"},
    {"SpreadLoneBubbleBurstsOverTheMachine", "spread", "node:2 pu:2", "(tttt)",
     "machine 0, pu 0, pu 2, pu 1, pu 3"},
    {"SpreadHeavyThreadHasAProcessorForItself", "spread", "pu:2", "tt5tt2",
     "pu 1, pu 0, pu 1, pu 1"},
    {"SpreadOpensABubbleForBalance", "spread", "node:2 pu:1", "(tttt)(tttt)(tttt)",
     "machine 0, pu 0, pu 1, pu 0, pu 1, pu 0, inside, inside, inside, inside, pu 1, inside, "
     "inside, inside, inside"},
    {"SpreadNested", "spread", "node:2 core:2 pu:1", "((tt)(tt))",
     "machine 0, numa 0, pu 0, pu 1, numa 1, pu 2, pu 3"},
    {"SpreadSmallBubbleStaysClosedOnItsProcessor", "spread", "pu:2", "(tt)(tt)",
     "pu 0, inside, inside, pu 1, inside, inside"},
    {"SpreadNothing", "spread", "pu:4", "", ""},
    {"BurstStartsOnTheMachine", "burst", "node:2 pu:2", "(tt)(tt)",
     "machine 0, inside, inside, machine 0, inside, inside"},
    {"GangHasOneOnTheMachine", "gang", "node:2 pu:2", "(tt)(tt)(t)",
     "machine 0, inside, inside, aside, inside, inside, aside, inside"},
    {"GangPerNode", "gang(numa)", "node:2 pu:2", "(tt)(tt)(t)",
     "numa 0, inside, inside, numa 1, inside, inside, aside, inside"},
    {"StealStartsOnOneProcessor", "steal", "node:2 pu:2", "(tt)(t)",
     "pu 0, inside, inside, pu 0, inside"},
    {"CacheWithoutAPastIsSpread", "cache", "node:2 pu:2", "(tt)(tt)",
     "numa 0, pu 0, pu 1, numa 1, pu 2, pu 3"},
    {"CacheToleratesMoreThanSpread", "cache", "node:2 pu:1", "(tttt)(tttt)(tttt)",
     "pu 0, inside, inside, inside, inside, pu 1, inside, inside, inside, inside, pu 0, inside, "
     "inside, inside, inside"},
    {"PartsShareByLoad", "parts(numa,spread,gang)", "node:2 pu:2", "(tt)(tt)(tt)(tt)",
     "pu 0, inside, inside, numa 1, inside, inside, pu 1, inside, inside, aside, inside, inside"},
    {"PartsInsidePartsStayThere", "parts(numa,parts(core,steal))", "node:2 core:2 pu:1",
     "(t)(t)(t)(t)", "pu 0, inside, pu 2, inside, pu 1, inside, pu 3, inside"},
    {"PartsInsideSmallerOnesHaveThoseOnly", "parts(core,parts(numa,steal))", "node:2 core:2 pu:1",
     "(t)(t)(t)(t)", "pu 0, inside, pu 1, inside, pu 2, inside, pu 3, inside"},
    {"PhasesBeginWithTheFirst", "phases(gang,spread)", "pu:2", "(t)(t)",
     "machine 0, inside, aside, inside"},
    {"FallbackPlacesAsTheFirst", "fallback(steal,spread)", "pu:2", "(t)t", "pu 0, inside, pu 0"},
};
INSTANTIATE_TEST_SUITE_P(Literal, Placements, testing::ValuesIn(kPlacements),
                         [](const auto& its) { return std::string{its.param.name}; });

TEST(Policies, WhatTheProgramPlacedIsThereWithWhatItHolds) {
  for (const char* const policy : {"flat", "burst", "steal", "spread"}) {
    SCOPED_TRACE(policy);
    Machine machine{"node:2 pu:2", policy};
    Bubble& bubble = machine.bubble();
    machine.engine->update(
        bubble, [&](Entity& it) { it.program_place = machine.place(PlaceKind::numa, 1).id; });
    Entity& inner = machine.thread(&bubble);
    machine.engine->submit(bubble);
    EXPECT_TRUE(covers(machine.place(PlaceKind::numa, 1),
                       *machine.topology->places()[inner.target_place()]));
  }
}

TEST(Policies, PlaceOfABubbleBoundsWhatHasBurstInItToo) {
  Machine machine{"node:2 pu:2"};
  machine.start("(tt)");
  machine.engine->put(*machine.entities()[1], machine.place(PlaceKind::pu, 0).id);
  machine.engine->update(*machine.entities()[0], [&](Entity& it) {
    it.program_place = machine.place(PlaceKind::numa, 1).id;
  });
  EXPECT_EQ(machine.take(0), nullptr);
  EXPECT_EQ(machine.take(2), machine.entities()[2].get());
  EXPECT_EQ(machine.take(3), machine.entities()[1].get());
  machine.host.running[3] = nullptr;  // That one is blocked.
  // The same when it joins such a bubble, and stays where it was as far as that allows.
  Bubble& inner = machine.bubble();
  Entity& thread = machine.thread(&inner);
  machine.engine->put(thread, machine.place(PlaceKind::pu, 1).id);
  machine.engine->ready(thread);
  ASSERT_TRUE(machine.engine->change_holder(static_cast<Bubble&>(*machine.entities()[0]), inner,
                                            HolderChange::stays));
  EXPECT_EQ(machine.take(1), nullptr);
  EXPECT_EQ(machine.take(3), &thread);
}

TEST(Policies, ThreadThatTheProgramPlacedIsNotSpread) {
  Machine machine{"node:2 pu:2", "spread"};
  const std::vector<Entity*> tops = machine.tree("(tt)");
  Entity& placed = *machine.entities()[2];
  machine.engine->update(
      placed, [&](Entity& it) { it.program_place = machine.place(PlaceKind::pu, 3).id; });
  machine.engine->submit(*tops[0]);
  EXPECT_EQ(machine.engine->placement(), "machine 0, pu 0, pu 3");
}

TEST(Burst, EachNodePullsABubbleWhichBurstsThere) {
  Machine machine{"node:2 core:2 pu:1", "burst"};
  machine.start("(tt)(tt)");
  // Processors 3, 0, 2, 1 come for work.
  EXPECT_EQ(machine.take(3), machine.entities()[1].get());
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, machine 0, inside, inside");
  EXPECT_EQ(machine.take(0), machine.entities()[4].get());
  EXPECT_EQ(machine.take(2), machine.entities()[2].get());
  EXPECT_EQ(machine.take(1), machine.entities()[5].get());
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, numa 0, numa 0, numa 0");
}

TEST(Burst, BubbleBurstsAtTheLevelThatTheProgramSays) {
  Machine machine{"node:2 core:2 pu:1", "burst"};
  const std::vector<Entity*> tops = machine.tree("(tttt)");
  machine.engine->update(*tops[0], [](Entity& it) { it.level = 2; });
  machine.engine->submit(*tops[0]);
  machine.make_ready();
  EXPECT_NE(machine.take(2), nullptr);
  EXPECT_EQ(machine.engine->placement(), "core 2, core 2, core 2, core 2, core 2");
  // The others are not without work beside it.
  EXPECT_NE(machine.take(3), nullptr);
  EXPECT_NE(machine.take(0), nullptr);
}

TEST(Burst, BubbleIsRegeneratedWhenItsSliceIsOver) {
  Machine machine{"node:2 core:2 pu:1", "burst(slice=10)"};
  machine.start("(tt)(tt)");
  EXPECT_NE(machine.take(3), nullptr);
  EXPECT_NE(machine.take(2), nullptr);
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, machine 0, inside, inside");
  machine.engine->poll_tick();
  machine.host.now += 5'000'000;
  machine.engine->poll_tick();  // Two threads had 5 ms each, of 20.
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, machine 0, inside, inside");
  machine.host.now += 6'000'000;
  machine.engine->poll_tick();
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, machine 0, inside, inside");
  // Running threads go on where they are, and come out of the bubble at its next place.
  machine.give_back(3);
  machine.give_back(2);
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_EQ(machine.engine->audit(), std::vector<std::string>{});
}

TEST(Burst, ItsSlicesGoWithIt) {
  Machine machine{"pu:2", "burst(slice=10)"};
  machine.start("(tt)");
  EXPECT_NE(machine.take(0), nullptr);
  ASSERT_TRUE(machine.engine->change_policy(std::move(make_policy("gang(slice=1)").value())));
  auto& bubble = static_cast<Bubble&>(*machine.entities()[0]);
  EXPECT_EQ(bubble.slice_ns, 0U);  // The program set none.
  Machine other{"pu:2", "burst(slice=10)"};
  other.start("(tt)");
  other.engine->update(*other.entities()[0],
                       [](Entity& its) { static_cast<Bubble&>(its).slice_ns = 7; });
  EXPECT_NE(other.take(0), nullptr);
  EXPECT_EQ(static_cast<Bubble&>(*other.entities()[0]).slice_ns, 7U);
}

TEST(Gang, OneWithASliceOfItsOwnHasThat) {
  Machine machine{"pu:1", "gang(slice=1)"};
  machine.start("(tt)(t)");
  machine.engine->update(*machine.entities()[0],
                         [](Entity& its) { static_cast<Bubble&>(its).slice_ns = 5'000'000; });
  EXPECT_NE(machine.take(0), nullptr);
  const auto tick = [&] {
    machine.host.now += 1'000'000;
    machine.engine->poll_tick();
    return machine.engine->placement();
  };
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(tick(), "machine 0, inside, inside, aside, inside") << i;
  }
  EXPECT_EQ(tick(), "aside, inside, inside, machine 0, inside");
  machine.give_back(0);
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_EQ(tick(), "machine 0, inside, inside, aside, inside");  // The other one has the policy's.
}

TEST(Gang, EachHasItsTurn) {
  Machine machine{"pu:2", "gang(slice=1)"};
  machine.start("(tt)(ttt)(t)");
  const auto tick = [&] {
    machine.host.now += 1'000'000;
    machine.engine->poll_tick();
    return machine.engine->placement();
  };
  EXPECT_EQ(tick(), "aside, inside, inside, machine 0, inside, inside, inside, aside, inside");
  EXPECT_EQ(tick(), "aside, inside, inside, aside, inside, inside, inside, machine 0, inside");
  EXPECT_EQ(tick(), "machine 0, inside, inside, aside, inside, inside, inside, aside, inside");
}

TEST(Gang, RunningThreadsOfTheFormerGangAreAskedToLeave) {
  Machine machine{"pu:2", "gang(slice=1)"};
  machine.start("(tt)(tt)");
  EXPECT_EQ(machine.take(0), machine.entities()[1].get());
  EXPECT_EQ(machine.take(1), machine.entities()[2].get());
  machine.host.now += 1'000'000;
  machine.engine->poll_tick();
  EXPECT_EQ(machine.host.preempted, (std::vector<std::uint32_t>{0, 1}));
  machine.give_back(0);
  EXPECT_EQ(machine.take(0), machine.entities()[4].get());
}

TEST(Gang, UnpreemptibleBubbleIsNotAskedToLeave) {
  Machine machine{"pu:1", "gang(slice=1)"};
  const std::vector<Entity*> tops = machine.tree("(t)(t)");
  machine.engine->update(*tops[0], [](Entity& it) { it.is_unpreemptible = true; });
  for (Entity* const top : tops) {
    machine.engine->submit(*top);
  }
  machine.make_ready();
  EXPECT_NE(machine.take(0), nullptr);
  machine.host.now += 1'000'000;
  machine.engine->poll_tick();
  EXPECT_TRUE(machine.host.preempted.empty());
}

TEST(Gang, IdleProcessorGetsTheNextGangWhenThisOneIsBlocked) {
  Machine machine{"pu:1", "gang"};
  const std::vector<Entity*> tops = machine.tree("(t)(t)");
  for (Entity* const top : tops) {
    machine.engine->submit(*top);
  }
  machine.engine->ready(*machine.entities()[3]);  // The first gang has nothing ready.
  EXPECT_EQ(machine.take(0), machine.entities()[3].get());
}

TEST(Gang, PlacesShareOnePool) {
  Machine machine{"node:2 pu:2", "gang(numa,slice=1)"};
  machine.start("(tt)(tt)(tt)");
  machine.host.now += 1'000'000;
  machine.engine->poll_tick();
  EXPECT_EQ(machine.engine->placement(),
            "numa 1, inside, inside, aside, inside, inside, numa 0, inside, inside");
}

TEST(Cache, ThreadsReturnToWhereTheyRan) {
  Machine machine{"node:2 pu:2", "cache"};
  machine.start("(tt)(tt)");
  // They run on the other node than they are planned on, and are distributed again.
  (void)machine.engine->change_policy(std::move(make_policy("flat").value()));
  for (const std::uint32_t worker : {2, 3, 0, 1}) {
    EXPECT_NE(machine.take(worker), nullptr);
  }
  (void)machine.engine->change_policy(std::move(make_policy("cache").value()));
  EXPECT_EQ(machine.engine->placement(), "numa 1, pu 2, pu 3, numa 0, pu 0, pu 1");
}

TEST(Memory, BubblesGoToTheirMemory) {
  Machine machine{"node:2 pu:2", "memory"};
  const std::vector<Entity*> tops = machine.tree("(tt)(tt)");
  machine.engine->update(*tops[0], [](Entity& it) { it.memory.add(1, 1 << 20); });
  machine.engine->submit(*tops[0]);
  EXPECT_EQ(machine.engine->placement(), "numa 1, pu 2, pu 3, numa 0, pu 0, pu 1");
  EXPECT_TRUE(machine.host.moved_memory.empty());
}

TEST(Memory, MemoryFollowsWhatTheLoadSendsAway) {
  Machine machine{"node:2 pu:1", "memory"};
  const std::vector<Entity*> tops = machine.tree("tttt");
  for (Entity* const top : tops) {
    machine.engine->update(*top, [](Entity& it) { it.memory.add(0, 4096); });
  }
  machine.engine->shake();
  EXPECT_EQ(machine.engine->placement(), "pu 0, pu 0, pu 1, pu 1");
  ASSERT_EQ(machine.host.moved_memory.size(), 2U);
  EXPECT_EQ(machine.host.moved_memory[0].second, 1U);
}

TEST(Phases, TheProgramSaysWhichPolicyRules) {
  Machine machine{"pu:2", "phases(gang,spread)"};
  machine.start("(t)(t)");
  machine.engine->set_phase(1);
  EXPECT_EQ(machine.engine->placement(), "pu 0, inside, pu 1, inside");
  machine.engine->set_phase(2);
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, aside, inside");
}

TEST(Priorities, UrgentOnesHaveAPolicyOfTheirOwn) {
  Machine machine{"pu:2", "priorities(spread,gang)"};
  const std::vector<Entity*> tops = machine.tree("(tt)(t)(t)");
  machine.engine->update(*tops[0], [](Entity& it) { it.priority = kPriorityRealTime; });
  for (Entity* const top : tops) {
    machine.engine->submit(*top);
  }
  machine.make_ready();
  EXPECT_EQ(machine.engine->placement(), "machine 0, pu 0, pu 1, machine 0, inside, aside, inside");
  EXPECT_EQ(machine.take(0), machine.entities()[1].get());
  EXPECT_EQ(machine.take(1), machine.entities()[2].get());
}

TEST(Fallback, TheNextPolicyIsAskedByIdleProcessors) {
  Machine machine{"pu:2", "fallback(flat,steal)"};
  machine.start("t");
  EXPECT_NE(machine.take(1), nullptr);
  Machine gangs{"node:2 pu:1", "fallback(gang(numa),steal)"};
  gangs.start("(tt)");
  EXPECT_NE(gangs.take(0), nullptr);
  EXPECT_NE(gangs.take(1), nullptr) << "gang leaves node 1 idle, steal does not";
}

TEST(PolicyText, SaysWhatIsWrong) {
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"no such", "there is no policy \"no such\""},
           {"gang(", "do not match"},
           {"gang(numa))", "do not match"},
           {"gang(moon)", "does not take \"moon\""},
           {"gang(slice=x)", "is no time slice"},
           {"flat(numa)", "it takes nothing"},
           {"parts(numa)", "does not take"},
           {"fallback(gang,moon)", "there is no policy \"moon\""},
           {"phases()", "there is no policy"}}) {
    const auto made = make_policy(text);
    ASSERT_FALSE(made.has_value()) << text;
    EXPECT_NE(made.error().text.find(expected), std::string::npos) << made.error().text;
  }
  EXPECT_TRUE(make_policy("fallback( parts(numa, gang, burst(slice=2)), steal )").has_value());
}

TEST(PolicyText, PartsThatTheMachineDoesNotHaveAreRefused) {
  Machine machine{"pu:2"};
  const Result<> changed =
      machine.engine->change_policy(std::move(make_policy("parts(numa,gang)").value()));
  ASSERT_FALSE(changed.has_value());
  EXPECT_NE(changed.error().text.find("this machine has no numa"), std::string::npos);
}

}  // namespace
}  // namespace sterna::sched
