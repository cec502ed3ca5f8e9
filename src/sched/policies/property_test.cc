// What holds for every policy, on random machines with random trees: nothing is lost, nothing runs
// twice, every thread ends, none runs where the program forbids it, and no processor is idle beside
// waiting work that it may run.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/policies/builtin.h"
#include "sched/testing.h"

namespace sterna::sched {
namespace {

constexpr const char* kPolicies[] = {"flat",
                                     "spread",
                                     "burst",
                                     "burst(slice=0.01)",
                                     "gang(slice=0.01)",
                                     "gang(numa,slice=0.01)",
                                     "steal",
                                     "cache",
                                     "memory",
                                     "phases(burst,gang)",
                                     "priorities(spread,burst)",
                                     "gang(slice=0.01,burst)",
                                     "gang(numa,slice=0.01,spread,steal)",
                                     "priorities(20=gang(slice=0.01),3=steal,1=flat)",
                                     "priorities(21=spread,normal=burst,0=cache)",
                                     "choice(spread,burst)",
                                     "fallback(gang(pu),steal)",
                                     "parts(machine,steal)"};
constexpr const char* kMachines[] = {"pu:1", "pu:3", "node:2 core:2 pu:2",
                                     "package:2 l3:3 core:2 pu:1"};

class Properties : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Properties, testing::ValuesIn(kPolicies), [](const auto& its) {
  std::string name = its.param;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

/// A random tree, submitted, with everything ready.
void grow(Machine& machine, Random& random, std::vector<Entity*>& threads) {
  std::vector<Bubble*> bubbles{nullptr};
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
    machine.engine->update(*entity, [&](Entity& it) {
      if (random.below(10) == 0) {
        const auto place =
            static_cast<std::uint32_t>(random.below(machine.topology->places().size()));
        it.program_place = place;
      }
      if (random.below(8) == 0) {
        it.priority = static_cast<std::uint8_t>(random.below(kPriorityCount));
      }
      if (random.below(6) == 0) {
        it.level = static_cast<std::uint32_t>(random.below(machine.topology->depth_count()));
      }
      it.memory.add(static_cast<std::uint32_t>(random.below(2)), random.below(1000));
    });
  }
  for (Entity* const top : tops) {
    machine.engine->submit(*top);
  }
  machine.make_ready();
}

bool is_allowed(const Machine& machine, const Entity& thread, std::uint32_t worker) {
  const topology::Place& processor = *machine.topology->pus()[worker];
  // The innermost wish decides; an outer one holds as far as it agrees.
  for (const Entity* one = &thread; one != nullptr; one = one->holder()) {
    if (one->program_place != kNoPlace) {
      return covers(*machine.topology->places()[one->program_place], processor);
    }
  }
  return true;
}

const Entity& outermost(const Entity& thread) {
  const Entity* one = &thread;
  while (one->holder()->holder() != nullptr) {
    one = one->holder();
  }
  return *one;
}

/// The place of the outermost bubble around a thread that is planned somewhere: what its gang has.
std::uint32_t top_place(const Entity& thread, std::uint32_t target) {
  std::uint32_t place = target;
  for (const Entity* one = &thread; one != nullptr; one = one->holder()) {
    if (one->planned_place() < kInHand && one->holder() != nullptr) {
      place = one->planned_place();
    }
  }
  return place;
}

TEST_P(Properties, EveryThreadEndsOnceWhereItMayRun) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    Machine machine{kMachines[random.below(4)], GetParam()};
    std::vector<Entity*> threads;
    grow(machine, random, threads);
    std::set<Entity*> open{threads.begin(), threads.end()};
    std::vector<Entity*> blocked;
    const std::uint32_t workers = machine.topology->pu_count();
    for (int step = 0; !open.empty(); ++step) {
      ASSERT_LT(step, 20'000) << open.size() << " threads never end";
      machine.host.now += random.below(20'000);
      const auto worker = static_cast<std::uint32_t>(random.below(workers));
      auto* const running = const_cast<Entity*>(machine.host.running[worker]);
      if (running == nullptr) {
        if (Entity* const taken = machine.take(worker); taken != nullptr) {
          ASSERT_TRUE(open.contains(taken)) << "a thread runs that has ended";
          ASSERT_EQ(std::ranges::count(machine.host.running, taken), 1) << "it runs twice";
          ASSERT_TRUE(is_allowed(machine, *taken, worker));
        }
      } else {
        const std::uint64_t what = random.below(4);
        machine.host.running[worker] = nullptr;
        if (what == 0) {
          open.erase(running);
          machine.engine->remove(*running);
        } else if (what == 1) {
          blocked.push_back(running);
        } else {
          machine.engine->ready(*running);
        }
      }
      if (!blocked.empty() && random.below(3) == 0) {
        machine.engine->ready(*blocked.back());
        blocked.pop_back();
      }
      if (random.below(40) == 0) {
        machine.engine->shake();
      }
      if (random.below(60) == 0) {
        machine.engine->set_phase(static_cast<std::uint32_t>(random.below(2)));
      }
      const std::vector<std::string> wrong = machine.engine->audit();
      ASSERT_TRUE(wrong.empty() || wrong[0].find("aside") != std::string::npos) << wrong[0];
    }
  }
}

TEST_P(Properties, NoProcessorIsIdleBesideWaitingWork) {
  // A gang leaves processors idle on purpose: that is what it is for.
  const std::string policy = GetParam();
  if (policy.find("gang") != std::string::npos) {
    GTEST_SKIP() << "a gang leaves processors idle on purpose: it has the machine for itself";
  }
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    Machine machine{kMachines[random.below(4)], policy};
    std::vector<Entity*> threads;
    grow(machine, random, threads);
    const std::uint32_t workers = machine.topology->pu_count();
    // In a round or two everybody who can has found something.
    for (std::uint32_t i = 0; i < 2 * workers; ++i) {
      if (machine.host.running[i % workers] == nullptr) {
        machine.take(i % workers);
      }
    }
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      if (machine.host.running[worker] != nullptr) {
        continue;
      }
      for (const Entity* const thread : threads) {
        EXPECT_FALSE(thread->is_queued() && is_allowed(machine, *thread, worker))
            << "worker " << worker << " of " << workers << " is idle";
      }
    }
  }
}

// A gang leaves processors idle on purpose: those that it does not need, and only those. What waits
// in queues of places is for everybody.
TEST_P(Properties, GangsLeaveIdleOnlyWhatTheGangThatHasItDoesNotNeed) {
  const std::string policy = GetParam();
  if (policy.find("gang") == std::string::npos) {
    GTEST_SKIP() << "no gangs; see NoProcessorIsIdleBesideWaitingWork";
  }
  if (policy.find("slice=0.01,") != std::string::npos || policy.starts_with("priorities")) {
    GTEST_SKIP() << "not all that a gang has is planned where it is; see gang_test.cc";
  }
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    Machine machine{kMachines[random.below(4)], policy};
    std::vector<Entity*> threads;
    grow(machine, random, threads);
    const std::uint32_t workers = machine.topology->pu_count();
    for (std::uint32_t i = 0; i < 2 * workers; ++i) {
      if (machine.host.running[i % workers] == nullptr) {
        machine.take(i % workers);
      }
    }
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      const topology::Place& processor = *machine.topology->pus()[worker];
      if (machine.host.running[worker] != nullptr) {
        continue;
      }
      bool is_held = false;
      bool waits_aside = false;
      for (const Entity* const thread : threads) {
        const std::uint32_t target = thread->target_place();
        const bool is_here =
            target != kAside &&
            covers(*machine.topology->places()[top_place(*thread, target)], processor);
        is_held = is_held || (is_here && (thread->is_queued() || machine.host.is_running(*thread)));
        waits_aside = waits_aside || (target == kAside && is_allowed(machine, *thread, worker) &&
                                      is_allowed(machine, outermost(*thread), worker));
        EXPECT_FALSE(thread->is_queued() && target != kAside &&
                     covers(*machine.topology->places()[target], processor))
            << "worker " << worker << " of " << workers << " is idle beside its own gang's";
      }
      EXPECT_TRUE(is_held || !waits_aside)
          << "worker " << worker << " of " << workers << " is idle, and nobody has it";
    }
  }
}

TEST(SpreadProperties, LoadsOfEqualThreadsDifferByOneAtMost) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random{seed};
    Machine machine{"node:2 core:2 pu:2", "spread"};
    machine.start(std::string(random.below(50), 't'));
    std::vector<int> counts(8);
    for (const auto& thread : machine.entities()) {
      ++counts[machine.topology->places()[thread->target_place()]->pu_first];
    }
    const auto [least, most] = std::ranges::minmax_element(counts);
    EXPECT_LE(*most - *least, 1) << "seed " << seed;
  }
}

TEST(SpreadProperties, BubblesAreDividedEvenly) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random{seed};
    Machine machine{"node:2 core:2 pu:2", "spread"};
    std::string tree;
    for (std::uint64_t i = 0; i <= random.below(12); ++i) {
      tree += "(" + std::string(1 + random.below(9), 't') + ")";
    }
    machine.start(tree);
    std::vector<int> counts(8);
    int total = 0;
    for (const auto& entity : machine.entities()) {
      if (!entity->is_bubble()) {
        ++counts[machine.topology->places()[entity->target_place()]->pu_first];
        ++total;
      }
    }
    const int most = *std::ranges::max_element(counts);
    EXPECT_LE(most, total / 8 + 2);
  }
}

}  // namespace
}  // namespace sterna::sched
