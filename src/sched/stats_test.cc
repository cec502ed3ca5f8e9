// Statistics: any number of memory nodes, and attributes that the program synthesises.
#include <gtest/gtest.h>

#include "sched/testing.h"

namespace sterna::sched {
namespace {

TEST(MemoryOfNodes, AllNodesCountHoweverManyThereAre) {
  MemoryMap map;
  for (std::uint32_t node = 0; node < 100; ++node) {
    map.add(node, node + 1);
    map.add(node, 1);
  }
  EXPECT_EQ(map.total(), 100U * 101 / 2 + 100);
  EXPECT_EQ(map.on(0), 2U);
  EXPECT_EQ(map.on(99), 101U);
  EXPECT_EQ(map.on(100), 0U);
  MemoryMap twice = map;
  twice.add(map);
  EXPECT_EQ(twice.total(), 2 * map.total());
  map.move_to(7);
  EXPECT_EQ(map.on(7), twice.total() / 2);
  EXPECT_EQ(map.on(8), 0U);
  MemoryMap none;
  none.move_to(3);
  none.add(3, 0);
  EXPECT_EQ(none.total(), 0U);
}

TEST(MemoryOfNodes, WhoHasNonePaysForNone) {
  EXPECT_LE(sizeof(MemoryMap), 4 * sizeof(void*));
}

TEST(MemoryOfNodes, ABubbleOverManyNodesHasTheSum) {
  Machine machine{"node:16 pu:1", "memory"};
  const std::vector<Entity*> tops = machine.tree("(tttttttttttttttt)");
  for (std::uint32_t i = 0; i < 16; ++i) {
    machine.engine->update(*machine.entities()[1 + i],
                           [&](Entity& it) { it.memory.add(15 - i, 4096 * (i + 1)); });
  }
  const Stats stats = machine.engine->stats(*tops[0]);
  EXPECT_EQ(stats.memory.total(), 4096U * 136);
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(stats.memory.on(15 - i), 4096U * (i + 1));
  }
  machine.engine->submit(*tops[0]);
  for (std::uint32_t i = 0; i < 16; ++i) {  // Also the smallest, on the last node.
    EXPECT_EQ(machine.entities()[1 + i]->target_place(),
              machine.place(topology::PlaceKind::pu, 15 - i).id);
  }
}

TEST(Attributes, AreSynthesisedAsTheProgramSays) {
  Machine machine{"pu:1"};
  const std::vector<Entity*> tops = machine.tree("(t(tt)t)");
  Engine& engine = *machine.engine;
  const std::uint64_t values[] = {0, 9, 0, 4, 0, 7};  // By entity; those with 0 have none.
  for (std::size_t i = 0; i < 6; ++i) {
    engine.update(*machine.entities()[i], [&](Entity& it) {
      for (std::size_t index = 0; index < kAttributes && values[i] != 0; ++index) {
        it.set_attribute(index, values[i]);
      }
    });
  }
  engine.set_synthesis(1, [](std::uint64_t a, std::uint64_t b) { return std::min(a, b); });
  engine.set_synthesis(2, [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
  engine.set_synthesis(3, [](std::uint64_t a, std::uint64_t b) { return a * b; });
  EXPECT_EQ(engine.stats(*tops[0]).attributes, (std::array<std::uint64_t, 4>{20, 4, 9, 252}));
  EXPECT_EQ(engine.stats(*machine.entities()[2]).attributes[1], 4U) << "of one value: itself";
  EXPECT_EQ(engine.stats(*machine.entities()[4]).attributes[1], 0U) << "of none";
  // A 0 that was set counts.
  engine.update(*machine.entities()[4], [](Entity& it) { it.set_attribute(1, 0); });
  EXPECT_EQ(engine.stats(*tops[0]).attributes[1], 0U);
  engine.set_synthesis(1, Engine::sum);
  EXPECT_EQ(engine.stats(*tops[0]).attributes[1], 20U);
}

}  // namespace
}  // namespace sterna::sched
