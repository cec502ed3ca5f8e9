// Steal on synthetic machines: who gets what when a processor has nothing to run.
#include <algorithm>

#include <gtest/gtest.h>

#include "sched/testing.h"

namespace sterna::sched {
namespace {

using topology::PlaceKind;

TEST(Steal, WholeBubbleComesWhenTheVictimKeepsSomething) {
  Machine machine{"node:2 pu:2", "steal"};
  machine.start("(tt)(tt)");
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_NE(machine.take(3), nullptr);
  EXPECT_EQ(machine.engine->placement(), "pu 3, inside, inside, pu 0, inside, inside");
}

TEST(Steal, LoneBubbleIsHalved) {
  Machine machine{"node:2 pu:2", "steal"};
  machine.start("(tttt)");
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_NE(machine.take(1), nullptr);
  EXPECT_EQ(machine.engine->placement(), "pu 0, pu 0, pu 1, pu 1, pu 0");
}

TEST(Steal, NearestVictimComesFirst) {
  Machine machine{"node:2 core:2 pu:2", "steal"};
  // 0 to 5 wait on the other node, 6 to 8 on the other core of this one, 9 and 10 on the same core:
  // the farther, the more.
  const std::vector<Entity*> tops = machine.tree("ttttttttttt");
  for (std::uint32_t i = 0; i < tops.size(); ++i) {
    machine.engine->submit(*tops[i]);
    machine.engine->put(*tops[i], machine.place(PlaceKind::pu, i < 6 ? 0 : i < 9 ? 4 : 6).id);
  }
  machine.make_ready();
  constexpr std::uint32_t kThief = 7;
  const auto take_next = [&] {
    machine.host.running[kThief] = nullptr;  // What it had is blocked.
    const Entity* const taken = machine.take(kThief);
    return std::ranges::find(tops, taken) - tops.begin();
  };
  EXPECT_EQ(take_next(), 9);
  EXPECT_EQ(machine.engine->placement(),
            "pu 0, pu 0, pu 0, pu 0, pu 0, pu 0, pu 4, pu 4, pu 4, pu 7, pu 6");
  // One is left to each processor that has nothing to run: it is about to take it.
  EXPECT_EQ(take_next(), 6);
  EXPECT_EQ(take_next(), 7);
  EXPECT_EQ(take_next(), 0);
  EXPECT_EQ(machine.engine->placement(),
            "pu 7, pu 0, pu 0, pu 0, pu 0, pu 0, pu 7, pu 7, pu 4, pu 7, pu 6");
  EXPECT_TRUE(machine.engine->audit().empty());
}

TEST(Steal, BubbleStaysWhoseWaitingThreadIsFixedElsewhere) {
  Machine machine{"node:2 pu:2", "steal"};
  const std::vector<Entity*> tops = machine.tree("(t)");
  Entity& fixed = *static_cast<Bubble*>(tops.front())->first();
  machine.engine->update(
      fixed, [&](Entity& it) { it.program_place = machine.place(PlaceKind::numa, 1).id; });
  machine.engine->submit(*tops.front());
  machine.make_ready();
  EXPECT_EQ(machine.take(1), nullptr);
  EXPECT_EQ(machine.engine->placement(), "pu 0, numa 1");
  EXPECT_EQ(machine.take(2), &fixed);
}

TEST(Steal, SettledThreadsStay) {
  Machine machine{"pu:2", "steal"};
  const std::vector<Entity*> tops = machine.tree("tt");
  for (Entity* const top : tops) {
    machine.engine->update(*top, [](Entity& it) { it.is_settled = true; });
    machine.engine->submit(*top);
  }
  machine.make_ready();
  EXPECT_NE(machine.take(0), nullptr);
  EXPECT_EQ(machine.take(1), nullptr);
}

}  // namespace
}  // namespace sterna::sched
