// The trees that follow from who creates whom, and that they vanish.
#include "sched/filiation.h"

#include <gtest/gtest.h>

#include "sched/scheduler.h"
#include "sched/testing.h"
#include "threads/team_fixture.h"

namespace sterna::sched {
namespace {

/// "t(tt)": a thread, and beside it a bubble with two.
std::string shape(Engine& engine) {
  std::string text;
  std::uint32_t depth = 0;
  for (const EntityInfo& one : engine.list(1000)) {
    while (depth > one.depth) {
      text += ')';
      --depth;
    }
    text += one.is_bubble ? "(" : "t";
    depth += one.is_bubble ? 1 : 0;
  }
  return text + std::string(depth, ')');
}

class FiliationTest : public testing::Test {
 protected:
  Entity& birth(Entity* creator, const BirthOptions& options = {}) {
    auto born = filiation.birth(creator, options);
    EXPECT_TRUE(born);
    return *born.value();
  }

  Machine machine{"node:2 pu:2", "spread"};
  Engine& engine = *machine.engine;
  Filiation filiation{engine};
};

TEST_F(FiliationTest, GenerationsNestBesideTheirCreators) {
  Entity& a = birth(nullptr);
  EXPECT_EQ(shape(engine), "t");
  Entity& b = birth(&a);
  Entity& c = birth(&a);
  EXPECT_EQ(shape(engine), "t(tt)");
  Entity& d = birth(&c);
  Entity& e = birth(&b);
  Entity& f = birth(&b);
  EXPECT_EQ(shape(engine), "t(tt(t)(tt))");
  Entity& g = birth(nullptr);
  EXPECT_EQ(shape(engine), "t(tt(t)(tt))t");
  EXPECT_TRUE(engine.audit().empty());

  filiation.ended(d);
  EXPECT_EQ(shape(engine), "t(tt(tt))t") << "the bubble goes with the last child";
  filiation.ended(a);
  EXPECT_EQ(shape(engine), "(tt(tt))t") << "and outlives the creator";
  filiation.ended(b);
  filiation.ended(c);
  EXPECT_EQ(shape(engine), "((tt))t");
  filiation.ended(e);
  filiation.ended(f);
  EXPECT_EQ(shape(engine), "t") << "one after the other, the outer ones as well";
  filiation.ended(g);
  EXPECT_EQ(shape(engine), "");
}

TEST_F(FiliationTest, ChildrenOneAtATimeGetABubbleAgain) {
  Entity& creator = birth(nullptr);
  for (int i = 0; i < 3; ++i) {
    Entity& child = birth(&creator);
    EXPECT_EQ(shape(engine), "t(t)");
    filiation.ended(child);
    EXPECT_EQ(shape(engine), "t");
  }
  filiation.ended(creator);
}

TEST_F(FiliationTest, WhoMakesNoBubblesHasOutermostChildren) {
  Entity& creator = birth(nullptr, {.makes_bubbles = false});
  Entity& child = birth(&creator);
  Entity& grandchild = birth(&child);
  EXPECT_EQ(shape(engine), "tt(t)");
  for (Entity* const one : {&creator, &child, &grandchild}) {
    filiation.ended(*one);
  }
}

TEST_F(FiliationTest, BubblesBearTheNameOfTheCreator) {
  Entity& creator = birth(nullptr);
  Entity& child = birth(&creator, {.creator_name = "solver"});
  EXPECT_EQ(engine.list(9)[1].name, "children of solver");
  filiation.ended(child);
  filiation.ended(creator);
}

TEST_F(FiliationTest, NestingHasAnEndAndThreadsHaveNot) {
  std::vector<Entity*> chain;
  for (std::uint32_t i = 0; i < 2 * kNestingMax; ++i) {
    chain.push_back(&birth(chain.empty() ? nullptr : chain.back()));
  }
  std::uint32_t deepest = 0;
  for (const EntityInfo& one : engine.list(1000)) {
    deepest = std::max(deepest, one.depth);
  }
  EXPECT_EQ(deepest, kNestingMax - 2) << "without the root and the thread";
  EXPECT_TRUE(engine.audit().empty());
  for (Entity* const one : chain) {
    filiation.ended(*one);
  }
  EXPECT_EQ(shape(engine), "");
}

TEST_F(FiliationTest, ThePolicyDividesWhatHasDoubled) {
  Entity& creator = birth(nullptr);
  Entity* children[4];
  for (Entity*& child : children) {
    child = &birth(&creator);
  }
  // At 1, 2 and 4 children; a fifth one stays with the bubble until there are 8.
  EXPECT_EQ(engine.placement(), "pu 0, machine 0, pu 2, pu 1, pu 3, pu 0");
  Entity& fifth = birth(&creator);
  EXPECT_EQ(fifth.target_place(), fifth.holder()->target_place());
  filiation.ended(fifth);
  for (Entity* const child : children) {
    filiation.ended(*child);
  }
  filiation.ended(creator);
}

TEST_F(FiliationTest, BubblesInAProgramsBubbleAreSpilledWithIt) {
  Bubble bubble;
  Entity member;
  member.makes_bubbles = true;
  ASSERT_TRUE(engine.insert(engine.root(), bubble));
  ASSERT_TRUE(engine.insert(bubble, member));
  Entity& child = birth(&member);
  EXPECT_EQ(shape(engine), "(t(t))");
  filiation.ended(member);
  EXPECT_EQ(shape(engine), "((t))");
  engine.spill(bubble);
  engine.remove(bubble);
  EXPECT_EQ(shape(engine), "(t)");
  filiation.ended(child);
  EXPECT_EQ(shape(engine), "");
}

TEST_F(FiliationTest, APlaceIsKeptAndAWrongOneRefused) {
  Entity& bound = birth(nullptr, {.program_place = machine.place(topology::PlaceKind::pu, 3).id});
  EXPECT_EQ(engine.placement(), "pu 3");
  filiation.ended(bound);
  EXPECT_FALSE(filiation.birth(nullptr, {.program_place = 99}));
}

/// A thread that creates two, down to a depth, joins one of them and leaves the other behind.
struct Tree {
  threads::TestTeam* team;
  Scheduler* scheduler;
  std::atomic<int>* ended;
  int depth;

  static void main(void* argument) {
    const std::unique_ptr<Tree> me{static_cast<Tree*>(argument)};
    threads::Thread* joined[2] = {};
    for (int i = 0; i < 2 && me->depth > 0; ++i) {
      auto* const entity = static_cast<Entity*>(threads::self()->entity);
      auto born = me->scheduler->filiation().birth(entity, {});
      check(born.has_value(), "an entity is born");
      auto child = (*me->team)->spawn({.detached = i == 1, .entity = born.value()}, main,
                                      new Tree{me->team, me->scheduler, me->ended, me->depth - 1});
      check(child.has_value(), "a thread starts");
      joined[i] = i == 0 ? child.value() : nullptr;
      threads::yield();
    }
    if (joined[0] != nullptr) {
      threads::join(*joined[0]);
    }
    me->ended->fetch_add(1);
  }
};

TEST(FiliationOfThreads, TreesOfThreadsLeaveNothing) {
  for (const char* const policy : {"flat", "spread", "burst", "gang", "steal"}) {
    auto topology = topology::Topology::synthetic("node:2 pu:2");
    ASSERT_TRUE(topology);
    auto opened = Scheduler::open({.topology = topology.value().get(),
                                   .workers = topology.value()->pus(),
                                   .policy = std::move(make_policy(policy).value())});
    ASSERT_TRUE(opened);
    Scheduler& scheduler = *opened.value();
    threads::TestTeam team{4, {.dispatch = &scheduler}};
    scheduler.attach(*team);
    std::atomic<int> ended{0};
    constexpr int kRoots = 4;
    constexpr int kDepth = 5;
    for (int i = 0; i < kRoots; ++i) {
      auto born = scheduler.filiation().birth(nullptr, {});
      ASSERT_TRUE(born);
      ASSERT_TRUE(team->spawn({.detached = true, .entity = born.value()}, Tree::main,
                              new Tree{&team, &scheduler, &ended, kDepth}));
    }
    while (team->live_thread_count() != 0) {
      threads::sleep_for(1'000'000);
    }
    EXPECT_EQ(ended.load(), kRoots * ((1 << (kDepth + 1)) - 1)) << policy;
    // The last threads count as ended just before they leave the tree.
    for (int i = 0; i < 10'000 && !scheduler.engine().list(1).empty(); ++i) {
      threads::sleep_for(1'000'000);
    }
    EXPECT_EQ(shape(scheduler.engine()), "") << policy;
  }
}

}  // namespace
}  // namespace sterna::sched
