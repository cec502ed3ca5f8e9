// For tests: what holds for every policy, on random machines with random trees, which change while
// they run. A thread moves with its bubble or alone, workers come and go, the program has fixed or
// settled some. Policies of C++ are tested in property_test.cc, those written in C in
// runtime/capi/bubbles.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/testing.h"

namespace sterna::sched {

/// A random machine with a random tree, all of it ready, ruled by a policy. The seed decides.
class RandomMachine {
 public:
  RandomMachine(std::uint64_t seed, const std::string& policy)
      : random{seed}, machine{description(random, policy), policy} {
    workers = machine.topology->pu_count();
    is_enabled_.assign(workers, true);
    grow_tree();
    open.insert(threads.begin(), threads.end());
  }

  /// Another holder for something, or other workers. `how`: what becomes of its place.
  void change(HolderChange how) {
    if (random.below(3) == 0) {
      toggle_worker();
    } else if (!machine.entities().empty()) {
      Entity& entity = *machine.entities()[random.below(machine.entities().size())];
      Bubble* const holder = bubbles[random.below(bubbles.size())];
      if (entity.holder() != nullptr) {
        // One that is inside itself then, or nested too deep, is refused, and stays.
        (void)machine.engine->change_holder(holder != nullptr ? *holder : machine.engine->root(),
                                            entity, how);
      }
    }
  }

  /// All that have nothing to run look for something, in a round or two.
  void take_all() {
    for (std::uint32_t i = 0; i < 2 * workers; ++i) {
      if (machine.host.running[i % workers] == nullptr) {
        machine.take(i % workers);
      }
    }
  }

  [[nodiscard]] bool is_idle(std::uint32_t worker) const {
    return is_enabled_[worker] && machine.host.running[worker] == nullptr;
  }

  /// By what the program says of it and of what is around it: where they contradict each other the
  /// innermost wish holds, and where no worker is left the nearest place around that has one.
  [[nodiscard]] bool is_allowed(const Entity& thread, std::uint32_t worker) const {
    std::vector<const topology::Place*> wishes;
    for (const Entity* one = &thread; one != nullptr; one = one->holder()) {
      if (one->program_place != kNoPlace) {
        wishes.push_back(machine.topology->places()[one->program_place]);
      }
    }
    const topology::Place* place = &machine.topology->root();
    for (auto wish = wishes.rbegin(); wish != wishes.rend(); ++wish) {
      place = covers(**wish, *place) ? place : *wish;
    }
    while (!has_worker(*place)) {
      place = place->parent;
    }
    return covers(*place, *machine.topology->pus()[worker]);
  }

  /// The program wants no policy to take it from where it is.
  [[nodiscard]] static bool is_settled(const Entity& thread) {
    const Entity* one = &thread;
    while (one != nullptr && !one->is_settled) {
      one = one->holder();
    }
    return one != nullptr;
  }

  Random random;
  Machine machine;
  std::vector<Entity*> threads;
  std::vector<Bubble*> bubbles{nullptr};  // The first is the root.
  std::set<Entity*> open;                 // Threads that have not ended.
  std::uint32_t workers = 0;

 private:
  static std::string description(Random& random, const std::string& policy) {
    static constexpr const char* kMachines[] = {"pu:1",
                                                "pu:3",
                                                "node:2 core:2 pu:2",
                                                "package:2 l3:3 core:2 pu:1",
                                                "network:2 node:2 pu:2",
                                                "arity:2 pu:5",
                                                "network:3 arity:2 core:3 pu:1"};
    for (;;) {
      const std::string one = kMachines[random.below(std::size(kMachines))];
      // Parts need places of their kind.
      if (policy.find("parts(numa") == std::string::npos || one.find("node") != std::string::npos) {
        return one;
      }
    }
  }

  void grow_tree() {
    std::vector<Entity*> tops;
    const std::uint64_t count = random.below(50);
    for (std::uint64_t i = 0; i < count; ++i) {
      Bubble* const holder = bubbles[random.below(bubbles.size())];
      Entity* entity = nullptr;
      if (random.below(3) == 0) {
        bubbles.push_back(&machine.bubble(holder));
        entity = bubbles.back();
      } else {
        entity = &machine.thread(holder, random.below(10));
        threads.push_back(entity);
      }
      if (holder == nullptr) {
        tops.push_back(entity);
      }
      machine.engine->update(*entity, [&](Entity& it) { say(it); });
    }
    for (Entity* const top : tops) {
      machine.engine->submit(*top);
    }
    machine.make_ready();
  }

  /// What a program may say of it.
  void say(Entity& it) {
    if (random.below(10) == 0) {
      it.program_place =
          static_cast<std::uint32_t>(random.below(machine.topology->places().size()));
    }
    if (random.below(8) == 0) {
      it.priority = static_cast<std::uint8_t>(random.below(kPriorityCount));
    }
    if (random.below(6) == 0) {
      it.level = static_cast<std::uint32_t>(random.below(machine.topology->depth_count()));
    }
    it.is_settled = random.below(12) == 0;
    it.is_unpreemptible = random.below(12) == 0;
    it.memory.add(static_cast<std::uint32_t>(random.below(2)), random.below(1000));
  }

  void toggle_worker() {
    const auto worker = static_cast<std::uint32_t>(random.below(workers));
    if (is_enabled_[worker] && std::ranges::count(is_enabled_, true) == 1) {
      return;  // One stays.
    }
    is_enabled_[worker] = !is_enabled_[worker];
    machine.engine->enable_worker(worker, is_enabled_[worker]);
  }

  [[nodiscard]] bool has_worker(const topology::Place& place) const {
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      if (is_enabled_[worker] && covers(place, *machine.topology->pus()[worker])) {
        return true;
      }
    }
    return false;
  }

  std::vector<bool> is_enabled_;
};

/// A worker that runs something ends it, blocks it, or gives it back; another one takes something.
inline void let_work(RandomMachine& its, std::uint32_t worker, std::vector<Entity*>& blocked) {
  Machine& machine = its.machine;
  auto* const running = const_cast<Entity*>(machine.host.running[worker]);
  if (running == nullptr) {
    if (Entity* const taken = machine.take(worker); taken != nullptr) {
      ASSERT_TRUE(its.open.contains(taken)) << "a thread runs that has ended";
      ASSERT_EQ(std::ranges::count(machine.host.running, taken), 1) << "it runs twice";
      ASSERT_TRUE(its.is_allowed(*taken, worker)) << "it runs where it must not";
      ASSERT_EQ(std::ranges::count(blocked, taken), 0) << "it runs though it is blocked";
    }
    return;
  }
  const std::uint64_t what = its.random.below(4);
  machine.host.running[worker] = nullptr;
  if (what == 0) {
    its.open.erase(running);
    machine.engine->remove(*running);
  } else if (what == 1) {
    blocked.push_back(running);
  } else {
    machine.engine->ready(*running);
  }
}

/// Nothing is lost, nothing runs twice, every thread ends, and none runs where it must not.
inline void expect_that_every_thread_ends(const std::string& policy, std::uint64_t seeds = 60) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMachine its{seed, policy};
    Engine& engine = *its.machine.engine;
    std::vector<Entity*> blocked;
    for (int step = 0; !its.open.empty(); ++step) {
      ASSERT_LT(step, 20'000) << its.open.size() << " threads never end";
      its.machine.host.now += its.random.below(20'000);
      let_work(its, static_cast<std::uint32_t>(its.random.below(its.workers)), blocked);
      if (testing::Test::HasFatalFailure()) {
        return;
      }
      if (!blocked.empty() && its.random.below(3) == 0) {
        Entity* const woken = blocked.back();
        blocked.pop_back();
        engine.ready(*woken);
      }
      if (its.random.below(20) == 0) {
        its.change(its.random.below(2) == 0 ? HolderChange::now : HolderChange::stays);
      }
      if (its.random.below(40) == 0) {
        engine.shake();
      }
      if (its.random.below(60) == 0) {
        engine.set_phase(static_cast<std::uint32_t>(its.random.below(3)));
      }
      const std::vector<std::string> wrong = engine.audit();
      ASSERT_TRUE(wrong.empty() || wrong[0].find("aside") != std::string::npos) << wrong[0];
    }
    ASSERT_EQ(engine.lost_count(), 0U);
  }
}

/// The outermost entity around a thread.
inline const Entity& outermost(const Entity& thread) {
  const Entity* one = &thread;
  while (one->holder()->holder() != nullptr) {
    one = one->holder();
  }
  return *one;
}

/// The place of that kind around the place where an entity is queued; null: none.
inline const topology::Place* part_of(const Machine& machine, std::uint32_t place,
                                      std::string_view kind) {
  const topology::Place* one = place < kInHand ? machine.topology->places()[place] : nullptr;
  while (one != nullptr && topology::to_string(one->kind) != kind) {
    one = one->parent;
  }
  return one;
}

/// No processor is idle beside waiting work that it may run. `part`: the kind of place whose
/// processors take nothing but what its own policy rules; empty: the whole machine.
inline void expect_that_no_processor_is_idle(const std::string& policy, std::string_view part = {},
                                             std::uint64_t seeds = 60) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMachine its{seed, policy};
    for (std::uint64_t changes = its.random.below(6); changes != 0; --changes) {
      // What stays where it was waits there, whatever its policy would say, until that plans it.
      its.change(HolderChange::now);
    }
    its.take_all();
    for (std::uint32_t worker = 0; worker < its.workers; ++worker) {
      if (!its.is_idle(worker)) {
        continue;
      }
      const std::uint32_t processor = its.machine.topology->pus()[worker]->id;
      for (const Entity* const thread : its.threads) {
        if (!thread->is_queued() || its.is_settled(*thread) || !its.is_allowed(*thread, worker)) {
          continue;
        }
        const std::uint32_t ruled_at = outermost(*thread).target_place();
        EXPECT_TRUE(!part.empty() &&
                    part_of(its.machine, ruled_at, part) != part_of(its.machine, processor, part))
            << "worker " << worker << " of " << its.workers << " is idle";
      }
    }
  }
}

}  // namespace sterna::sched
