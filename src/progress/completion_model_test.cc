// The interruptible wait on a Completion, all interleavings of the waiter with a completer and with
// somebody who gives it tokens (an order to move): the waiter ends, and no signal is left that
// would end a later wait. Negative control: a waiter that does not await the signal it is owed.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::progress {
namespace {

struct State {
  std::uint8_t completion;  // 0: pending; 1: done; 2: has the waiter.
  std::uint8_t token;
  std::uint8_t signals;
  std::uint8_t parked;  // 1: for a signal; 2: for a signal or a token; 0: runs.
  std::uint8_t at;
  std::uint8_t completer_at;
  std::uint8_t tokens_left;
};

enum At : std::uint8_t { kLook, kPublish, kAwait, kWithdraw, kAwaitOwed, kEnd };

/// Takes or parks. True: it has moved.
bool step_await(State& state, bool is_interruptible, std::uint8_t at_signal) {
  if (state.parked != 0) {
    return false;
  }
  if (state.signals != 0) {
    --state.signals;
    state.at = at_signal;
  } else if (is_interruptible && state.token != 0) {
    state.token = 0;
    state.at = kWithdraw;
  } else {
    state.parked = is_interruptible ? 2 : 1;
  }
  return true;
}

bool step_waiter(State& state, bool awaits_owed) {
  switch (state.at) {
    case kLook:
      state.at = state.completion == 1 ? kEnd : kPublish;
      return true;
    case kPublish:
      state.at = state.completion == 1 ? kEnd : kAwait;
      state.completion = state.completion == 1 ? 1 : 2;
      return true;
    case kAwait:
      return step_await(state, true, kLook);
    case kWithdraw:
      if (state.completion == 2) {
        state.completion = 0;
        state.at = kLook;  // A safe point, and again.
      } else {
        state.at = awaits_owed ? kAwaitOwed : kLook;
      }
      return true;
    case kAwaitOwed:
      return step_await(state, false, kLook);
    default:
      return false;
  }
}

bool step_completer(State& state) {
  switch (state.completer_at) {
    case 0:
      state.completer_at = state.completion == 2 ? 1 : 2;
      state.completion = 1;
      return true;
    case 1:
      ++state.signals;
      state.parked = 0;
      state.completer_at = 2;
      return true;
    default:
      return false;
  }
}

bool step_asker(State& state) {
  if (state.tokens_left == 0) {
    return false;
  }
  --state.tokens_left;
  state.token = 1;
  if (state.parked == 2) {
    state.parked = 0;
  }
  return true;
}

bool explore(bool awaits_owed) {
  State initial{};
  initial.tokens_left = 3;
  std::size_t states = 0;
  return threads::holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        return process == 0   ? step_waiter(state, awaits_owed)
               : process == 1 ? step_completer(state)
                              : step_asker(state);
      },
      [](const State& state, bool is_final) {
        return is_final && (state.at != kEnd || state.signals != 0);
      },
      states);
}

TEST(CompletionModel, InterruptedWaiterLosesNoSignalAndLeavesNone) {
  EXPECT_TRUE(explore(true));
}

TEST(CompletionModel, WaiterThatDoesNotAwaitItsSignalIsFoundToLeaveOne) {
  EXPECT_FALSE(explore(false));
}

}  // namespace
}  // namespace sterna::progress
