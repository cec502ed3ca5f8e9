// The word of a tasklet, all interleavings of two who schedule it, one who disables it for a while
// and then does what the function must not see, one who cancels it, and the carriers that they
// start. The steps are the real ones (tasklet_word.h); what is modelled is who makes them when.
//
// There is one carrier at most; the function never runs while it is disabled; nobody who scheduled
// it is forgotten; a cancel leaves no thread that knows of it.
// Negative controls: a disable that does not wait for the call under way; an enable that starts no
// carrier; a carrier that looks first and takes its bit back later.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"
#include "threads/tasklets/tasklet_word.h"

namespace sterna::threads {
namespace {

enum class Rules : std::uint8_t { real, hasty_disable, lazy_enable, late_carrier };

struct State {
  std::uint64_t word;
  std::uint8_t carriers;  // Started, and not at their end.
  std::uint8_t
      carrier_at[2];  // 0: not there; 1: before its step; 2: in the function; 3: see below.
  std::uint8_t asked_at[2];
  std::uint8_t disabler_at;
  std::uint8_t is_critical;  // The function must not run.
  std::uint8_t owes_run;     // Somebody scheduled it, and it has not begun since.
  std::uint8_t canceller_at;
  std::uint8_t is_gone;  // The cancel has returned: nobody may touch it.
  std::uint8_t is_broken;
  std::uint8_t padding[5];
};

void start_carrier(State& state) {
  ++state.carriers;
  const int slot = state.carrier_at[0] == 0 ? 0 : 1;
  state.is_broken |= state.carrier_at[slot] != 0 ? 1 : 0;
  state.carrier_at[slot] = 1;
}

void make(State& state, tasklet::Step step) {
  state.word = step.word;
  if (step.acts) {
    start_carrier(state);
  }
}

bool step_asker(State& state, int me, int turns) {
  if (state.asked_at[me] == turns || state.canceller_at != 0) {
    return false;  // Who cancels sees to it that nobody schedules any more.
  }
  ++state.asked_at[me];
  state.owes_run = 1;
  make(state, tasklet::schedule(state.word, {static_cast<std::uint32_t>(me), 1}));
  return true;
}

bool step_carrier(State& state, int me, Rules rules) {
  std::uint8_t& at = state.carrier_at[me];
  switch (at) {
    case 0:
      return false;
    case 3:  // Only of the late carrier: it has looked, and takes its bit back now.
      state.word &= ~tasklet::kCarried;
      --state.carriers;
      at = 0;
      return true;
    default:
      break;
  }
  state.is_broken |= state.is_gone;
  if (at == 2 && state.is_critical != 0) {
    state.is_broken = 1;
  }
  const tasklet::Step step = tasklet::next_call(state.word);
  if (step.acts) {
    state.word = step.word;
    state.owes_run = 0;
    at = 2;
    state.is_broken |= state.is_critical;
  } else if (rules == Rules::late_carrier) {
    state.word &= ~tasklet::kInside;
    at = 3;
  } else {
    state.word = step.word;
    --state.carriers;
    at = 0;
  }
  return true;
}

/// 0: disables; 1: waits for the end of a call; 2: does what nobody may see; 3: enables.
bool step_disabler(State& state, Rules rules) {
  switch (state.disabler_at) {
    case 0:
      state.word = tasklet::disable(state.word).word;
      break;
    case 1:
      if ((state.word & tasklet::kInside) != 0 && rules != Rules::hasty_disable) {
        return false;
      }
      state.is_critical = 1;
      break;
    case 2:
      state.is_critical = 0;
      break;
    case 3: {
      const tasklet::Step step = tasklet::enable(state.word);
      make(state, rules == Rules::lazy_enable
                      ? tasklet::Step{state.word - tasklet::kDisabledOne, false}
                      : step);
      break;
    }
    default:
      return false;
  }
  ++state.disabler_at;
  return true;
}

/// 0: forgets; 1: waits until nobody carries it; 2: gone.
bool step_canceller(State& state) {
  switch (state.canceller_at) {
    case 0:
      if (state.disabler_at != 4) {
        return false;  // After the others are through with it.
      }
      state.word &= ~tasklet::kScheduled;
      state.owes_run = 0;
      break;
    case 1:
      if ((state.word & tasklet::kCarried) != 0) {
        return false;
      }
      state.is_gone = 1;
      break;
    default:
      return false;
  }
  ++state.canceller_at;
  return true;
}

bool explore(Rules rules, bool cancels, std::size_t& states) {
  return holds_in_all_interleavings(
      State{}, 6,
      [&](State& state, int process) {
        switch (process) {
          case 0:
            return step_asker(state, 0, 2);
          case 1:
            return step_asker(state, 1, 1);
          case 2:
          case 3:
            return step_carrier(state, process - 2, rules);
          case 4:
            return step_disabler(state, rules);
          default:
            return cancels && step_canceller(state);
        }
      },
      [&](const State& state, bool is_final) {
        const bool is_lost = is_final && state.owes_run != 0;
        const bool is_left = is_final && (state.word & tasklet::kCarried) != 0;
        return state.is_broken != 0 || state.carriers > 1 || is_lost || is_left;
      },
      states);
}

TEST(TaskletModel, RunsOneAtATimeNotWhileDisabledAndIsNeverForgotten) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(Rules::real, false, states));
  EXPECT_GT(states, 100U);
}

TEST(TaskletModel, NobodyKnowsOfItAfterACancel) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(Rules::real, true, states));
  EXPECT_GT(states, 150U);
}

TEST(TaskletModel, WhatIsLeftOutIsFound) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rules::hasty_disable, false, states));
  EXPECT_FALSE(explore(Rules::lazy_enable, false, states));
  EXPECT_FALSE(explore(Rules::late_carrier, false, states));
}

}  // namespace
}  // namespace sterna::threads
