// Seeds of bubbles under every policy: each runs once, in its bubble, where that may run.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "sched/siblings_fixture.h"
#include "threads/control/control.h"
#include "threads/seeds/seed.h"

namespace sterna::sched {
namespace {

class BubbleSeedsOf : public BubbleSeeds, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policies, BubbleSeedsOf,
                         testing::Values("flat", "spread", "burst", "gang", "gang(numa)", "steal",
                                         "cache", "memory", "priorities(flat,steal)",
                                         "parts(numa,steal)", "fallback(gang,steal)"),
                         [](const auto& its) {
                           std::string name = its.param;
                           std::erase_if(name, [](char c) { return c < 'a' || c > 'z'; });
                           return name;
                         });

/// Plants itself again, so deep, and looks where it runs.
struct Tree {
  threads::Seed seed = {};
  int depth = 0;
  const Bubble* bubble = nullptr;
  std::uint32_t first = 0;  // Workers of its bubble's place: two.
  std::atomic<int>* nodes = nullptr;
  std::atomic<int>* strays = nullptr;

  static void run(void* tree) { static_cast<Tree*>(tree)->grow(); }
  void grow() {
    const auto& entity = *static_cast<const Entity*>(threads::self()->entity);
    if (entity.holder() != bubble || here() - first > 1) {
      strays->fetch_add(1);
    }
    nodes->fetch_add(1);
    if (depth == 0) {
      return;
    }
    Tree branches[3];
    for (Tree& branch : branches) {
      branch.depth = depth - 1;
      branch.bubble = bubble;
      branch.first = first;
      branch.nodes = nodes;
      branch.strays = strays;
      threads::plant(branch.seed, run, &branch);
    }
    if (depth % 2 == 0) {
      threads::yield();
    }
    for (Tree& branch : branches) {
      threads::join(branch.seed);
    }
  }
};

TEST_P(BubbleSeedsOf, AllRunOnceInTheirBubbleAndItsPlace) {
  open("node:2 pu:2", GetParam());
  constexpr int kDepth = threads::kSanitizedTests ? 4 : 6;
  constexpr int kNodes = threads::kSanitizedTests ? 121 : 1093;  // (3^(depth + 1) - 1) / 2
  constexpr int kThreads = 6;
  std::vector<Bubble> bubbles(2);
  std::atomic<int> nodes{0};
  std::atomic<int> strays{0};
  std::vector<Entity> entities(kThreads);
  std::vector<Tree> trees(kThreads);
  std::vector<threads::Thread*> started;
  for (std::uint32_t i = 0; i < 2; ++i) {
    bubbles[i].program_place = topology_->find(topology::PlaceKind::numa, i)->id;
    ASSERT_TRUE(engine().insert(scheduler_->root(), bubbles[i]));
  }
  auto grow = [](Tree& tree) { tree.grow(); };
  std::vector<std::function<void()>> bodies(kThreads);
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    Tree& tree = trees[i];
    tree.depth = kDepth;
    tree.bubble = &bubbles[i % 2];
    tree.first = i % 2 * 2;
    tree.nodes = &nodes;
    tree.strays = &strays;
    bodies[i] = [&tree, grow] { grow(tree); };
    started.push_back(start(bubbles[i % 2], entities[i], bodies[i]));
  }
  for (Bubble& bubble : bubbles) {
    engine().submit(bubble);
  }
  for (int i = 0; i < 10; ++i) {
    engine().shake();
    threads::sleep_for(200'000);
  }
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
  EXPECT_EQ(nodes.load(), kThreads * kNodes);
  EXPECT_EQ(strays.load(), 0);
  EXPECT_EQ(engine().lost_count(), 0U);
  for (Bubble& bubble : bubbles) {
    EXPECT_TRUE(bubble.empty());
    engine().remove(bubble);
  }
}

}  // namespace
}  // namespace sterna::sched
