// The mechanism without policies of interest: the tree, its errors, places, priorities, statistics.
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "sched/testing.h"

namespace sterna::sched {
namespace {

using topology::PlaceKind;

std::string refusal(Machine& machine, Bubble& holder, Entity& entity) {
  const Result<> inserted = machine.engine->insert(holder, entity);
  return inserted ? "" : inserted.error().text;
}

TEST(Engine, BubbleInItselfIsRefusedByName) {
  Machine machine{"pu:1"};
  Bubble outer;
  outer.name = "outer";
  Bubble inner;
  EXPECT_NE(refusal(machine, outer, outer)
                .find("bubble \"outer\" cannot be put into bubble \"outer\": a bubble does not "
                      "hold itself"),
            std::string::npos);
  EXPECT_EQ(refusal(machine, outer, inner), "");
  EXPECT_NE(refusal(machine, inner, outer).find("does not hold itself"), std::string::npos);
  EXPECT_NE(refusal(machine, machine.engine->root(), inner).find("one holder"), std::string::npos);
  machine.engine->remove(inner);
}

TEST(Engine, WrongPlacesLevelsAndPrioritiesAreRefused) {
  Machine machine{"pu:2"};
  Bubble& root = machine.engine->root();
  Entity place;
  place.program_place = 3;
  EXPECT_NE(refusal(machine, root, place).find("its place 3 does not exist; the machine has 3"),
            std::string::npos);
  Entity level;
  level.level = 2;
  EXPECT_NE(refusal(machine, root, level).find("its level 2 does not exist; the deepest is 1"),
            std::string::npos);
  Entity priority;
  priority.priority = kPriorityCount;
  EXPECT_NE(refusal(machine, root, priority).find("its priority 25"), std::string::npos);
}

TEST(Engine, WhatAWorkerHadGoesToTheNearestPlaceWithOne) {
  Machine machine{"node:2 pu:2", "spread"};
  Entity& bound = machine.thread();
  machine.engine->update(
      bound, [&](Entity& it) { it.program_place = machine.place(PlaceKind::pu, 3).id; });
  machine.start("ttt");
  EXPECT_EQ(machine.engine->placement(), "pu 3, pu 0, pu 2, pu 1");
  machine.engine->enable_worker(3, false);
  EXPECT_EQ(machine.engine->placement(), "numa 1, pu 0, pu 2, pu 1");
  EXPECT_EQ(machine.take(3), nullptr);
  machine.engine->enable_worker(2, false);
  EXPECT_EQ(machine.engine->placement(), "machine 0, pu 0, pu 1, pu 0");
  EXPECT_TRUE(machine.engine->audit().empty());
  machine.engine->enable_worker(3, true);
  machine.engine->enable_worker(2, true);
  EXPECT_EQ(machine.engine->placement(), "pu 3, pu 0, pu 2, pu 1");
}

TEST(Engine, NestingHasAnEnd) {
  Machine machine{"pu:1"};
  std::vector<std::unique_ptr<Bubble>> chain;
  Bubble* holder = &machine.engine->root();
  std::string text;
  while (text.empty() && chain.size() < 100) {
    chain.push_back(std::make_unique<Bubble>());
    text = refusal(machine, *holder, *chain.back());
    holder = chain.back().get();
  }
  EXPECT_NE(text.find("nested 64 deep"), std::string::npos);
  chain.pop_back();
  // A chain built from below is not deeper either.
  Bubble outer;
  Bubble middle;
  EXPECT_EQ(refusal(machine, outer, middle), "");
  EXPECT_NE(refusal(machine, *chain.back(), outer).find("nested"), std::string::npos);
  machine.engine->remove(middle);
  while (!chain.empty()) {
    machine.engine->remove(*chain.back());
    chain.pop_back();
  }
}

TEST(Engine, MoreUrgentThreadsComeFirstFromAnyLevel) {
  Machine machine{"node:2 pu:2"};
  const std::vector<Entity*> tops = machine.tree("ttt");
  machine.engine->update(
      *tops[0], [&](Entity& it) { it.program_place = machine.place(PlaceKind::pu, 0).id; });
  machine.engine->update(*tops[1], [](Entity& it) { it.priority = kPriorityBatch; });
  machine.engine->update(*tops[2], [](Entity& it) { it.priority = kPriorityRealTime; });
  machine.make_ready();
  EXPECT_EQ(machine.take(0), tops[2]) << "from the list of the machine";
  EXPECT_EQ(machine.take(0), tops[0]);
  EXPECT_EQ(machine.engine->next(0, tops[0]), nullptr) << "a yield does not leave for less";
  EXPECT_EQ(machine.take(0), tops[1]);
}

TEST(Engine, PriorityOfABubbleIsThatOfItsThreads) {
  Machine machine{"pu:1"};
  machine.tree("((t)t)t");
  machine.make_ready();
  machine.engine->update(*machine.entities()[0],
                         [](Entity& it) { it.priority = kPriorityRealTime; });
  EXPECT_EQ(machine.entities()[2]->effective_priority(), kPriorityRealTime);
  EXPECT_EQ(machine.take(0), machine.entities()[2].get()) << "also those that wait already";
  machine.engine->update(*machine.entities()[1], [](Entity& it) { it.priority = kPriorityBatch; });
  EXPECT_EQ(machine.entities()[2]->effective_priority(), kPriorityBatch);
}

TEST(Engine, UrgentThreadAsksTheLeastUrgentWorkerToLeave) {
  Machine machine{"pu:2"};
  const std::vector<Entity*> tops = machine.tree("ttt");
  machine.engine->update(*tops[1], [](Entity& it) { it.priority = kPriorityBatch; });
  machine.engine->ready(*tops[0]);
  machine.take(0);
  machine.engine->ready(*tops[1]);
  machine.take(1);
  machine.engine->update(*tops[2], [](Entity& it) { it.priority = kPriorityRealTime; });
  machine.host.preempted.clear();
  machine.engine->ready(*tops[2]);
  EXPECT_EQ(machine.host.preempted, std::vector<std::uint32_t>{1});
}

TEST(Engine, NiceThreadsComeFirstAndInterruptNobodyOfTheirClass) {
  Machine machine{"pu:1"};
  const std::vector<Entity*> tops = machine.tree("tttttt");
  const std::uint8_t priorities[] = {kPriorityNormal, kPriorityNormal - 1,   kPriorityNormal + 1,
                                     kPriorityBatch,  kPriorityRealTime - 1, kPriorityLowBatch};
  for (std::size_t i = 0; i < tops.size(); ++i) {
    machine.engine->update(*tops[i], [&](Entity& it) { it.priority = priorities[i]; });
  }
  machine.engine->ready(*tops[0]);
  EXPECT_EQ(machine.engine->highest(0), kPriorityNormal);
  machine.take(0);
  EXPECT_EQ(machine.engine->highest(0), -1);
  machine.host.preempted.clear();
  for (std::size_t i = 1; i < tops.size(); ++i) {
    machine.engine->ready(*tops[i]);
  }
  EXPECT_TRUE(machine.host.preempted.empty()) << "no thread of the normal class asks another to go";
  EXPECT_EQ(machine.engine->highest(0), kPriorityRealTime - 1);
  EXPECT_EQ(machine.take(0), tops[4]);
  EXPECT_EQ(machine.take(0), tops[2]);
  EXPECT_EQ(machine.engine->next(0, tops[0]), nullptr) << "a yield does not leave for less";
  EXPECT_EQ(machine.take(0), tops[1]);
  EXPECT_EQ(machine.take(0), tops[3]);
  EXPECT_EQ(machine.take(0), tops[5]);
}

TEST(Engine, PlaceWithoutAWorkerIsServedFromAbove) {
  auto topology = topology::Topology::synthetic("node:2 pu:2");
  FakeHost host;
  const topology::Place* const workers[] = {topology.value()->pus()[0]};
  auto engine =
      Engine::open({.topology = topology.value().get(), .workers = workers, .host = &host});
  ASSERT_TRUE(engine);
  Entity thread;
  thread.program_place = topology.value()->pus()[3]->id;
  ASSERT_TRUE(engine.value()->insert(engine.value()->root(), thread));
  engine.value()->ready(thread);
  EXPECT_EQ(engine.value()->next(0, nullptr), &thread);
  engine.value()->remove(thread);
}

TEST(Engine, StatisticsAreSumsOverTheTree) {
  Machine machine{"node:2 pu:2"};
  machine.tree("(t2(t3)t)");
  Entity& outer = *machine.entities()[0];
  machine.engine->update(*machine.entities()[1], [](Entity& it) {
    it.memory.add(0, 100);
    it.attributes = {1, 2, 3, 4};
  });
  machine.engine->update(*machine.entities()[3], [](Entity& it) {
    it.memory.add(1, 50);
    it.attributes[0] = 10;
  });
  machine.engine->ready(*machine.entities()[1]);
  machine.engine->ready(*machine.entities()[3]);
  machine.take(0);
  machine.take(1);
  machine.give_back(1);
  const Stats stats = machine.engine->stats(outer);
  EXPECT_EQ(stats.threads, 3U);
  EXPECT_EQ(stats.running, 1U);
  EXPECT_EQ(stats.ready, 1U);
  EXPECT_EQ(stats.load, 2U + 3U + 1U) << "of threads, as policies see it: bubbles have none";
  EXPECT_EQ(stats.memory.on(0), 100U);
  EXPECT_EQ(stats.memory.total(), 150U);
  EXPECT_EQ(stats.attributes, (std::array<std::uint64_t, 4>{11, 2, 3, 4}));
  EXPECT_EQ(stats.last_place, machine.place(PlaceKind::numa, 0).id);
}

TEST(Engine, ChangedHolderTakesItsPlaceAlong) {
  Machine machine{"node:2 pu:2"};
  const std::vector<Entity*> tops = machine.tree("(t)()");
  Entity& thread = *machine.entities()[1];
  machine.engine->update(
      *tops[1], [&](Entity& it) { it.program_place = machine.place(PlaceKind::numa, 1).id; });
  machine.make_ready();
  ASSERT_TRUE(machine.engine->change_holder(static_cast<Bubble&>(*tops[1]), thread));
  EXPECT_EQ(machine.engine->placement(), "machine 0, numa 1, inside");
  EXPECT_FALSE(machine.engine->change_holder(static_cast<Bubble&>(*tops[0]), *tops[0]).has_value());
  EXPECT_EQ(machine.take(0), nullptr);
  EXPECT_EQ(machine.take(2), &thread);
}

TEST(Engine, ChangedHolderStaysOrGoesAtOnce) {
  Machine machine{"node:2 pu:2", "spread"};
  machine.start("((tt)(tt))");
  auto* const first = static_cast<Bubble*>(machine.entities()[1].get());
  auto* const second = static_cast<Bubble*>(machine.entities()[4].get());
  Entity& thread = *machine.entities()[2];
  EXPECT_EQ(machine.engine->placement(), "machine 0, numa 0, pu 0, pu 1, numa 1, pu 2, pu 3");
  ASSERT_TRUE(machine.engine->change_holder(*second, thread, HolderChange::stays));
  EXPECT_EQ(machine.engine->placement(), "machine 0, numa 0, pu 1, numa 1, pu 2, pu 3, pu 0");
  EXPECT_EQ(machine.engine->holder_of(thread), second);
  EXPECT_EQ(machine.take(0), &thread) << "where it waited";
  machine.give_back(0);
  ASSERT_TRUE(machine.engine->change_holder(*first, thread, HolderChange::now));
  EXPECT_EQ(machine.engine->placement(), "machine 0, numa 0, pu 1, inside, numa 1, pu 2, pu 3");
  EXPECT_EQ(thread.target_place(), machine.place(PlaceKind::numa, 0).id);
  EXPECT_TRUE(machine.engine->audit().empty());
}

TEST(Engine, WhatBecomesOutermostIsSubmittedAndWhatCeasesToBeIsForgotten) {
  Machine machine{"node:2 pu:2", "gang"};
  machine.start("(t(t))(t)");
  auto* const inner = static_cast<Bubble*>(machine.entities()[2].get());
  auto* const second = static_cast<Bubble*>(machine.entities()[4].get());
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside, inside, aside, inside");
  ASSERT_TRUE(machine.engine->change_holder(machine.engine->root(), *inner));
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, aside, inside, aside, inside")
      << "a gang of its own";
  ASSERT_TRUE(machine.engine->change_holder(*inner, *second));
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, aside, inside, inside, inside");
  machine.engine->shake();
  EXPECT_TRUE(machine.engine->audit().empty());
  // Aside in another bubble nobody would fetch it.
  auto* const top = static_cast<Bubble*>(machine.entities()[0].get());
  ASSERT_TRUE(machine.engine->change_holder(*top, *inner, HolderChange::stays));
  EXPECT_EQ(inner->planned_place() == kAside, false);
}

TEST(Engine, PutIsAsIfThePolicyHadPlannedIt) {
  Machine machine{"node:2 pu:2", "spread"};
  machine.start("(tt)(tt)");
  Entity& bubble = *machine.entities()[0];
  machine.engine->put(bubble, machine.place(PlaceKind::pu, 3).id);
  EXPECT_EQ(machine.engine->placement(), "pu 3, inside, inside, numa 1, pu 2, pu 3");
  EXPECT_EQ(machine.entities()[1]->target_place(), bubble.target_place());
  machine.engine->enable_worker(0, true);  // Changes nothing.
  EXPECT_TRUE(machine.engine->audit().empty()) << "what waited has gone along";
  machine.engine->shake();
  EXPECT_EQ(machine.engine->placement(), "numa 0, pu 0, pu 1, numa 1, pu 2, pu 3");
}

/// Takes what it is given and never puts it back.
class Thief final : public Policy {
 public:
  void submit(View& view, Entity& top) noexcept override { view.plan(top, kInHand); }
};
/// Puts everything aside for ever.
class Miser final : public Policy {
 public:
  void submit(View& view, Entity& top) noexcept override { view.set_aside(top); }
};

TEST(Engine, EntityThatAPolicyLosesIsPutBackAndReported) {
  Machine machine{"pu:1"};
  ASSERT_TRUE(machine.engine->change_policy(std::make_unique<Thief>()));
  machine.start("(t)");
  EXPECT_EQ(machine.engine->lost_count(), 1U);
  const std::vector<std::string> found = machine.engine->audit();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("took 1 entities and did not put them back, the first was bubble"),
            std::string::npos);
  EXPECT_NE(machine.take(0), nullptr) << "it runs all the same";
}

/// A writer of standard error that asks whether the engine can be used meanwhile.
struct Reader {
  Engine* engine;
  bool has_come = false;
  bool was_free = false;
};
ssize_t read_engine(void* cookie, const char*, size_t bytes) {
  auto& reader = *static_cast<Reader*>(cookie);
  reader.has_come = true;
  auto answer = std::make_shared<std::promise<void>>();
  std::future<void> answered = answer->get_future();
  std::thread{[answer, engine = reader.engine] {
    (void)engine->audit();
    answer->set_value();
  }}.detach();
  // Only a failure waits: for a lock that its holder keeps until it has written.
  reader.was_free = answered.wait_for(std::chrono::seconds{5}) == std::future_status::ready;
  return static_cast<ssize_t>(bytes);
}

TEST(Engine, WhatAPolicyLosesIsToldWhenTheLockIsFree) {
  Machine machine{"pu:1"};
  ASSERT_TRUE(machine.engine->change_policy(std::make_unique<Thief>()));
  Reader reader{.engine = machine.engine.get()};
  FILE* const standard_error = stderr;
  stderr = ::fopencookie(
      &reader, "w", {.read = nullptr, .write = read_engine, .seek = nullptr, .close = nullptr});
  ASSERT_NE(stderr, nullptr);
  ::setvbuf(stderr, nullptr, _IONBF, 0);
  machine.start("(t)");
  ::fclose(std::exchange(stderr, standard_error));
  EXPECT_TRUE(reader.has_come);
  EXPECT_TRUE(reader.was_free);
}

TEST(Engine, AuditFindsThreadsThatAPolicyKeepsFromRunning) {
  Machine machine{"pu:1"};
  ASSERT_TRUE(machine.engine->change_policy(std::make_unique<Miser>()));
  machine.start("(tt)");
  EXPECT_EQ(machine.take(0), nullptr);
  const std::vector<std::string> found = machine.engine->audit();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("2 threads wait aside"), std::string::npos);
}

TEST(Audit, AThreadThatIsReadyAndInNoQueueIsToldAfterSomeLooks) {
  Machine machine{"pu:2"};
  machine.start("t(t)");
  Entity* const lost = machine.take(0);
  machine.host.running[0] = nullptr;
  lost->name = "lost";
  machine.host.unserved.push_back(lost);
  for (const auto& entity : machine.entities()) {
    if (!entity->is_bubble() && entity.get() != lost) {
      machine.host.unserved.push_back(entity.get());  // Ready as well, but in a queue.
    }
  }
  EXPECT_TRUE(machine.engine->audit().empty());
  machine.host.unserved.clear();  // It was on its way.
  EXPECT_TRUE(machine.engine->audit().empty());
  machine.host.unserved.push_back(lost);
  EXPECT_TRUE(machine.engine->audit().empty());
  EXPECT_TRUE(machine.engine->audit().empty());
  const std::vector<std::string> found = machine.engine->audit();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("thread lost is ready and in no queue"), std::string::npos) << found[0];
}

}  // namespace
}  // namespace sterna::sched
