// The semaphore (sync/semaphore.h), all interleavings of two who acquire and two who release. Who
// acquires looks at the word first, for as long as it likes, and takes a unit that it sees; then it
// lists itself under the lock. One of the two may give up waiting at any moment, and look again.
// Where somebody waits, who releases goes to the list. Nobody sleeps for ever beside a unit, no
// unit is lost, given twice, or taken past one that waits; and whoever has the last unit may drop
// the semaphore: nobody who released touches it after that.
// Negative controls: a look that takes by a store; to list oneself without another look under the
// lock; to release to the word though somebody is listed; to give the unit, or to wake, inside.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kWaiters = 1;
constexpr std::uint8_t kUnit = 2;
constexpr int kActors = 2;  // On either side.
constexpr std::uint8_t kTotal = 3;

enum At : std::uint8_t {
  kLook,
  kTake,
  kEnter,
  kDecide,
  kList,
  kLeave,
  kLeaveWithUnit,
  kAsleep,
  kGiveUp,
  kWithdraw,
  kLeaveAlone,
  kAwaitGrant,
};
enum ReleaseAt : std::uint8_t { kRead, kAdd, kEnterList, kPop, kClear, kNobody, kLeaveList, kWake };

struct Acquirer {
  std::uint8_t at;
  std::uint8_t seen;
  std::uint8_t wants;  // Units that are still to come.
  std::uint8_t is_granted;
};
struct Releaser {
  std::uint8_t at;
  std::uint8_t seen;
  std::uint8_t left;
  std::uint8_t whom;  // Taken off the list: its number + 1.
};
struct State {
  std::uint8_t word;
  std::uint8_t is_locked;
  std::uint8_t list[kActors];  // Number + 1 of who waits, the first one first.
  std::uint8_t taken;
  std::uint8_t is_gone;  // Who has the last unit drops the semaphore.
  std::uint8_t is_broken;
  Acquirer acquirers[kActors];
  Releaser releasers[kActors];
};

enum class Rules : std::uint8_t {
  real,
  take_by_store,
  list_blindly,
  give_past_the_list,
  give_inside,
  wake_inside,
};

void take(State& state, Acquirer& me) {
  ++state.taken;
  --me.wants;
  me.at = kLook;
  state.is_gone = state.taken == kTotal ? 1 : 0;
}

void take_from_word(State& state, Acquirer& me) {
  state.is_broken |= state.list[0] != 0 ? 1 : 0;  // Past one that waits.
  take(state, me);
}

bool enter(State& state, std::uint8_t& at, std::uint8_t next) {
  if (state.is_locked != 0) {
    return false;
  }
  state.is_locked = 1;
  at = next;
  return true;
}

void leave(State& state) {
  state.is_broken |= state.is_gone;
  state.is_locked = 0;
}

std::uint8_t pop(State& state) {
  const std::uint8_t first = state.list[0];
  state.list[0] = state.list[1];
  state.list[1] = 0;
  return first;
}

/// await_unit(): the looks need no lock. Another process, below, ends them.
bool step_look(State& state, Acquirer& me, Rules rules) {
  if (me.at == kLook) {
    if (me.wants == 0) {
      return false;
    }
    state.is_broken |= state.is_gone;
    me.seen = state.word;
    me.at = me.seen >= kUnit ? kTake : (me.seen & kWaiters) != 0 ? kEnter : kLook;
    return true;
  }
  if (state.word == me.seen || rules == Rules::take_by_store) {
    state.word = static_cast<std::uint8_t>(me.seen - kUnit);
    take_from_word(state, me);
  } else {
    me.at = kLook;
  }
  return true;
}

/// The rest of acquire_slow(), until it sleeps.
bool step_list(State& state, int number, Rules rules) {
  Acquirer& me = state.acquirers[number];
  switch (me.at) {
    case kEnter:
      return enter(state, me.at, kDecide);
    case kDecide: {
      const bool has_unit = state.word >= kUnit && rules != Rules::list_blindly;
      state.word = static_cast<std::uint8_t>(has_unit ? state.word - kUnit : state.word | kWaiters);
      me.at = has_unit ? kLeaveWithUnit : kList;
      return true;
    }
    case kList:
      state.list[state.list[0] == 0 ? 0 : 1] = static_cast<std::uint8_t>(number + 1);
      me.at = kLeave;
      return true;
    case kLeave:
      leave(state);
      me.at = kAsleep;
      return true;
    default:  // kLeaveWithUnit
      leave(state);
      take_from_word(state, me);
      return true;
  }
}

/// It sleeps; or its time was over, and it withdraws.
bool step_asleep(State& state, int number) {
  Acquirer& me = state.acquirers[number];
  switch (me.at) {
    case kAsleep:
    case kAwaitGrant:
      if (me.is_granted == 0) {
        return false;
      }
      me.is_granted = 0;
      take(state, me);
      return true;
    case kGiveUp:
      return enter(state, me.at, kWithdraw);
    case kWithdraw:
      me.at = kAwaitGrant;  // Unless it is still listed, somebody has taken it, and signals it.
      for (int i = 0; i < kActors; ++i) {
        if (state.list[i] == number + 1) {
          (void)(i == 0 ? pop(state) : state.list[1] = 0);
          me.at = kLook;
        }
      }
      me.seen = me.at;
      me.at = kLeaveAlone;
      return true;
    default:  // kLeaveAlone
      leave(state);
      me.at = me.seen;
      return true;
  }
}

bool step_acquirer(State& state, int number, Rules rules) {
  Acquirer& me = state.acquirers[number];
  if (me.at <= kTake) {
    return step_look(state, me, rules);
  }
  return me.at <= kLeaveWithUnit && me.at != kAsleep ? step_list(state, number, rules)
                                                     : step_asleep(state, number);
}

/// The looks have lasted long enough, or there is something better to do.
bool end_looks(State& state, int number) {
  Acquirer& me = state.acquirers[number];
  if (me.at != kLook || me.wants == 0 || state.is_gone != 0) {
    return false;
  }
  me.at = kEnter;
  return true;
}

/// The deadline of the second one comes.
bool end_sleep(State& state) {
  Acquirer& me = state.acquirers[1];
  if (me.at != kAsleep || me.is_granted != 0) {
    return false;
  }
  me.at = kGiveUp;
  return true;
}

/// release(), as long as nobody is listed.
bool step_give(State& state, Releaser& me, Rules rules) {
  state.is_broken |= me.left != 0 ? state.is_gone : 0;
  if (me.at == kRead) {
    if (me.left == 0) {
      return false;
    }
    me.seen = state.word;
    const bool is_fast = (me.seen & kWaiters) == 0 || rules == Rules::give_past_the_list;
    me.at = is_fast ? kAdd : kEnterList;
    return true;
  }
  me.at = kRead;
  if (state.word == me.seen) {
    state.word = static_cast<std::uint8_t>(state.word + me.left * kUnit);
    me.left = 0;
  }
  return true;
}

void wake(State& state, Releaser& me) {
  state.acquirers[me.whom - 1].is_granted = 1;
  me.whom = 0;
  --me.left;
}

/// release_slow().
bool step_release_slow(State& state, Releaser& me, Rules rules) {
  state.is_broken |= me.at != kWake ? state.is_gone : 0;
  switch (me.at) {
    case kEnterList:
      return enter(state, me.at, kPop);
    case kPop:
      me.whom = pop(state);
      me.at = me.whom == 0 ? kNobody : state.list[0] == 0 ? kClear : kLeaveList;
      return true;
    case kClear:
      state.word = 0;
      me.at = kLeaveList;
      if (rules == Rules::wake_inside) {
        wake(state, me);
      }
      return true;
    case kNobody:
      state.word = static_cast<std::uint8_t>(state.word & ~kWaiters);
      if (rules == Rules::give_inside) {
        state.word += kUnit;
        --me.left;
      }
      me.at = kLeaveList;
      return true;
    case kLeaveList:
      leave(state);
      me.at = me.whom != 0 ? kWake : kRead;
      return true;
    default:
      wake(state, me);
      me.at = kRead;
      return true;
  }
}

bool step(State& state, int process, Rules rules) {
  if (process < kActors) {
    return step_acquirer(state, process, rules);
  }
  if (process < 2 * kActors) {
    Releaser& me = state.releasers[process - kActors];
    return me.at <= kAdd ? step_give(state, me, rules) : step_release_slow(state, me, rules);
  }
  return process < 3 * kActors ? end_looks(state, process - 2 * kActors) : end_sleep(state);
}

bool explore(Rules rules, std::size_t& states) {
  State initial{};
  initial.acquirers[0].wants = 2;
  initial.acquirers[1].wants = 1;
  initial.releasers[0].left = 2;
  initial.releasers[1].left = 1;
  return holds_in_all_interleavings(
      initial, 3 * kActors + 1,
      [&](State& state, int process) { return step(state, process, rules); },
      [](const State& state, bool is_final) {
        const bool is_done = state.taken == kTotal && state.word < kUnit;
        return state.is_broken != 0 || (is_final && !is_done);
      },
      states);
}

TEST(SemaphoreModel, UnitsComeOnceToThoseWhoLookAndThoseWhoSleep) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(Rules::real, states));
  EXPECT_GT(states, 1000U);
}

TEST(SemaphoreModel, EachRuleIsNeeded) {
  std::size_t states = 0;
  for (const Rules broken : {Rules::take_by_store, Rules::list_blindly, Rules::give_past_the_list,
                             Rules::give_inside, Rules::wake_inside}) {
    EXPECT_FALSE(explore(broken, states)) << static_cast<int>(broken);
  }
}

}  // namespace
}  // namespace sterna::threads
