// once.h: all interleavings of three calls, of which the first may end inside the function (it is
// cancelled), on a machine where what the function writes may be seen after what is written later,
// unless that is a release. Whoever returns sees all of it, and it has happened once. Negative
// controls: the word as a relaxed store; a caller that does not look again once it has the mutex.
//
// yielding_lock.h: the same for three who lock it, two of them by try_lock() until they have it.
// Negative controls: a try_lock() that looks and then stores; an unlock() as a relaxed store.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr int kCallers = 3;
constexpr std::uint8_t kFree = 9;
enum class Rules : std::uint8_t { real, weak_store, one_look, tries_in_two };

struct OnceState {
  std::uint8_t done = 0;
  std::uint8_t data = 0;          // As others see it.
  std::uint8_t pending_data = 0;  // Written, not seen yet.
  std::uint8_t mutex = kFree;
  std::uint8_t at[kCallers] = {};
  std::uint8_t times = 0;
  std::uint8_t is_broken = 0;
};

enum OnceAt : std::uint8_t { kLook, kLock, kLookAgain, kRun, kSay, kUnlock, kReturned, kCancelled };

bool step_once(OnceState& s, std::uint8_t me, Rules rules, bool first_ends) {
  std::uint8_t& at = s.at[me];
  switch (at) {
    case kLook:
      at = s.done != 0 ? kReturned : kLock;
      s.is_broken |= s.done != 0 && s.data == 0 ? 1 : 0;
      return true;
    case kLock:
      if (s.mutex != kFree) {
        return false;
      }
      s.mutex = me;
      at = rules == Rules::one_look ? kRun : kLookAgain;
      return true;
    case kLookAgain:
      at = s.done != 0 ? kUnlock : kRun;
      return true;
    case kRun:
      if (first_ends && s.times == 0 && me == 0) {
        s.mutex = kFree;  // By its cleanup.
        at = kCancelled;
        return true;
      }
      ++s.times;
      s.pending_data = 1;
      at = kSay;
      return true;
    case kSay:
      if (rules != Rules::weak_store && s.pending_data != 0) {
        s.data = 1;
        s.pending_data = 0;
      }
      s.done = 1;
      at = kUnlock;
      return true;
    case kUnlock:  // A release of its own, of all before.
      s.data = s.pending_data != 0 ? 1 : s.data;
      s.pending_data = 0;
      s.is_broken |= s.data == 0 ? 1 : 0;
      s.mutex = kFree;
      at = kReturned;
      return true;
    default:
      return false;
  }
}

bool once_holds(Rules rules, bool first_ends) {
  std::size_t count = 0;
  const bool holds = holds_in_all_interleavings(
      OnceState{}, kCallers + 1,
      [&](OnceState& s, int who) {
        if (who < kCallers) {
          return step_once(s, static_cast<std::uint8_t>(who), rules, first_ends);
        }
        const bool has_some = s.pending_data != 0;
        s.data = has_some ? 1 : s.data;
        s.pending_data = 0;
        return has_some;
      },
      [](const OnceState& s, bool is_final) {
        bool all_are_back = true;
        for (const std::uint8_t at : s.at) {
          all_are_back = all_are_back && (at == kReturned || at == kCancelled);
        }
        return s.is_broken != 0 || s.times > 1 || (is_final && !all_are_back);
      },
      count);
  EXPECT_GT(count, 10U);
  return holds;
}

TEST(OnceModel, ItHappensOnceAndAllSeeIt) {
  EXPECT_TRUE(once_holds(Rules::real, false));
  EXPECT_TRUE(once_holds(Rules::real, true))
      << "the next caller's turn after one that ended inside";
}

TEST(OnceModel, ARelaxedStoreIsFoundOut) {
  EXPECT_FALSE(once_holds(Rules::weak_store, false));
}

TEST(OnceModel, WithoutTheSecondLookItHappensTwice) {
  EXPECT_FALSE(once_holds(Rules::one_look, false));
}

struct LockState {
  std::uint8_t taken = 0;
  std::uint8_t data = 0;     // Counts sections, as the next holder sees it.
  std::uint8_t pending = 0;  // A count on its way.
  std::uint8_t read[kCallers] = {};
  std::uint8_t at[kCallers] = {};
  std::uint8_t inside = 0;
};

enum LockAt : std::uint8_t { kTry, kTake, kRead, kWrite, kRelease, kOver };

void settle(LockState& s) {
  s.data = s.pending != 0 ? s.pending : s.data;
  s.pending = 0;
}

bool step_lock(LockState& s, std::uint8_t me, Rules rules) {
  std::uint8_t& at = s.at[me];
  switch (at) {
    case kTry:
      if (me != 0 && s.taken != 0) {
        return false;  // It tries again when that has changed: what the loop of lock() does, too.
      }
      at = kTake;
      return true;
    case kTake:  // exchange
      if (s.taken != 0 && rules != Rules::tries_in_two) {
        at = kTry;
        return me != 0;  // lock() spins here.
      }
      s.taken = 1;
      ++s.inside;
      at = kRead;
      return true;
    case kRead:
      s.read[me] = s.data;
      at = kWrite;
      return true;
    case kWrite:
      s.pending = s.read[me] + 1;
      at = kRelease;
      return true;
    case kRelease:
      if (rules != Rules::weak_store) {
        settle(s);
      }
      --s.inside;
      s.taken = 0;
      at = kOver;
      return true;
    default:
      return false;
  }
}

bool lock_holds(Rules rules) {
  std::size_t count = 0;
  const bool holds = holds_in_all_interleavings(
      LockState{}, kCallers + 1,
      [&](LockState& s, int who) {
        if (who < kCallers) {
          return step_lock(s, static_cast<std::uint8_t>(who), rules);
        }
        const bool has_some = s.pending != 0;
        settle(s);
        return has_some;
      },
      [](const LockState& s, bool is_final) {
        return s.inside > 1 || (is_final && s.data != kCallers);
      },
      count);
  EXPECT_GT(count, 10U);
  return holds;
}

TEST(YieldingLockModel, OneAtATimeAndEachSeesTheOneBefore) {
  EXPECT_TRUE(lock_holds(Rules::real));
}

TEST(YieldingLockModel, ATryInTwoStepsIsFoundOut) {
  EXPECT_FALSE(lock_holds(Rules::tries_in_two));
}

TEST(YieldingLockModel, ARelaxedUnlockIsFoundOut) {
  EXPECT_FALSE(lock_holds(Rules::weak_store));
}

}  // namespace
}  // namespace sterna::threads
