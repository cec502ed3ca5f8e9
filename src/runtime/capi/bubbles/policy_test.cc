// Policies written in C on synthetic machines: their instances, and the events that these hear of.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/capi/bubbles/policy_view.h"
#include "sched/testing.h"

namespace sterna::runtime::capi {
namespace {

using sched::Entity;
using sched::Machine;
using Words = std::vector<std::string>;

void add(const sterna_policy& policy) {
  if (sched::find_policy(policy.name) == nullptr) {
    ASSERT_EQ(sterna_policy_register(&policy), STERNA_SUCCESS);
  }
}

/// A policy with data of its own for each instance.
struct Instance {
  std::string arguments;
  Words heard;
};
std::vector<Instance*> instances;  // Those that live, in the order they were made.

const sterna_policy kCounted = {
    .size_bytes = sizeof(sterna_policy),
    .name = "counted",
    .summary = "notes what it hears",
    .data = &instances,
    .tick_ns = 0,
    .submit =
        [](sterna_view* view, sterna_entity* entity, void* data) {
          static_cast<Instance*>(data)->heard.emplace_back("submit");
          sterna_entity_put(view, entity, sterna_view_domain(view));
        },
    .meet = nullptr,
    .idle = nullptr,
    .tick = nullptr,
    .leave = [](sterna_view*, sterna_entity*,
                void* data) { static_cast<Instance*>(data)->heard.emplace_back("leave"); },
    .arguments = "WORDS",
    .instantiate =
        [](void* data, const char* arguments, void** instance) {
          if (std::string_view{arguments} == "nonsense") {
            return STERNA_INVALID_ARGUMENT;
          }
          auto made = std::make_unique<Instance>();
          made->arguments = arguments;
          static_cast<std::vector<Instance*>*>(data)->push_back(made.get());
          *instance = made.release();
          return STERNA_SUCCESS;
        },
    .destroy =
        [](void* instance) {
          std::erase(instances, static_cast<Instance*>(instance));
          delete static_cast<Instance*>(instance);
        },
    .wake =
        [](sterna_view* view, sterna_entity* thread, void* data) {
          auto& its = *static_cast<Instance*>(data);
          its.heard.emplace_back("wake");
          if (its.arguments == "aside") {
            sterna_entity_put(view, thread, STERNA_PLACE_ASIDE);
          }
        },
    .shake = [](sterna_view*,
                void* data) { static_cast<Instance*>(data)->heard.emplace_back("shake"); },
    .phase =
        [](sterna_view*, std::uint32_t number, void* data) {
          static_cast<Instance*>(data)->heard.push_back("phase " + std::to_string(number));
        },
    .grow = nullptr,
};

/// All on the machine.
sterna_policy simple(const char* name) {
  sterna_policy policy{};
  policy.size_bytes = sizeof policy;
  policy.name = name;
  policy.submit = [](sterna_view* view, sterna_entity* entity, void*) {
    sterna_entity_put(view, entity, sterna_view_domain(view));
  };
  return policy;
}

TEST(PolicyInstances, EachUseOfANameHasItsOwnDataAndArguments) {
  add(kCounted);
  {
    Machine machine{"node:2 pu:2", "parts(numa,counted(a, b),counted)"};
    ASSERT_EQ(instances.size(), 2U);
    EXPECT_EQ(instances[0]->arguments, "a, b");
    EXPECT_EQ(instances[1]->arguments, "");
    machine.start("(t)(t)(t)");
    EXPECT_EQ(machine.engine->placement(), "numa 0, inside, numa 1, inside, numa 0, inside");
    EXPECT_EQ(std::ranges::count(instances[0]->heard, "submit"), 2);
    EXPECT_EQ(std::ranges::count(instances[1]->heard, "submit"), 1);
    EXPECT_EQ(std::ranges::count(instances[0]->heard, "wake"), 2);
  }
  EXPECT_TRUE(instances.empty()) << "an instance ends with its policy";
}

TEST(PolicyInstances, HearOfWakeUpsShakesPhasesAndWhatLeaves) {
  add(kCounted);
  Machine machine{"pu:2", "counted(aside)"};
  ASSERT_EQ(instances.size(), 1U);
  Entity& thread = machine.thread();
  machine.engine->submit(thread);
  machine.engine->ready(thread);
  EXPECT_EQ(machine.engine->placement(), "aside") << "it is queued where wake has put it";
  machine.engine->shake();
  machine.engine->set_phase(7);
  EXPECT_EQ(instances[0]->heard, (Words{"submit", "wake", "shake", "phase 7"}));
  ASSERT_TRUE(machine.engine->change_policy(std::move(sched::make_policy("counted").value())));
  ASSERT_EQ(instances.size(), 1U) << "the former one has ended";
  EXPECT_EQ(instances[0]->heard, (Words{"shake"}));
  machine.drain();
}

TEST(PolicyInstances, OneThatRefusesToBeginDoesNotRule) {
  add(kCounted);
  Machine machine{"node:2 pu:1"};
  for (const char* const text : {"counted(nonsense)", "parts(numa,counted,counted(nonsense))"}) {
    const Result<> changed =
        machine.engine->change_policy(std::move(sched::make_policy(text).value()));
    ASSERT_FALSE(changed.has_value());
    EXPECT_EQ(changed.error().code, Errc::invalid_argument);
    EXPECT_NE(changed.error().text.find("policy counted refuses to rule with \"nonsense\""),
              std::string::npos)
        << changed.error().text;
    EXPECT_TRUE(instances.empty()) << "who was made has ended, who refused has not begun";
  }
}

TEST(PolicyInstances, TextsAloneMakeNone) {
  add(kCounted);
  ASSERT_TRUE(sched::make_policy("parts(numa,counted,counted(nonsense))").has_value());
  EXPECT_TRUE(instances.empty());
  add(simple("modest"));
  const auto made = sched::make_policy("modest(1)");
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().text.find("modest does not take \"1\"; it takes nothing"),
            std::string::npos);
}

TEST(PolicyInstances, ProgramsOfEarlierVersionsRegisterTheirs) {
  sterna_policy policy = simple("early");
  policy.wake = [](sterna_view*, sterna_entity*, void*) { FAIL() << "it did not have this"; };
  policy.size_bytes = offsetof(sterna_policy, arguments);
  ASSERT_EQ(sterna_policy_register(&policy), STERNA_SUCCESS);
  Machine machine{"pu:1", "early"};
  machine.start("t");
  EXPECT_NE(machine.take(0), nullptr);
  policy.name = "wrong";
  for (const std::size_t bytes : {std::size_t{8}, sizeof policy + 8}) {
    policy.size_bytes = bytes;
    EXPECT_EQ(sterna_policy_register(&policy), STERNA_INVALID_ARGUMENT);
  }
  policy.size_bytes = sizeof policy;
  policy.destroy = [](void*) {};
  EXPECT_EQ(sterna_policy_register(&policy), STERNA_INVALID_ARGUMENT);
  policy.destroy = nullptr;
  policy.arguments = "NUMBER";
  EXPECT_EQ(sterna_policy_register(&policy), STERNA_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace sterna::runtime::capi
