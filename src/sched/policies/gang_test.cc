// Gangs with policies inside (paper 003 §3.4.4), and a policy for each level of priority: literal
// placements, and that no processor is idle beside what the gang that has it could run.
#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/testing.h"

namespace sterna::sched {
namespace {

/// A slice of 1 ms later.
std::string tick(Machine& machine) {
  machine.host.now += 1'000'000;
  machine.engine->poll_tick();
  EXPECT_TRUE(machine.engine->audit().empty());
  return machine.engine->placement();
}

TEST(GangInside, ThePolicyPlacesWhatIsInTheGangThatHasItsTurn) {
  Machine machine{"node:2 pu:2", "gang(slice=1,spread)"};
  machine.start("(tttt)(tt)");
  EXPECT_EQ(machine.engine->placement(),
            "machine 0, pu 0, pu 2, pu 1, pu 3, aside, inside, inside");
  EXPECT_EQ(tick(machine), "aside, inside, inside, inside, inside, machine 0, pu 0, pu 2");
  EXPECT_EQ(tick(machine), "machine 0, pu 0, pu 2, pu 1, pu 3, aside, inside, inside");
}

TEST(GangInside, GangsHaveThePoliciesInTurnAndKeepThem) {
  Machine machine{"pu:2", "gang(slice=1,spread,flat)"};
  machine.start("(tt)(tt)(tt)");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(machine.engine->placement(),
              "machine 0, pu 0, pu 1, aside, inside, inside, aside, inside, inside");
    EXPECT_EQ(tick(machine),
              "aside, inside, inside, machine 0, inside, inside, aside, inside, inside");
    EXPECT_EQ(tick(machine), "aside, inside, inside, aside, inside, inside, machine 0, pu 0, pu 1");
    tick(machine);
  }
}

TEST(GangInside, EachPlaceHasAnObjectOfThePolicy) {
  Machine machine{"node:2 pu:2", "gang(numa,slice=1,spread)"};
  machine.start("(tt)(tt)(tt)");
  EXPECT_EQ(machine.engine->placement(),
            "numa 0, pu 0, pu 1, numa 1, pu 2, pu 3, aside, inside, inside");
  EXPECT_EQ(tick(machine), "numa 1, pu 2, pu 3, aside, inside, inside, numa 0, pu 0, pu 1");
}

TEST(GangInside, BubblesBurstInTheirTurnAndAreWholeAgainInThePool) {
  Machine machine{"node:2 core:2 pu:1", "gang(slice=1,burst)"};
  machine.start("(tt)(tt)");
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, aside, inside, inside");
  EXPECT_EQ(machine.take(3), machine.entities()[1].get());
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, aside, inside, inside");
  EXPECT_EQ(tick(machine), "aside, inside, inside, machine 0, inside, inside");
  EXPECT_EQ(machine.host.preempted, std::vector<std::uint32_t>{3});
  machine.give_back(3);
  EXPECT_EQ(machine.take(3), machine.entities()[4].get());
}

TEST(GangInside, TicksOfThePolicyAreNotTurnsOfTheGang) {
  // Two threads on two processors: 2 ms of them are over after one; the gang has ten.
  Machine machine{"node:2 core:2 pu:1", "gang(slice=10,burst(slice=1))"};
  machine.start("(tt)(tt)");
  EXPECT_NE(machine.take(3), nullptr);
  EXPECT_NE(machine.take(2), nullptr);
  for (int ms = 0; ms < 9; ++ms) {
    EXPECT_NE(tick(machine).find("aside, inside, inside"), 0U) << ms;
  }
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, aside, inside, inside")
      << "it was regenerated";
  tick(machine);
  EXPECT_EQ(tick(machine), "aside, inside, inside, machine 0, inside, inside");
}

TEST(GangInside, AGangWithASliceOfItsOwnHasThat) {
  Machine machine{"pu:1", "gang(slice=1,flat)"};
  machine.start("(tt)(t)");
  machine.engine->update(*machine.entities()[0],
                         [](Entity& its) { static_cast<Bubble&>(its).slice_ns = 3'000'000; });
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_EQ(tick(machine), "machine 0, inside, inside, aside, inside");
  EXPECT_EQ(tick(machine), "machine 0, inside, inside, aside, inside");
  EXPECT_EQ(tick(machine), "aside, inside, inside, machine 0, inside");
}

TEST(GangInside, IdleProcessorsAreServedByThePolicyOfTheGang) {
  Machine machine{"pu:2", "gang(steal)"};
  machine.start("(tt)(t)");
  EXPECT_EQ(machine.engine->placement(), "pu 0, inside, inside, aside, inside");
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_NE(machine.take(1), nullptr) << "the other half of the gang";
  EXPECT_EQ(machine.engine->placement(), "pu 0, pu 0, pu 1, aside, inside");
}

TEST(GangInside, GangsNestAndStandInPartsAndPhases) {
  Machine nested{"node:2 core:2 pu:1", "gang(numa,slice=1,gang(core,flat))"};
  nested.start("(t)(t)(t)");
  EXPECT_EQ(nested.engine->placement(), "core 0, inside, core 2, inside, aside, inside");
  EXPECT_EQ(tick(nested), "core 2, inside, aside, inside, core 0, inside");
  Machine parts{"node:2 pu:2", "parts(numa,gang(spread),flat)"};
  parts.start("(tt)(tt)(tt)");
  EXPECT_EQ(parts.engine->placement(),
            "numa 0, pu 0, pu 1, numa 1, inside, inside, aside, inside, inside");
  Machine phases{"pu:2", "phases(gang(spread),flat)"};
  phases.start("(tt)(tt)");
  phases.engine->set_phase(1);
  EXPECT_EQ(phases.engine->placement(), "machine 0, inside, inside, machine 0, inside, inside");
  phases.engine->set_phase(2);
  EXPECT_EQ(phases.engine->placement(), "machine 0, pu 0, pu 1, aside, inside, inside");
  Machine chain{"node:2 pu:1", "fallback(gang(numa,flat),steal)"};
  chain.start("(tt)");
  EXPECT_NE(chain.take(0), nullptr);
  EXPECT_NE(chain.take(1), nullptr) << "gang leaves node 1 idle, steal does not";
}

TEST(GangInside, ShakingKeepsOneInEachPlaceAndNothingIsLost) {
  Machine machine{"node:2 pu:2", "gang(numa,slice=1,spread,burst)"};
  machine.start("(tt)(tt)(tt)(t)");
  for (int i = 0; i < 5; ++i) {
    machine.engine->shake();
    std::size_t aside = 0;
    for (const auto& entity : machine.entities()) {
      aside += entity->is_bubble() && entity->planned_place() == kAside ? 1 : 0;
    }
    EXPECT_EQ(aside, 2U) << machine.engine->placement();
    EXPECT_TRUE(machine.engine->audit().empty());
  }
}

// What the others leave idle is for the gang that has the place: if an idle processor finds
// nothing, nothing that waits in a queue of a place may run there, and somebody has the machine.
TEST(GangInside, NoProcessorIsIdleBesideWaitingThreadsOfTheGangThatHasIt) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    const char* const policies[] = {"gang(burst)", "gang(steal)", "gang(numa,spread)",
                                    "gang(numa,cache,steal)"};
    Machine machine{"node:2 core:2 pu:2", policies[random.below(4)]};
    std::string tree;
    for (std::uint64_t i = 0; i <= random.below(6); ++i) {
      tree += random.below(2) == 0 ? "(" + std::string(1 + random.below(6), 't') + ")" : "(t(tt))";
    }
    machine.start(tree);
    for (std::uint32_t i = 0; i < 16; ++i) {
      if (machine.host.running[i % 8] == nullptr) {
        machine.take(i % 8);
      }
    }
    bool has_running = false;
    for (std::uint32_t worker = 0; worker < 8; ++worker) {
      has_running = has_running || machine.host.running[worker] != nullptr;
      for (const auto& entity : machine.entities()) {
        const std::uint32_t target = entity->target_place();
        EXPECT_FALSE(machine.host.running[worker] == nullptr && entity->is_queued() &&
                     target != kAside &&
                     covers(*machine.topology->places()[target], *machine.topology->pus()[worker]))
            << "worker " << worker << " is idle: " << machine.engine->placement();
      }
    }
    EXPECT_TRUE(has_running);
  }
}

TEST(Levels, EachOfThemHasAPolicy) {
  Machine machine{"pu:2", "priorities(realtime=spread,normal=gang,batch=flat)"};
  const std::vector<Entity*> tops = machine.tree("(tt)(t)(t)(t)(t)");
  const std::uint8_t priorities[] = {kPriorityRealTime + 1, kPriorityNormal, kPriorityBatch + 1,
                                     kPriorityBatch, kPriorityIdle};
  for (std::size_t i = 0; i < 5; ++i) {
    machine.engine->update(*tops[i], [&](Entity& it) { it.priority = priorities[i]; });
    machine.engine->submit(*tops[i]);
  }
  machine.make_ready();
  EXPECT_EQ(machine.engine->placement(),
            "machine 0, pu 0, pu 1, machine 0, inside, aside, inside, machine 0, inside, "
            "machine 0, inside")
      << "what is nice is normal, and below all levels is the lowest";
  EXPECT_EQ(machine.take(0), machine.entities()[1].get());
  EXPECT_EQ(machine.take(1), machine.entities()[2].get());
  machine.host.running.assign(2, nullptr);
  EXPECT_EQ(machine.take(0), machine.entities()[4].get()) << "what is left is for the others";
  EXPECT_EQ(machine.take(1), machine.entities()[8].get());
}

TEST(Levels, MayBeNumbersAndAreSortedByUrgency) {
  Machine machine{"pu:2", "priorities(0=flat, 21 = steal, 12=spread)"};
  const std::vector<Entity*> tops = machine.tree("(tt)(tt)(tt)");
  const std::uint8_t priorities[] = {kPriorityNormal, 12, kPrioritySystem};
  for (std::size_t i = 0; i < 3; ++i) {
    machine.engine->update(*tops[i], [&](Entity& it) { it.priority = priorities[i]; });
    machine.engine->submit(*tops[i]);
  }
  EXPECT_EQ(machine.engine->placement(),
            "machine 0, inside, inside, machine 0, pu 0, pu 1, pu 0, inside, inside");
}

TEST(Levels, WhatChangesItsPriorityChangesItsPolicy) {
  Machine machine{"pu:2", "priorities(realtime=spread,normal=gang)"};
  machine.start("(tt)(tt)");
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, aside, inside, inside");
  machine.engine->set_priority(*machine.entities()[3], kPriorityRealTime);
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, machine 0, pu 0, pu 1");
  EXPECT_EQ(machine.take(0), machine.entities()[4].get());
  EXPECT_EQ(machine.take(1), machine.entities()[5].get());
  machine.engine->set_priority(*machine.entities()[3], kPriorityOfHolder);
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, aside, inside, inside");
  // One thread of it is more urgent, but in no bubble of its own.
  machine.engine->set_priority(*machine.entities()[1], kPriorityRealTime);
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, aside, inside, inside");
  EXPECT_EQ(machine.entities()[1]->effective_priority(), kPriorityRealTime);
}

TEST(Levels, ChangesReachThemThroughOtherCombinators) {
  Machine machine{"pu:2", "fallback(phases(priorities(realtime=spread,normal=flat)),steal)"};
  machine.start("(tt)");
  machine.engine->set_priority(*machine.entities()[0], kPriorityRealTime);
  EXPECT_EQ(machine.engine->placement(), "machine 0, pu 0, pu 1");
}

TEST(Levels, TheTextSaysWhatIsWrong) {
  for (const auto& [text, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"priorities", "it takes LEVEL=POLICY"},
           {"priorities()", "\"\" is no level"},
           {"priorities(flat,flat,flat)", "\"flat\" is no level with a policy; write system"},
           {"priorities(realtime=flat,gang)", "\"gang\" is no level"},
           {"priorities(soon=flat)", "\"soon=flat\" is no level"},
           {"priorities(25=flat)", "a priority from 0 to 24"},
           {"priorities(normal=flat,normal=gang)", "each once"},
           {"priorities(normal=moon)", "there is no policy \"moon\""},
           {"gang(numa,moon(2))", "does not take \"moon(2)\""},
           {"gang(burst(moon))", "policy burst does not take \"moon\""}}) {
    const auto made = make_policy(text);
    ASSERT_FALSE(made.has_value()) << text;
    EXPECT_NE(made.error().text.find(expected), std::string::npos) << made.error().text;
  }
  EXPECT_TRUE(make_policy("priorities(gang(slice=5),burst(slice=2))").has_value());
  EXPECT_TRUE(make_policy("gang(numa,slice=5,priorities(realtime=gang(core),idle=flat))"));
}

}  // namespace
}  // namespace sterna::sched
