// The list of waiters against a naive one, under random operations: one node alone is kept in
// another way than several.
#include "threads/sync/wait_list.h"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "threads/thread.h"

namespace sterna::threads {
namespace {

struct Waiting {
  WaitNode node;
  bool is_suspended = false;
};

class Both {
 public:
  explicit Both(std::uint64_t seed) : random_{seed} {
    for (std::size_t i = 0; i < kCount; ++i) {
      reset(i);
    }
  }

  void step() {
    const std::size_t which = random_.next() % kCount;
    const bool is_listed = std::find(model_.begin(), model_.end(), which) != model_.end();
    switch (random_.next() % 6) {
      case 0:
      case 1:
        if (!is_listed) {
          list_.push_back(all_[which].node);
          model_.push_back(which);
        }
        break;
      case 2:
        if (!is_listed) {
          list_.push_front(all_[which].node);
          model_.insert(model_.begin(), which);
        }
        break;
      case 3:
        if (is_listed) {
          list_.erase(all_[which].node);
          model_.erase(std::find(model_.begin(), model_.end(), which));
        }
        break;
      case 4:
        pop();
        break;
      default:
        if (random_.next() % 8 == 0) {
          take_all();
        }
        break;
    }
    ASSERT_EQ(list_.empty(), model_.empty());
  }

 private:
  static constexpr std::size_t kCount = 5;

  void reset(std::size_t which) {
    Waiting& one = all_[which];
    one.node.is_linked = false;
    one.is_suspended = which % 2 == 0;
    one.node.waiter =
        one.is_suspended ? Waiter::suspended(threads_[which]) : Waiter{threads_[which]};
  }
  void pop() {
    if (random_.next() % 2 == 0) {
      WaitNode* const node = list_.pop_front();
      ASSERT_EQ(node, model_.empty() ? nullptr : &all_[model_.front()].node);
      ASSERT_TRUE(node == nullptr || !node->is_linked);
    } else {
      const Waiter waiter = list_.pop_waiter();
      ASSERT_EQ(waiter.bits(), model_.empty() ? 0 : all_[model_.front()].node.waiter.bits());
      if (!model_.empty() && all_[model_.front()].is_suspended) {
        reset(model_.front());  // Who was suspended has a new node the next time.
      }
    }
    if (!model_.empty()) {
      model_.erase(model_.begin());
    }
  }
  void take_all() {
    std::size_t at = 0;
    for (const WaitNode* node = list_.take_all(); node != nullptr; node = node->next) {
      ASSERT_LT(at, model_.size());
      ASSERT_EQ(node, &all_[model_[at++]].node);
      ASSERT_FALSE(node->is_linked);
    }
    ASSERT_EQ(at, model_.size());
    model_.clear();
  }

  Random random_;
  std::array<Thread, kCount> threads_;
  std::array<Waiting, kCount> all_;
  WaitList list_;
  std::vector<std::size_t> model_;
};

TEST(WaitListTest, AgreesWithANaiveListWhoeverLeavesHow) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Both both{seed};
    for (int step = 0; step < 2'000; ++step) {
      ASSERT_NO_FATAL_FAILURE(both.step()) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace sterna::threads
