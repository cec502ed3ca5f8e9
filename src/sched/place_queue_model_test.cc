// place_queue.h: all interleavings of a waker that pushes, plans that change where the entity is to
// be, and a worker that takes it, a step an access. Waker and plan have a store buffer each: a
// store that is not sequentially consistent may be seen after later loads. No entity is left in a
// queue where the plan does not want it, none is in two, and nobody touches one that has run and
// ended. Negative controls: (1), then (3), as a plain store; a push that does not look at the plan
// again; one that looks after it has given the lock back.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::sched {
namespace {

constexpr std::uint8_t kNone = 9;
enum Who : std::uint8_t { kWaker, kPlan, kTaker, kNobody };
enum class Rules : std::uint8_t { real, weak_push, weak_plan, no_look, late_look };

/// A place is 0, where nobody looks (as aside), or 1, where the taker does.
struct State {
  std::uint8_t target = 0;
  std::uint8_t queued_at = kNone;
  std::uint8_t buffered_target = kNone;     // Of the plan.
  std::uint8_t buffered_queued_at = kNone;  // Of who pushes: one at a time has the entity.
  std::uint8_t linked_in[2] = {};
  std::uint8_t lock[2] = {kNobody, kNobody};
  std::uint8_t at[3] = {};      // Step of each.
  std::uint8_t to[2] = {};      // Where waker and plan push.
  std::uint8_t seen = kNone;    // By the plan, in (4).
  std::uint8_t plans_left = 1;  // Each one wants the other place.
  std::uint8_t is_planning = 0;
  std::uint8_t has_ended = 0;
  std::uint8_t is_broken = 0;  // In two queues, or touched after its end.
};

void write_queued_at(State& s, std::uint8_t value, bool is_buffered) {
  s.is_broken |= s.has_ended;
  s.buffered_queued_at = is_buffered ? value : kNone;
  if (!is_buffered) {
    s.queued_at = value;
  }
}

void unlock(State& s, std::uint8_t place) {
  if (s.buffered_queued_at != kNone) {  // Stores are seen in order: before that of the lock.
    s.queued_at = s.buffered_queued_at;
    s.buffered_queued_at = kNone;
  }
  s.lock[place] = kNobody;
}

void unlink(State& s, std::uint8_t place) {
  s.linked_in[place] = 0;
  s.buffered_queued_at = kNone;
  write_queued_at(s, kNone, false);
}

enum PushAt : std::uint8_t { kRead, kLock, kLink, kSay, kLook, kUnlock, kLookLate, kPushed };

/// Engine::enqueue(): push() until one accepts. `at` begins with kRead.
bool push_step(State& s, Who me, std::uint8_t& at, Rules rules) {
  std::uint8_t& to = s.to[me];
  switch (at) {
    case kRead:
      to = me == kPlan && s.buffered_target != kNone ? s.buffered_target : s.target;
      at = kLock;
      return true;
    case kLock:
      if (s.lock[to] != kNobody) {
        return false;
      }
      s.lock[to] = me;
      at = kLink;
      return true;
    case kLink:
      s.is_broken |= s.linked_in[1 - to];
      s.linked_in[to] = 1;
      at = kSay;
      return true;
    case kSay:  // (1)
      write_queued_at(s, to, rules == Rules::weak_push);
      if (rules == Rules::no_look || rules == Rules::late_look) {
        unlock(s, to);
      }
      at = rules == Rules::no_look ? kPushed : rules == Rules::late_look ? kLookLate : kLook;
      return true;
    case kLook:  // (2)
      at = kUnlock;
      if (s.target != to) {
        unlink(s, to);
        unlock(s, to);
        at = kRead;
      }
      return true;
    case kUnlock:
      unlock(s, to);
      at = kPushed;
      return true;
    case kLookLate:
      s.is_broken |= s.has_ended;
      at = s.target == to ? kPushed : kLookLate;
      return s.target == to;
    default:
      return false;
  }
}

enum PlanAt : std::uint8_t { kStore, kAsk, kLockOld, kTakeAlong, kDone, kPush = 16 };

bool plan_step(State& s, Rules rules) {
  std::uint8_t& at = s.at[kPlan];
  if (at >= kPush) {
    std::uint8_t push_at = at - kPush;
    const bool moved = push_step(s, kPlan, push_at, rules);
    at = push_at == kPushed ? std::uint8_t{kDone} : static_cast<std::uint8_t>(push_at + kPush);
    return moved;
  }
  switch (at) {
    case kStore:  // (3), under the lock of the engine
      if (s.plans_left == 0) {
        return false;
      }
      --s.plans_left;
      s.is_planning = 1;
      if (rules == Rules::weak_plan) {
        s.buffered_target = 1 - s.target;
      } else {
        s.target = 1 - s.target;
      }
      at = kAsk;
      return true;
    case kAsk:  // (4)
      s.seen = s.queued_at;
      at = s.seen == kNone ? kDone : kLockOld;
      return true;
    case kLockOld:
      if (s.lock[s.seen] != kNobody) {
        return false;
      }
      s.lock[s.seen] = kPlan;
      if (s.buffered_target != kNone) {  // To take a lock is a full barrier.
        s.target = s.buffered_target;
        s.buffered_target = kNone;
      }
      at = kTakeAlong;
      return true;
    case kTakeAlong:
      if (s.queued_at == s.seen && s.seen != s.target) {
        unlink(s, s.seen);
        at = kPush;
      } else {
        at = kDone;
      }
      unlock(s, s.seen);
      return true;
    default:
      if (s.buffered_target != kNone) {
        s.target = s.buffered_target;
        s.buffered_target = kNone;
      }
      s.is_planning = 0;
      at = kStore;
      return true;
  }
}

/// Pops from place 1; then the entity runs and ends, for which it leaves the tree of the engine.
bool taker_step(State& s) {
  switch (s.at[kTaker]) {
    case 0:
      if (s.linked_in[1] == 0 || s.lock[1] != kNobody) {
        return false;
      }
      unlink(s, 1);
      s.at[kTaker] = 1;
      return true;
    case 1:
      if (s.is_planning != 0) {
        return false;
      }
      s.has_ended = 1;
      s.at[kTaker] = 2;
      return true;
    default:
      return false;
  }
}

/// The two buffers are written out when it pleases the processor.
bool flush_step(State& s, int which) {
  std::uint8_t& buffered = which == 0 ? s.buffered_target : s.buffered_queued_at;
  if (buffered == kNone) {
    return false;
  }
  (which == 0 ? s.target : s.queued_at) = buffered;
  buffered = kNone;
  return true;
}

bool none_is_misplaced(Rules rules, bool has_taker, std::uint8_t plans) {
  State initial;
  initial.plans_left = plans;
  std::size_t count = 0;
  const bool holds = threads::holds_in_all_interleavings(
      initial, 5,
      [&](State& s, int who) {
        switch (who) {
          case kWaker:
            return push_step(s, kWaker, s.at[kWaker], rules);
          case kPlan:
            return plan_step(s, rules);
          case kTaker:
            return has_taker && taker_step(s);
          default:
            return flush_step(s, who - 3);
        }
      },
      [&](const State& s, bool is_final) {
        const bool is_where_wanted =
            s.linked_in[s.target] == 1 && s.linked_in[1 - s.target] == 0 && s.queued_at == s.target;
        const bool is_right = has_taker ? s.has_ended != 0 : is_where_wanted;
        return s.is_broken != 0 || (is_final && !is_right);
      },
      count);
  EXPECT_GT(count, 15U);
  return holds;
}

TEST(PlaceQueueModel, NothingIsLeftWhereThePlanDoesNotWantIt) {
  EXPECT_TRUE(none_is_misplaced(Rules::real, true, 1)) << "from a place where nobody looks";
  EXPECT_TRUE(none_is_misplaced(Rules::real, true, 3)) << "and back";
  for (int plans = 1; plans <= 3; ++plans) {
    EXPECT_TRUE(none_is_misplaced(Rules::real, false, static_cast<std::uint8_t>(plans))) << plans;
  }
}

TEST(PlaceQueueModel, APlainStoreOfThePushIsFoundOut) {
  EXPECT_FALSE(none_is_misplaced(Rules::weak_push, true, 1));
}

TEST(PlaceQueueModel, APlainStoreOfThePlanIsFoundOut) {
  EXPECT_FALSE(none_is_misplaced(Rules::weak_plan, true, 1));
}

TEST(PlaceQueueModel, APushHasToLookAtThePlanAgain) {
  EXPECT_FALSE(none_is_misplaced(Rules::no_look, true, 1));
}

TEST(PlaceQueueModel, APushHasToLookBeforeItGivesTheLockBack) {
  EXPECT_FALSE(none_is_misplaced(Rules::late_look, true, 1));
}

}  // namespace
}  // namespace sterna::sched
