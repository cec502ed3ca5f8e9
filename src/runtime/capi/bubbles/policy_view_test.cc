// What policies written in C see and do, on synthetic machines. A probe lends its view to the test,
// in the event of a phase.
#include "runtime/capi/bubbles/policy_view.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/testing.h"

namespace sterna::runtime::capi {
namespace {

using sched::Entity;
using sched::Machine;
using topology::PlaceKind;
using Words = std::vector<std::string>;

/// What the events of the policy "probe" do. One test at a time has it.
struct Probe {
  std::function<void(sterna_view*)> look;
  std::function<int(sterna_view*, sterna_place)> on_idle;
  Words heard;
};
Probe probe;

const sterna_policy kProbe = {
    .size_bytes = sizeof(sterna_policy),
    .name = "probe",
    .summary = "what a test says",
    .data = &probe,
    .tick_ns = 1000,
    .submit =
        [](sterna_view* view, sterna_entity* entity, void* data) {
          static_cast<Probe*>(data)->heard.emplace_back("submit");
          sterna_entity_put(view, entity, sterna_view_domain(view));
        },
    .meet = nullptr,
    .idle =
        [](sterna_view* view, sterna_place processor, void* data) {
          auto& its = *static_cast<Probe*>(data);
          return its.on_idle ? its.on_idle(view, processor) : 0;
        },
    .tick =
        [](sterna_view*, sterna_entity* expired, void* data) {
          if (expired != nullptr) {
            static_cast<Probe*>(data)->heard.emplace_back("expired");
          }
        },
    .leave = nullptr,
    .arguments = nullptr,
    .instantiate = nullptr,
    .destroy = nullptr,
    .wake = nullptr,
    .shake = nullptr,
    .phase =
        [](sterna_view* view, std::uint32_t, void* data) {
          if (auto& its = *static_cast<Probe*>(data); its.look) {
            its.look(view);
          }
        },
    .grow = [](sterna_view*, sterna_entity*,
               void* data) { static_cast<Probe*>(data)->heard.emplace_back("grow"); },
};

void add(const sterna_policy& policy) {
  if (sched::find_policy(policy.name) == nullptr) {
    ASSERT_EQ(sterna_policy_register(&policy), STERNA_SUCCESS);
  }
}

class PolicyView : public testing::Test {
 protected:
  PolicyView() { add(kProbe); }
  ~PolicyView() override { probe = {}; }

  static void look(Machine& machine, std::function<void(sterna_view*)> what) {
    probe.look = std::move(what);
    machine.engine->set_phase(0);
  }
  static sterna_entity* entity(const Machine& machine, std::size_t index) {
    return to_c(machine.entities()[index].get());
  }
  static sterna_place id(const Machine& machine, PlaceKind kind, std::uint32_t index) {
    return machine.place(kind, index).id;
  }
};

TEST_F(PolicyView, TellsWhereSomethingMayRun) {
  Machine machine{"node:2 pu:2", "probe"};
  machine.start("(t)t");
  machine.engine->update(*machine.entities()[0], [&](Entity& it) {
    it.program_place = id(machine, PlaceKind::numa, 1);
    it.is_settled = true;
  });
  look(machine, [&](sterna_view* view) {
    for (const std::size_t inside : {0, 1}) {
      EXPECT_FALSE(
          sterna_entity_may_run(view, entity(machine, inside), id(machine, PlaceKind::pu, 1)));
      EXPECT_TRUE(
          sterna_entity_may_run(view, entity(machine, inside), id(machine, PlaceKind::pu, 2)));
      EXPECT_EQ(sterna_entity_allowed(view, entity(machine, inside)),
                id(machine, PlaceKind::numa, 1));
    }
    EXPECT_TRUE(sterna_entity_may_run(view, entity(machine, 2), id(machine, PlaceKind::pu, 1)));
    EXPECT_FALSE(sterna_entity_may_run(view, entity(machine, 2), STERNA_NO_PLACE));
    EXPECT_EQ(sterna_entity_allowed(view, entity(machine, 2)), sterna_view_domain(view));
    EXPECT_TRUE(sterna_entity_is_settled(entity(machine, 0)));
    EXPECT_FALSE(sterna_entity_is_settled(entity(machine, 2)));
    EXPECT_EQ(sterna_entity_holder(entity(machine, 1)), entity(machine, 0));
    EXPECT_EQ(sterna_entity_holder(entity(machine, 0)), nullptr);
  });
  // The inner wish holds, where they contradict each other.
  machine.engine->update(*machine.entities()[1],
                         [&](Entity& it) { it.program_place = id(machine, PlaceKind::numa, 0); });
  look(machine, [&](sterna_view* view) {
    EXPECT_TRUE(sterna_entity_may_run(view, entity(machine, 1), id(machine, PlaceKind::pu, 1)));
    EXPECT_FALSE(sterna_entity_may_run(view, entity(machine, 1), id(machine, PlaceKind::pu, 2)));
  });
}

TEST_F(PolicyView, WordsOfEntitiesAreForgottenWithTheirPolicy) {
  Machine machine{"pu:1", "probe"};
  machine.start("t");
  sterna_entity* const thread = entity(machine, 0);
  look(machine, [&](sterna_view*) {
    EXPECT_EQ(sterna_entity_word(thread), 0U);
    sterna_entity_set_word(thread, 77);
  });
  look(machine, [&](sterna_view*) { EXPECT_EQ(sterna_entity_word(thread), 77U); });
  ASSERT_TRUE(machine.engine->change_policy(std::move(sched::make_policy("probe").value())));
  look(machine, [&](sterna_view*) { EXPECT_EQ(sterna_entity_word(thread), 0U); });
}

TEST_F(PolicyView, BubblesBurstAndAreGathered) {
  Machine machine{"node:2 pu:2", "probe"};
  machine.start("(t(tt))t");
  look(machine, [&](sterna_view* view) {
    const sterna_place node = id(machine, PlaceKind::numa, 1);
    sterna_entity_put(view, entity(machine, 1), id(machine, PlaceKind::pu, 0));
    sterna_bubble_burst(view, entity(machine, 0), node);
    sterna_bubble_burst(view, entity(machine, 2), id(machine, PlaceKind::pu, 3));
    sterna_bubble_burst(view, entity(machine, 0), STERNA_NO_PLACE);  // There is no such place.
    sterna_bubble_burst(view, entity(machine, 5), node);             // It is a thread.
  });
  EXPECT_EQ(machine.engine->placement(), "machine 0, pu 0, numa 1, pu 3, pu 3, machine 0");
  look(machine, [&](sterna_view* view) { sterna_bubble_gather(view, entity(machine, 0)); });
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, inside, inside, machine 0");
}

TEST_F(PolicyView, SlicesOfBubblesAreToldUntilTheyAreCancelled) {
  Machine machine{"pu:2", "probe"};
  machine.start("(tt)");
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_NE(machine.take(1), nullptr);
  machine.engine->poll_tick();
  const auto times_expired_in = [&](std::uint64_t ns) {
    probe.heard.clear();
    for (; ns != 0; ns -= 1000) {
      machine.host.now += 1000;
      machine.engine->poll_tick();
    }
    return std::ranges::count(probe.heard, "expired");
  };
  EXPECT_EQ(times_expired_in(20'000), 0);
  look(machine,
       [&](sterna_view* view) { sterna_view_set_slice(view, entity(machine, 0), 10'000); });
  EXPECT_EQ(times_expired_in(20'000), 4);  // Two threads of it run.
  look(machine, [&](sterna_view* view) { sterna_view_set_slice(view, entity(machine, 0), 0); });
  EXPECT_EQ(times_expired_in(20'000), 0);
  look(machine, [&](sterna_view* view) {
    sterna_view_set_slice(view, entity(machine, 0), 10'000);
    sterna_view_set_slice(view, entity(machine, 1), 1000);  // A thread: without effect.
  });
  EXPECT_EQ(times_expired_in(20'000), 4);
  look(machine, [&](sterna_view* view) { sterna_bubble_gather(view, entity(machine, 0)); });
  EXPECT_EQ(times_expired_in(20'000), 0);
}

TEST_F(PolicyView, BrowsesNearPlacesFirst) {
  Machine machine{"node:2 core:2 pu:2", "probe"};
  Words seen;
  const auto browse = [&](sterna_place from, sterna_place within, std::size_t count_max) {
    seen.clear();
    int answer = 0;
    look(machine, [&](sterna_view* view) {
      auto see = [&](sterna_place place) {
        const topology::Place& its = *machine.topology->places()[place];
        seen.push_back(std::string{topology::to_string(its.kind)} + std::to_string(its.index));
        return seen.size() == count_max ? 5 : 0;
      };
      answer = sterna_place_browse(
          view, from, within,
          [](sterna_view*, sterna_place place, void* context) {
            return (*static_cast<decltype(see)*>(context))(place);
          },
          &see);
    });
    return answer;
  };
  const sterna_place processor = id(machine, PlaceKind::pu, 5);
  EXPECT_EQ(browse(processor, STERNA_NO_PLACE, 99), 0);
  EXPECT_EQ(seen, (Words{"pu4", "core3", "pu6", "pu7", "numa0", "core0", "pu0", "pu1", "core1",
                         "pu2", "pu3"}));
  EXPECT_EQ(browse(processor, id(machine, PlaceKind::numa, 1), 99), 0);
  EXPECT_EQ(seen, (Words{"pu4", "core3", "pu6", "pu7"}));
  EXPECT_EQ(browse(processor, STERNA_NO_PLACE, 3), 5);
  EXPECT_EQ(seen, (Words{"pu4", "core3", "pu6"}));
  EXPECT_EQ(browse(id(machine, PlaceKind::core, 0), STERNA_NO_PLACE, 2), 5);
  EXPECT_EQ(seen, (Words{"core1", "pu2"}));
  EXPECT_EQ(browse(processor, id(machine, PlaceKind::numa, 0), 99), 0);  // Not around it.
  EXPECT_EQ(browse(STERNA_NO_PLACE, STERNA_NO_PLACE, 99), 0);
  EXPECT_TRUE(seen.empty());
}

TEST_F(PolicyView, StealsFromTheNearestAndNotFromOutside) {
  Machine machine{"node:2 core:2 pu:2", "probe"};
  machine.start("tttttt");
  for (std::size_t i = 0; i < 6; ++i) {  // Two on the core beside, four on the other node.
    machine.engine->put(*machine.entities()[i], id(machine, PlaceKind::pu, i < 2 ? 6 : 0));
  }
  const auto steal = [&](sterna_place within) {
    int has_some = 0;
    look(machine, [&](sterna_view* view) {
      has_some = sterna_view_steal(view, id(machine, PlaceKind::pu, 5), within);
    });
    return has_some;
  };
  EXPECT_EQ(steal(id(machine, PlaceKind::pu, 5)), 0);
  EXPECT_EQ(steal(id(machine, PlaceKind::core, 2)), 0);
  EXPECT_EQ(steal(id(machine, PlaceKind::numa, 0)), 0);  // Not around it.
  EXPECT_EQ(steal(STERNA_NO_PLACE), 1);
  EXPECT_EQ(machine.engine->placement(), "pu 5, pu 6, pu 0, pu 0, pu 0, pu 0");
  EXPECT_EQ(steal(id(machine, PlaceKind::numa, 1)), 0);  // What is left there is about to be taken.
  EXPECT_EQ(steal(STERNA_NO_PLACE), 1);
  EXPECT_EQ(machine.engine->placement(), "pu 5, pu 6, pu 5, pu 0, pu 0, pu 0");
}

TEST_F(PolicyView, ListsWhatWaitsTheNextOneFirst) {
  Machine machine{"node:2 pu:2", "probe"};
  machine.start("tt(t)t");
  machine.engine->update(*machine.entities()[1],
                         [](Entity& it) { it.priority = kPriorityRealTime; });
  machine.engine->update(*machine.entities()[4], [](Entity& it) { it.is_settled = true; });
  look(machine, [&](sterna_view* view) {
    const sterna_place all = sterna_view_domain(view);
    std::array<sterna_entity*, 4> found{};
    EXPECT_EQ(sterna_place_list_waiting(view, all, found.data(), 3), 4U);
    EXPECT_EQ(found, (std::array<sterna_entity*, 4>{entity(machine, 1), entity(machine, 0),
                                                    entity(machine, 3), nullptr}));
    EXPECT_EQ(sterna_place_list_waiting(view, all, nullptr, 5), 4U);
    EXPECT_EQ(sterna_place_list_waiting(view, STERNA_NO_PLACE, found.data(), 3), 0U);
    EXPECT_EQ(sterna_place_list_waiting(view, STERNA_PLACE_ASIDE, found.data(), 3), 0U);
    EXPECT_EQ(sterna_place_free_workers(view, all), 4U);
    sterna_entity_put(view, entity(machine, 0), STERNA_PLACE_ASIDE);
    sterna_entity_put(view, entity(machine, 1), id(machine, PlaceKind::pu, 0));
  });
  EXPECT_EQ(machine.take(0), machine.entities()[1].get());
  look(machine, [&](sterna_view* view) {
    std::array<sterna_entity*, 1> found{};
    EXPECT_EQ(sterna_place_list_waiting(view, STERNA_PLACE_ASIDE, found.data(), 1), 1U);
    EXPECT_EQ(found[0], entity(machine, 0));
    EXPECT_EQ(sterna_place_free_workers(view, sterna_view_domain(view)), 3U);
    EXPECT_EQ(sterna_place_free_workers(view, id(machine, PlaceKind::pu, 0)), 0U);
    EXPECT_EQ(sterna_place_free_workers(view, STERNA_NO_PLACE), 0U);
    // Around the thread is a closed bubble; beside it waits what is settled.
    const sterna_place all = sterna_view_domain(view);
    const sterna_place processor = id(machine, PlaceKind::pu, 3);
    EXPECT_EQ(sterna_place_movable(view, all, processor), entity(machine, 2));
    EXPECT_EQ(sterna_place_movable(view, id(machine, PlaceKind::pu, 1), processor), nullptr);
    EXPECT_EQ(sterna_place_movable(view, all, STERNA_NO_PLACE), nullptr);
    sterna_entity_put(view, entity(machine, 2), processor);
  });
  look(machine, [&](sterna_view* view) {
    EXPECT_EQ(sterna_place_movable(view, sterna_view_domain(view), id(machine, PlaceKind::pu, 2)),
              nullptr);
  });
}

// Nothing becomes ready when the gate opens: a processor that has asked would sleep beside the
// work.
TEST_F(PolicyView, IdleProcessorsAskAgainWhenTheyAreTold) {
  Machine machine{"node:2 pu:2", "probe"};
  machine.start("t");
  machine.engine->put(*machine.entities()[0], id(machine, PlaceKind::pu, 0));
  bool is_open = false;
  probe.on_idle = [&](sterna_view* view, sterna_place processor) {
    if (is_open) {
      sterna_entity_put(view, entity(machine, 0), processor);
    }
    return is_open ? 1 : 0;
  };
  EXPECT_EQ(machine.take(3), nullptr);
  EXPECT_FALSE(machine.engine->has_work(3));
  machine.host.woken.clear();
  look(machine, [&](sterna_view* view) {
    is_open = true;
    sterna_view_ask_again(view, id(machine, PlaceKind::numa, 1));
    sterna_view_ask_again(view, STERNA_NO_PLACE);
  });
  using Woken = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(machine.host.woken, (Woken{{2, 2}}));
  EXPECT_TRUE(machine.engine->has_work(3));  // Also if it was about to sleep just then.
  EXPECT_EQ(machine.take(3), machine.entities()[0].get());
  EXPECT_FALSE(machine.engine->has_work(3));
}

TEST_F(PolicyView, PolicyHearsWhatGrows) {
  Machine machine{"pu:1", "probe"};
  sched::Bubble& bubble = machine.bubble();
  machine.engine->grow(bubble);
  machine.engine->grow(machine.thread(&bubble));
  EXPECT_EQ(probe.heard, (Words{"submit", "grow"}));
}

}  // namespace
}  // namespace sterna::runtime::capi
