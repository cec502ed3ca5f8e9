// Who comes into bubbles and leaves them while others do, and while events change the tree.
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sched/testing.h"
#include "threads/team_fixture.h"

namespace sterna::sched {
namespace {

/// Hears of who leaves, and says whether it wants to.
class Listener final : public Policy {
 public:
  Listener(bool wants, int& heard) noexcept : wants_{wants}, heard_{heard} {}
  void submit(View& view, Entity& top) noexcept override { view.move(top, view.domain()); }
  void leave(View&, Entity&) noexcept override { ++heard_; }
  [[nodiscard]] bool wants_leave() const noexcept override { return wants_; }

 private:
  const bool wants_;
  int& heard_;
};

int heard_of_a_thread_in_a_bubble(bool wants) {
  int heard = 0;
  Machine machine{"pu:2"};
  check(machine.engine->change_policy(std::make_unique<Listener>(wants, heard)).has_value(),
        "the policy needs nothing");
  Bubble& bubble = machine.bubble();
  Entity thread;
  check(machine.engine->insert(bubble, thread).has_value(), "a bubble takes a thread");
  machine.engine->remove(thread);
  const int result = heard;
  auto flat = make_policy("flat");
  check(machine.engine->change_policy(std::move(flat.value())).has_value(), "flat needs nothing");
  return result;
}

TEST(Membership, APolicyHearsOfThreadsThatLeaveBubblesIfItWantsTo) {
  EXPECT_EQ(heard_of_a_thread_in_a_bubble(true), 1);
  EXPECT_EQ(heard_of_a_thread_in_a_bubble(false), 0);
}

TEST(Membership, AThreadThatJoinsABubbleIsWhereThatIs) {
  Machine machine{"node:2 pu:2"};
  Bubble& outer = machine.bubble();
  Bubble& inner = machine.bubble(&outer);
  machine.engine->put(outer, machine.place(topology::PlaceKind::numa, 1).id);
  Entity thread;
  ASSERT_TRUE(machine.engine->insert(inner, thread));
  EXPECT_EQ(thread.target_place(), machine.place(topology::PlaceKind::numa, 1).id);
  machine.engine->update(inner, [&](Entity& it) {
    it.program_place = machine.place(topology::PlaceKind::pu, 3).id;
  });
  Entity beside;
  ASSERT_TRUE(machine.engine->insert_beside(thread, beside));
  EXPECT_EQ(beside.target_place(), machine.place(topology::PlaceKind::pu, 3).id);
  machine.engine->remove(thread);
  machine.engine->remove(beside);
  EXPECT_TRUE(inner.empty());
}

TEST(Membership, APriorityIsHeededWhoeverBringsIt) {
  Machine machine{"pu:1"};
  Bubble& bubble = machine.bubble();
  machine.engine->set_priority(bubble, kPriorityRealTime);
  Entity thread;
  ASSERT_TRUE(machine.engine->insert(bubble, thread));
  EXPECT_EQ(thread.effective_priority(), kPriorityRealTime);
  machine.engine->set_priority(bubble, kPriorityNormal);
  EXPECT_EQ(thread.effective_priority(), kPriorityNormal);
  Entity urgent;
  urgent.priority = kPriorityRealTime;
  ASSERT_TRUE(machine.engine->insert(bubble, urgent));
  EXPECT_EQ(urgent.effective_priority(), kPriorityRealTime);
  machine.engine->remove(urgent);
  machine.engine->remove(thread);
}

// is_in_tree() takes no lock: an answer in the midst of a move would have its memory freed.
TEST(MembershipStress, WhatChangesItsHolderIsInTheTreeAllTheWhile) {
  Machine machine{"pu:2"};
  Bubble& one = machine.bubble();
  Bubble& other = machine.bubble();
  Entity thread;
  ASSERT_TRUE(machine.engine->insert(one, thread));
  std::atomic<bool> is_over{false};
  std::uint64_t times_out = 0;
  std::latch start{2};
  std::jthread looker{[&] {
    start.arrive_and_wait();
    while (!is_over.load()) {
      times_out += Engine::is_in_tree(thread) ? 0 : 1;
    }
  }};
  start.arrive_and_wait();
  for (int turn = 0; turn < (threads::kSanitizedTests ? 5'000 : 50'000); ++turn) {
    ASSERT_TRUE(machine.engine->change_holder(turn % 2 == 0 ? other : one, thread));
    if (turn % 64 == 0) {  // A kernel that has one processor lets the other one look.
      std::this_thread::yield();
    }
  }
  is_over.store(true);
  looker.join();
  EXPECT_EQ(times_out, 0U);
  machine.engine->spill(one);
  machine.engine->spill(other);
  EXPECT_TRUE(Engine::is_in_tree(thread));
  machine.engine->remove(thread);
  EXPECT_FALSE(Engine::is_in_tree(thread));
}

// What goes wrong is use of freed memory, and a race, which sanitizers see.
TEST(MembershipStress, WhoSeesThatItHasLeftMayFreeIt) {
  Machine machine{"pu:2"};
  Bubble& bubble = machine.bubble();
  std::atomic<Entity*> leaving{nullptr};
  constexpr int kTurns = threads::kSanitizedTests ? 1'000 : 50'000;
  std::jthread freer{[&] {
    for (int turn = 0; turn < kTurns; ++turn) {
      Entity* entity = nullptr;
      while ((entity = leaving.exchange(nullptr)) == nullptr) {
        std::this_thread::yield();
      }
      while (Engine::is_in_tree(*entity)) {
      }
      delete entity;
    }
  }};
  for (int turn = 0; turn < kTurns; ++turn) {
    auto* const entity = new Entity;
    if (turn % 3 == 0) {  // It leaves by an event then, else under the lock of its bubble.
      entity->priority = kPriorityRealTime;
    }
    ASSERT_TRUE(machine.engine->insert(bubble, *entity));
    while (leaving.load() != nullptr) {
      std::this_thread::yield();
    }
    leaving.store(entity);
    machine.engine->remove(*entity);
  }
  freer.join();
  EXPECT_TRUE(bubble.empty());
}

/// Lets threads be born in `bubble` and end, as many as `turns` says, until then a few at a time.
void live(Engine& engine, Bubble& bubble, int turns, std::atomic<int>& strays) {
  constexpr std::size_t kAlive = 5;
  std::vector<std::unique_ptr<Entity>> alive;
  const auto end_first = [&] {
    if (alive.front()->holder() != &bubble) {
      strays.fetch_add(1);
    }
    engine.remove(*alive.front());
    alive.erase(alive.begin());
  };
  for (int turn = 0; turn < turns; ++turn) {
    auto entity = std::make_unique<Entity>();
    const Result<> joined = alive.empty() || turn % 3 == 0
                                ? engine.insert(bubble, *entity)
                                : engine.insert_like(*alive.back(), *entity);
    if (!joined) {
      strays.fetch_add(1);
      continue;
    }
    alive.push_back(std::move(entity));
    if (alive.size() > kAlive) {
      end_first();
    }
  }
  while (!alive.empty()) {
    end_first();
  }
}

/// Plans, moves, looks, and changes what the program says, of bubbles whose threads come and go.
void disturb(Machine& machine, Bubble& outer, Bubble& inner, int turn) {
  Engine& engine = *machine.engine;
  switch (turn % 7) {
    case 0:
      engine.put(outer, machine.place(topology::PlaceKind::pu, turn / 7 % 4).id);
      break;
    case 1:
      check(engine.change_holder(turn % 2 == 0 ? engine.root() : outer, inner).has_value(),
            "bubbles go from one to another");
      break;
    case 2:
      engine.set_priority(inner, turn % 2 == 0 ? kPriorityRealTime : kPriorityNormal);
      break;
    case 3:
      engine.update(outer, [&](Entity& it) {
        it.program_place = turn % 2 == 0 ? machine.place(topology::PlaceKind::numa, 1).id
                                         : kNoPlace;
      });
      break;
    case 4:
      engine.shake();
      break;
    case 5:
      EXPECT_TRUE(engine.audit().empty());
      EXPECT_LE(engine.list(64).size(), 64U);
      break;
    default:
      engine.enable_worker(0, turn % 2 == 0);
  }
}

TEST(MembershipStress, BirthsAndEndsInBubblesBesideEvents) {
  Machine machine{"node:2 pu:2", "spread"};
  Bubble& outer = machine.bubble();
  Bubble& inner = machine.bubble(&outer);
  Bubble& apart = machine.bubble();
  std::atomic<int> strays{0};
  std::atomic<int> living{3};
  constexpr int kTurns = threads::kSanitizedTests ? 10'000 : 200'000;
  std::latch start{4};
  std::vector<std::jthread> makers;
  for (Bubble* const bubble : {&inner, &inner, &apart}) {
    makers.emplace_back([&, bubble] {
      start.arrive_and_wait();
      live(*machine.engine, *bubble, kTurns, strays);
      living.fetch_sub(1);
    });
  }
  start.arrive_and_wait();
  for (int turn = 0; living.load() != 0; ++turn) {
    disturb(machine, outer, inner, turn);
    if (turn % 16 == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }
  makers.clear();
  machine.engine->set_priority(inner, kPriorityNormal);
  machine.engine->update(outer, [](Entity& it) { it.program_place = kNoPlace; });
  machine.engine->enable_worker(0, true);
  EXPECT_EQ(strays.load(), 0);
  EXPECT_TRUE(inner.empty());
  EXPECT_TRUE(apart.empty());
  EXPECT_TRUE(machine.engine->audit().empty());
  // What comes now is where its bubble is, whatever has happened.
  Entity last;
  ASSERT_TRUE(machine.engine->insert(inner, last));
  EXPECT_EQ(last.target_place(), inner.target_place());
  EXPECT_EQ(last.effective_priority(), kPriorityNormal);
  machine.engine->remove(last);
}

}  // namespace
}  // namespace sterna::sched
