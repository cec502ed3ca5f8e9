// tree_lock.h: all interleavings of two who want the lock of one holder and of one who wants all,
// a step an access, with a store buffer each. Never are two of them inside at once, and nobody
// waits for ever. Negative controls: who has taken a lock does not look whether somebody has all;
// who has all does not look at the locks; either tells the other one by a plain store, which its
// own look may overtake.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::sched {
namespace {

enum class Rules : std::uint8_t { real, does_not_look, does_not_wait, weak_holder, weak_all };
enum At : std::uint8_t { kBegins, kTold, kInside, kDone };

// Process 2 wants all.
struct State {
  std::uint8_t lock = 0;  // 1 more than who has it.
  std::uint8_t all = 0;
  std::uint8_t is_lock_buffered = 0;  // By a process that went on before it was seen.
  std::uint8_t is_all_buffered = 0;
  std::uint8_t at[3] = {};
  std::uint8_t tries_left[2] = {2, 2};  // Bounds the model: then it goes without.
};

bool holder_step(State& s, int who, Rules rules) {
  std::uint8_t& at = s.at[who];
  const auto own = static_cast<std::uint8_t>(who + 1);
  switch (at) {
    case kBegins:  // (1)
      if (s.lock != 0 || s.is_lock_buffered != 0) {
        return false;
      }
      (rules == Rules::weak_holder ? s.is_lock_buffered : s.lock) = own;
      at = kTold;
      return true;
    case kTold:  // (2)
      if (s.all == 0 || rules == Rules::does_not_look) {
        at = kInside;
        return true;
      }
      s.lock = 0;
      s.is_lock_buffered = 0;
      at = --s.tries_left[who] == 0 ? kDone : kBegins;
      return true;
    case kInside:
      if (s.is_lock_buffered != 0) {
        return false;  // The buffer goes out in order, the end after the beginning.
      }
      s.lock = 0;
      at = kDone;
      return true;
    default:
      return false;
  }
}

bool all_step(State& s, Rules rules) {
  std::uint8_t& at = s.at[2];
  switch (at) {
    case kBegins:  // (3)
      (rules == Rules::weak_all ? s.is_all_buffered : s.all) = 1;
      at = kTold;
      return true;
    case kTold:  // (4)
      if (s.lock != 0 && rules != Rules::does_not_wait) {
        return false;
      }
      at = kInside;
      return true;
    case kInside:
      if (s.is_all_buffered != 0) {
        return false;
      }
      s.all = 0;
      at = kDone;
      return true;
    default:
      return false;
  }
}

bool flush_step(State& s) {
  if (s.is_lock_buffered != 0) {
    s.lock = s.is_lock_buffered;
    s.is_lock_buffered = 0;
    return true;
  }
  if (s.is_all_buffered != 0) {
    s.all = 1;
    s.is_all_buffered = 0;
    return true;
  }
  return false;
}

bool nobody_is_inside_with_another(Rules rules) {
  std::size_t count = 0;
  const bool holds = threads::holds_in_all_interleavings(
      State{}, 4,
      [&](State& s, int who) {
        return who < 2    ? holder_step(s, who, rules)
               : who == 2 ? all_step(s, rules)
                          : flush_step(s);
      },
      [](const State& s, bool is_final) {
        int inside = 0;
        bool is_done = true;
        for (const std::uint8_t at : s.at) {
          inside += at == kInside ? 1 : 0;
          is_done = is_done && at == kDone;
        }
        return inside > 1 || (is_final && !is_done);
      },
      count);
  EXPECT_GT(count, 15U);
  return holds;
}

TEST(TreeLockModel, NobodyIsInsideWithAnotherAndAllComeToAnEnd) {
  EXPECT_TRUE(nobody_is_inside_with_another(Rules::real));
}

TEST(TreeLockModel, WhoHasAHolderHasToLookWhetherSomebodyHasAll) {
  EXPECT_FALSE(nobody_is_inside_with_another(Rules::does_not_look));
}

TEST(TreeLockModel, WhoHasAllHasToWaitForTheHolders) {
  EXPECT_FALSE(nobody_is_inside_with_another(Rules::does_not_wait));
}

TEST(TreeLockModel, APlainStoreOfTheHoldersLockIsFoundOut) {
  EXPECT_FALSE(nobody_is_inside_with_another(Rules::weak_holder));
}

TEST(TreeLockModel, APlainStoreOfTheLockOfAllIsFoundOut) {
  EXPECT_FALSE(nobody_is_inside_with_another(Rules::weak_all));
}

}  // namespace
}  // namespace sterna::sched
