// Which policy a bubble was submitted to.
#include <gtest/gtest.h>

#include "sched/testing.h"

namespace sterna::sched {
namespace {

/// Two bubbles of two: the first without a wish, the second with that one.
std::string placed(const char* policy, std::string_view wanted) {
  Machine machine{"node:2 pu:2", policy};
  const std::vector<Entity*> tops = machine.tree("(tt)(tt)");
  machine.engine->update(*tops[1], [&](Entity& it) { it.wanted_policy = policy_key(wanted); });
  for (Entity* const top : tops) {
    machine.engine->submit(*top);
  }
  std::string text = machine.engine->placement();
  machine.engine->shake();
  EXPECT_TRUE(machine.engine->audit().empty());
  return text;
}

TEST(Choice, TheProgramSaysWhichPolicyRulesABubble) {
  const char* const policy = "choice(flat, spread, gang( numa ), gang(pu))";
  const std::string first = "machine 0, inside, inside, ";
  EXPECT_EQ(placed(policy, "spread"), first + "machine 0, pu 0, pu 2");
  EXPECT_EQ(placed(policy, "flat"), first + "machine 0, inside, inside");
  EXPECT_EQ(placed(policy, "gang"), first + "numa 0, inside, inside") << "the first of that name";
  EXPECT_EQ(placed(policy, "gang(pu)"), first + "pu 0, inside, inside");
  EXPECT_EQ(placed(policy, "steal"), first + "machine 0, inside, inside") << "there is none";
}

TEST(Choice, IsOfferedThroughOtherCombinators) {
  Machine machine{"node:2 pu:2", "fallback(phases(parts(machine,choice(flat,spread))),steal)"};
  EXPECT_TRUE(machine.engine->offers("spread"));
  EXPECT_FALSE(machine.engine->offers("steal"));
  EXPECT_FALSE(machine.engine->offers("phases"));
  EXPECT_EQ(placed("fallback(phases(parts(machine,choice(flat,spread))),steal)", "spread"),
            "machine 0, inside, inside, machine 0, pu 0, pu 2");
  EXPECT_EQ(placed("choice(flat,phases(choice(steal,spread)))", "spread"),
            "machine 0, inside, inside, machine 0, pu 0, pu 2");
  EXPECT_FALSE(Machine{"pu:1"}.engine->offers("flat")) << "nothing to choose from";
}

TEST(Choice, WishesOutliveAChangeOfThePolicy) {
  Machine machine{"pu:2", "choice(flat,spread)"};
  const std::vector<Entity*> tops = machine.tree("(tt)");
  machine.engine->update(*tops[0], [&](Entity& it) { it.wanted_policy = policy_key("spread"); });
  machine.engine->submit(*tops[0]);
  ASSERT_TRUE(machine.engine->change_policy(std::move(make_policy("flat").value())));
  EXPECT_EQ(machine.engine->placement(), "machine 0, inside, inside");
  ASSERT_TRUE(machine.engine->change_policy(std::move(make_policy("choice(gang,spread)").value())));
  EXPECT_EQ(machine.engine->placement(), "machine 0, pu 0, pu 1");
}

}  // namespace
}  // namespace sterna::sched
