// The policies of examples/policy_burst.c and policy_gang.c on synthetic machines: literal
// placements and turns. And what holds for every policy, of these and of one more in C.
#include <gtest/gtest.h>

#include "runtime/capi/bubbles/policy_view.h"
#include "sched/policies/properties.h"

// The programs of the examples: they register their policy, and then find that there is no start.
extern "C" {
int policy_burst_main();
int policy_gang_main();
sterna_status policy_examples_start(const void*) {
  return STERNA_BUSY;
}
}

namespace sterna::runtime::capi {
namespace {

using sched::Entity;
using sched::Machine;
using topology::PlaceKind;

/// Pulls bubbles down one level at each search and opens them, takes what waits elsewhere when it
/// has nothing, and closes everything when it must place anew.
const sterna_policy kThief = {
    .size_bytes = sizeof(sterna_policy),
    .name = "my-thief",
    .summary = nullptr,
    .data = nullptr,
    .tick_ns = 10'000,
    .submit = [](sterna_view* view, sterna_entity* entity,
                 void*) { sterna_entity_put(view, entity, sterna_view_domain(view)); },
    .meet =
        [](sterna_view* view, sterna_entity* entity, sterna_place here, sterna_place processor,
           void*) {
          if (sterna_entity_is_bubble(entity) == 0) {
            return 0;
          }
          sterna_place inner = processor;
          while (inner != STERNA_NO_PLACE && inner != here &&
                 sterna_place_holder(view, inner) != here) {
            inner = sterna_place_holder(view, inner);
          }
          if (inner == STERNA_NO_PLACE) {
            return 0;  // The thread is here since the program wants it here, its bubble is not.
          }
          sterna_bubble_burst(view, entity, inner);
          sterna_view_set_slice(view, entity, 50'000);
          return 1;
        },
    .idle = [](sterna_view* view, sterna_place processor,
               void*) { return sterna_view_steal(view, processor, STERNA_NO_PLACE); },
    .tick =
        [](sterna_view* view, sterna_entity* expired, void*) {
          if (expired != nullptr) {
            sterna_bubble_gather(view, expired);
            sterna_view_ask_again(view, sterna_view_domain(view));
          }
        },
    .leave = nullptr,
    .arguments = nullptr,
    .instantiate = nullptr,
    .destroy = nullptr,
    .wake = [](sterna_view*, sterna_entity* thread,
               void*) { sterna_entity_set_word(thread, sterna_entity_word(thread) + 1); },
    .shake =
        [](sterna_view* view, void*) {
          for (sterna_entity* top = sterna_view_first(view); top != nullptr;
               top = sterna_view_next(view, top)) {
            sterna_bubble_gather(view, top);
            sterna_entity_get(view, top);
            sterna_entity_put(view, top, sterna_entity_allowed(view, top));
          }
        },
    .phase = nullptr,
    .grow = nullptr,
};

class PolicyExamples : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    if (sched::find_policy("my-thief") == nullptr) {
      ASSERT_EQ(policy_burst_main(), 1);
      ASSERT_EQ(policy_gang_main(), 1);
      ASSERT_EQ(sterna_policy_register(&kThief), STERNA_SUCCESS);
    }
  }
};
class PolicyProperties : public PolicyExamples {};
std::string word_of(const testing::TestParamInfo<const char*>& its) {
  std::string name = its.param;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
}

TEST_F(PolicyExamples, BubblesOfBurstAreDistributedAtTheirLevel) {
  Machine machine{"node:2 core:2 pu:1", "my-burst"};
  for (Entity* const top : machine.tree("(tt)(tt)")) {
    machine.engine->update(*top, [](Entity& it) { it.level = 1; });
    machine.engine->submit(*top);
  }
  machine.make_ready();
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, machine 0, inside, inside");
  // Processors 3, 0, 2, 1 come for work: each node pulls one bubble.
  EXPECT_EQ(machine.take(3), machine.entities()[1].get());
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, machine 0, inside, inside");
  EXPECT_EQ(machine.take(0), machine.entities()[4].get());
  EXPECT_EQ(machine.take(2), machine.entities()[2].get());
  EXPECT_EQ(machine.take(1), machine.entities()[5].get());
  EXPECT_EQ(machine.engine->placement(), "numa 1, numa 1, numa 1, numa 0, numa 0, numa 0");
}

TEST_F(PolicyExamples, LevelsOfBurstNest) {
  Machine machine{"node:2 core:2 pu:1", "my-burst"};
  const std::vector<Entity*> tops = machine.tree("((t)t)");
  const auto set_level = [&](std::size_t entity, std::uint32_t level) {
    machine.engine->update(*machine.entities()[entity], [&](Entity& it) { it.level = level; });
  };
  set_level(0, 1);
  set_level(1, 2);
  machine.engine->submit(*tops[0]);
  machine.make_ready();
  EXPECT_EQ(machine.take(2), machine.entities()[2].get());
  EXPECT_EQ(machine.engine->placement(), "numa 1, core 2, core 2, numa 1");
  EXPECT_EQ(machine.take(0), nullptr) << "what has burst stays there";
  EXPECT_EQ(machine.take(3), machine.entities()[3].get());
}

TEST_F(PolicyExamples, GangsHaveTheMachineInTurn) {
  Machine machine{"node:2 pu:2", "my-gang"};
  machine.start("(tt)(ttt)(t)");
  EXPECT_EQ(machine.engine->placement(),
            "aside, inside, inside, aside, inside, inside, inside, aside, inside");
  EXPECT_EQ(machine.take(1), machine.entities()[1].get()) << "whoever is idle lets the first begin";
  const auto turn = [&](std::uint64_t ns) {
    machine.host.now += ns;
    machine.engine->poll_tick();
    return machine.engine->placement();
  };
  const std::string first =
      "machine 0, inside, inside, aside, inside, inside, inside, aside, inside";
  const std::string second =
      "aside, inside, inside, machine 0, inside, inside, inside, aside, inside";
  const std::string third =
      "aside, inside, inside, aside, inside, inside, inside, machine 0, inside";
  EXPECT_EQ(machine.engine->placement(), first);
  EXPECT_EQ(turn(200'000), second);
  EXPECT_EQ(machine.host.preempted, (std::vector<std::uint32_t>{1})) << "the first leaves";
  EXPECT_EQ(turn(50'000), second) << "its slice is not over";
  EXPECT_EQ(turn(150'000), third);
  machine.give_back(1);
  EXPECT_EQ(turn(200'000), first);
  EXPECT_EQ(turn(200'000), second);
}

TEST_F(PolicyExamples, GangThatSleepsHasNoTurn) {
  Machine machine{"pu:2", "my-gang"};
  for (Entity* const top : machine.tree("(t)(t)(t)")) {
    machine.engine->submit(*top);
  }
  machine.engine->ready(*machine.entities()[1]);
  machine.engine->ready(*machine.entities()[5]);  // That of the second sleeps.
  EXPECT_EQ(machine.take(0), machine.entities()[1].get());
  EXPECT_EQ(machine.take(1), nullptr) << "the gang has both processors";
  machine.host.now += 200'000;
  machine.engine->poll_tick();
  EXPECT_EQ(machine.engine->placement(), "aside, inside, aside, inside, machine 0, inside");
  EXPECT_EQ(machine.take(1), machine.entities()[5].get());
}

TEST_P(PolicyProperties, EveryThreadEndsOnceWhereItMayRun) {
  sched::expect_that_every_thread_ends(GetParam());
}
INSTANTIATE_TEST_SUITE_P(InC, PolicyProperties,
                         testing::Values("my-burst", "my-gang", "my-thief",
                                         "fallback(my-gang,my-thief)", "phases(my-burst,my-thief)",
                                         "priorities(my-thief,my-burst)"),
                         word_of);

class PolicyIdleness : public PolicyExamples {};
TEST_P(PolicyIdleness, NoProcessorIsIdleBesideWaitingWork) {
  sched::expect_that_no_processor_is_idle(GetParam());
}
INSTANTIATE_TEST_SUITE_P(InC, PolicyIdleness,
                         testing::Values("my-thief", "fallback(my-burst,steal)"), word_of);

}  // namespace
}  // namespace sterna::runtime::capi
