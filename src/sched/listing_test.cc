// What Engine::list() tells of the tree: places, states, sums.
#include <gtest/gtest.h>

#include "sched/testing.h"

namespace sterna::sched {
namespace {

TEST(Listing, ShowsTheTreeWithPlacesAndStates) {
  Machine machine{"pu:2", "spread"};
  machine.start("(tt)");
  machine.engine->update(*machine.entities()[0], [](Entity& its) { its.name = "team"; });
  (void)machine.take(0);
  const std::vector<EntityInfo> infos = machine.engine->list(100);
  ASSERT_EQ(infos.size(), 3U);
  EXPECT_TRUE(infos[0].is_bubble);
  EXPECT_EQ(infos[0].name, "team");
  EXPECT_EQ(infos[0].place, "machine 0");
  EXPECT_EQ(infos[1].place, "pu 0");
  EXPECT_EQ(infos[1].depth, 1U);
  EXPECT_EQ(infos[1].state, "running");
  EXPECT_EQ(infos[1].processor, 0U);
  EXPECT_EQ(infos[2].state, "ready");
  EXPECT_EQ(machine.engine->list(2).size(), 2U);
}

TEST(Listing, ABubbleHasTheSumsOfWhatItHolds) {
  Machine machine{"pu:2", "spread"};
  machine.start("((tt)t)");
  for (const auto& entity : machine.entities()) {
    machine.engine->update(*entity, [](Entity& its) {
      its.load = its.is_bubble() ? 1 : 5;
      its.memory.add(0, 100);
    });
  }
  ASSERT_NE(machine.take(0), nullptr);
  ASSERT_NE(machine.take(1), nullptr);
  const std::vector<EntityInfo> infos = machine.engine->list(100);
  ASSERT_EQ(infos.size(), 5U);
  EXPECT_EQ(infos[0].holder, 0U);
  EXPECT_NE(infos[0].key, 0U);
  EXPECT_EQ(infos[1].holder, infos[0].key);
  EXPECT_EQ(infos[2].holder, infos[1].key);
  EXPECT_EQ(infos[0].stats.threads, 3U);
  EXPECT_EQ(infos[0].stats.running, 2U);
  EXPECT_EQ(infos[0].stats.ready, 1U);
  EXPECT_EQ(infos[0].stats.load, 15U);
  EXPECT_EQ(infos[0].stats.memory.total(), 500U);
  EXPECT_EQ(infos[0].last_place, "machine 0");
  EXPECT_EQ(infos[1].stats.threads, 2U);
  EXPECT_EQ(infos[1].stats.load, 10U);
  EXPECT_EQ(infos[1].stats.memory.total(), 300U);
  // Cut off, it is still of all.
  EXPECT_EQ(machine.engine->list(1)[0].stats.threads, 3U);
}

}  // namespace
}  // namespace sterna::sched
