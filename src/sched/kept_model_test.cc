// Engine::keep() against plans (threads/queues/kept.h): all interleavings of a wake-up that leaves
// a thread to the private queue of the one worker that the plan wants, of a plan that wants another
// place, and of that worker, a step an access, with a store buffer each. No thread stays with a
// worker where the plan does not want it, unless its order to leave is given. Negative controls:
// the word "kept", then the plan, as a plain store; a wake-up that does not read the plan once
// more; a plan that does not ask for the word.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::sched {
namespace {

constexpr std::uint8_t kEmpty = 9;
enum Where : std::uint8_t { kInHand, kPrivate, kRuns, kShared };
enum class Rules : std::uint8_t { real, weak_kept, weak_plan, reads_once, asks_nobody };

/// Place 0 is the worker's own; place 1 is elsewhere.
struct State {
  std::uint8_t target = 0;
  std::uint8_t kept = 0;
  std::uint8_t recalled = 0;
  std::uint8_t buffered_target = kEmpty;
  std::uint8_t buffered_kept = kEmpty;
  std::uint8_t where = kInHand;
  std::uint8_t at[2] = {};
  std::uint8_t turns_left = 2;  // Of the worker: bounds the model.
  std::uint8_t plans_left = 1;
};

void flush_kept(State& s) {
  s.kept = s.buffered_kept != kEmpty ? s.buffered_kept : s.kept;
  s.buffered_kept = kEmpty;
}

/// Who made it ready has it to himself; then it is in a queue, of which kind this decides.
bool ready_step(State& s, Rules rules) {
  std::uint8_t& at = s.at[0];
  if (s.where != kInHand) {
    return false;
  }
  switch (at) {
    case 0:  // Relaxed, both.
      s.kept = 0;
      s.buffered_kept = kEmpty;
      at = 1;
      return true;
    case 1:
      s.where = s.target == 0 ? std::uint8_t{kInHand} : std::uint8_t{kShared};
      at = s.target == 0 ? 2 : 0;
      return true;
    case 2:
      (rules == Rules::weak_kept ? s.buffered_kept : s.kept) = 1;
      at = 3;
      return true;
    case 3:
      at = 4;
      if (rules != Rules::reads_once && s.target != 0) {
        s.kept = 0;
        s.buffered_kept = kEmpty;
        s.where = kShared;
        at = 0;
      }
      return true;
    default:  // Into the inbox: a locked instruction.
      flush_kept(s);
      s.where = kPrivate;
      at = 0;
      return true;
  }
}

bool plan_step(State& s, Rules rules) {
  std::uint8_t& at = s.at[1];
  switch (at) {
    case 0:
      if (s.plans_left == 0) {
        return false;
      }
      --s.plans_left;
      (rules == Rules::weak_plan ? s.buffered_target : s.target) = 1;
      at = rules == Rules::asks_nobody ? 3 : 1;
      return true;
    case 1:
      at = s.kept != 0 ? 2 : 3;
      return true;
    case 2:
      s.recalled = 1;
      at = 3;
      return true;
    default:
      if (s.buffered_target == kEmpty) {
        return false;
      }
      s.target = s.buffered_target;
      s.buffered_target = kEmpty;
      return true;
  }
}

/// Takes it from its queue, obeys the order, or runs it and queues it again: a yield.
bool worker_step(State& s) {
  if (s.where == kRuns && s.turns_left != 0) {
    --s.turns_left;
    s.where = kPrivate;
    return true;
  }
  if (s.where != kPrivate) {
    return false;
  }
  s.where = s.recalled != 0 ? kInHand : kRuns;
  s.recalled = 0;
  return true;
}

bool flush_step(State& s, int which) {
  std::uint8_t& buffered = which == 0 ? s.buffered_target : s.buffered_kept;
  if (buffered == kEmpty) {
    return false;
  }
  (which == 0 ? s.target : s.kept) = buffered;
  buffered = kEmpty;
  return true;
}

bool none_stays_unasked(Rules rules) {
  std::size_t count = 0;
  const bool holds = threads::holds_in_all_interleavings(
      State{}, 5,
      [&](State& s, int who) {
        return who == 0   ? ready_step(s, rules)
               : who == 1 ? plan_step(s, rules)
               : who == 2 ? worker_step(s)
                          : flush_step(s, who - 3);
      },
      [](const State& s, bool is_final) {
        // Its last turn began before the plan at the latest; then the order is there.
        const bool is_right = s.where == kShared || (s.where == kRuns && s.recalled != 0);
        return is_final && s.target == 1 && !is_right;
      },
      count);
  EXPECT_GT(count, 15U);
  return holds;
}

TEST(KeptModel, AThreadIsNotKeptWhereThePlanDoesNotWantIt) {
  EXPECT_TRUE(none_stays_unasked(Rules::real));
}

TEST(KeptModel, APlainStoreOfTheWordIsFoundOut) {
  EXPECT_FALSE(none_stays_unasked(Rules::weak_kept));
}

TEST(KeptModel, APlainStoreOfThePlanIsFoundOut) {
  EXPECT_FALSE(none_stays_unasked(Rules::weak_plan));
}

TEST(KeptModel, AWakeUpHasToReadThePlanOnceMore) {
  EXPECT_FALSE(none_stays_unasked(Rules::reads_once));
}

TEST(KeptModel, APlanHasToAskWhetherItIsKept) {
  EXPECT_FALSE(none_stays_unasked(Rules::asks_nobody));
}

}  // namespace
}  // namespace sterna::sched
