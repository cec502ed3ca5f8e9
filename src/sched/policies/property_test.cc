// What holds for every policy: see properties.h; and what holds for gangs and for spread.
#include <algorithm>

#include <gtest/gtest.h>

#include "sched/policies/properties.h"

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
                                     "phases(spread,steal,cache)",
                                     "phases(memory,burst(slice=0.01),flat)",
                                     "priorities(spread,burst)",
                                     "priorities(steal,gang(slice=0.01))",
                                     "priorities(burst(slice=0.01),cache)",
                                     "gang(slice=0.01,burst)",
                                     "gang(numa,slice=0.01,spread,steal)",
                                     "priorities(20=gang(slice=0.01),3=steal,1=flat)",
                                     "priorities(21=spread,normal=burst,0=cache)",
                                     "choice(spread,burst)",
                                     "fallback(gang(pu),steal)",
                                     "fallback(burst(slice=0.01),steal)",
                                     "fallback(parts(numa,spread,burst),steal)",
                                     "parts(machine,steal)",
                                     "parts(machine,spread,burst)",
                                     "parts(numa,steal,flat)",
                                     "parts(numa,cache,gang(slice=0.01))",
                                     "phases(parts(numa,burst,steal),spread)"};

class Properties : public testing::TestWithParam<const char*> {
 protected:
  static bool has_gangs() { return std::string_view{GetParam()}.find("gang") != std::string::npos; }
  /// Kind of the parts that take nothing from each other; empty: there are none.
  static std::string_view part() {
    const std::string_view text = GetParam();
    const std::size_t at = text.find("parts(");
    if (at == std::string::npos || text.starts_with("fallback")) {
      return {};
    }
    return text.substr(at + 6, text.find(',', at) - at - 6);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Properties, testing::ValuesIn(kPolicies), [](const auto& its) {
  std::string name = its.param;
  std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return name;
});

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
  expect_that_every_thread_ends(GetParam());
}

TEST_P(Properties, NoProcessorIsIdleBesideWaitingWork) {
  if (has_gangs()) {
    GTEST_SKIP() << "a gang leaves processors idle on purpose: it has the machine for itself";
  }
  expect_that_no_processor_is_idle(GetParam(), part());
}

// A gang leaves processors idle on purpose: those that it does not need, and only those. What waits
// in queues of places is for everybody.
TEST_P(Properties, GangsLeaveIdleOnlyWhatTheGangThatHasItDoesNotNeed) {
  if (!has_gangs() || !part().empty()) {
    GTEST_SKIP() << "no gangs over the whole machine; see NoProcessorIsIdleBesideWaitingWork";
  }
  const std::string policy = GetParam();
  if (policy.find("slice=0.01,") != std::string::npos || policy.starts_with("priorities")) {
    GTEST_SKIP() << "not all that a gang has is planned where it is; see gang_test.cc";
  }
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomMachine its{seed, GetParam()};
    const Machine& machine = its.machine;
    its.take_all();
    for (std::uint32_t worker = 0; worker < its.workers; ++worker) {
      const topology::Place& processor = *machine.topology->pus()[worker];
      if (!its.is_idle(worker)) {
        continue;
      }
      bool is_held = false;
      bool waits_aside = false;
      for (const Entity* const thread : its.threads) {
        const std::uint32_t target = thread->target_place();
        const bool is_here =
            target != kAside &&
            covers(*machine.topology->places()[top_place(*thread, target)], processor);
        is_held = is_held || (is_here && (thread->is_queued() || machine.host.is_running(*thread)));
        waits_aside = waits_aside || (target == kAside && its.is_allowed(*thread, worker) &&
                                      its.is_allowed(outermost(*thread), worker));
        EXPECT_FALSE(thread->is_queued() && target != kAside &&
                     covers(*machine.topology->places()[target], processor))
            << "worker " << worker << " of " << its.workers << " is idle beside its own gang's";
      }
      EXPECT_TRUE(is_held || !waits_aside)
          << "worker " << worker << " of " << its.workers << " is idle, and nobody has it";
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
