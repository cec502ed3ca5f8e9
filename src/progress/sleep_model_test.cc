// Kernel threads that wait with one network among them (Progress::await_signal), all interleavings
// of three: one sleeps for the network, the others beside it, each on its own word; who gets up
// wakes one of those, so that somebody sleeps for the network again. The event of each comes from
// the network, or from elsewhere, at any time; one of them has a deadline. All waits end.
//
// Negative controls: one that passes the turn on only if its event has come when it gets up from
// beside (that was a fault of sleep.cc: the event may come a moment later); one that never does;
// a sleeper that wakes nobody.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"
#include "threads/sanitizer.h"

namespace sterna::progress {
namespace {

constexpr int kThreads = 3;
constexpr int kTimed = 0;  // The thread that has a deadline.

enum Word : std::uint8_t { kAwake, kOnFutex, kInHook };
enum At : std::uint8_t {
  kPoll,
  kTakeSignal,
  kEnterHook,   // Says "asleep in the hook".
  kBecome,      // The sleeper, unless there is one.
  kLookAtWord,  // Progress::sleep from here...
  kPrepare,
  kInEpoll,
  kGetUp,
  kWakeAside,
  kLeaveHook,  // ... to here.
  kJoin,       // Progress::sleep_beside from here...
  kEnterFutex,
  kLookForSleeper,
  kOnWord,
  kLeaveFutex,
  kErase,
  kEarlyLook,  // Where the fault looked.
  kEarlyPass,  // ... to here.
  kLook,       // `leave`.
  kPass,
  kEnd,
};

struct State {
  std::uint8_t at[kThreads] = {};
  std::uint8_t word[kThreads] = {};
  std::uint8_t has_signal[kThreads] = {};
  std::uint8_t was_beside[kThreads] = {};
  std::uint8_t has_come[kThreads] = {};  // Its event, from anywhere.
  std::uint8_t aside[kThreads] = {};     // Who waits beside, by number + 1, in order.
  std::uint8_t network = 0;              // Events that nobody has polled, a bit a thread.
  std::uint8_t event = 0;                // The eventfd.
  std::uint8_t has_sleeper = 0;
  std::uint8_t is_late = 0;  // The deadline has come.
};

enum class Rule : std::uint8_t { leave, early, never, no_wake };

void signal(State& state, int thread) {
  state.has_signal[thread] = 1;
  if (state.word[thread] == kInHook) {
    state.event = 1;
  }
}

/// By whoever polls: all that has come is given to those who wait for it.
void poll(State& state) {
  for (int thread = 0; thread < kThreads; ++thread) {
    if ((state.network >> thread & 1) != 0) {
      signal(state, thread);
    }
  }
  state.network = 0;
}

void wake_aside(State& state) {
  if (state.aside[0] != 0) {
    state.word[state.aside[0] - 1] = kAwake;
  }
}

void join_aside(State& state, int me) {
  for (std::uint8_t& place : state.aside) {
    if (place == 0) {
      place = static_cast<std::uint8_t>(me + 1);
      return;
    }
  }
}

void leave_aside(State& state, int me) {
  int to = 0;
  for (int from = 0; from < kThreads; ++from) {
    const std::uint8_t who = state.aside[from];
    state.aside[from] = 0;
    if (who != 0 && who != me + 1) {
      state.aside[to++] = who;
    }
  }
}

bool is_late(const State& state, int me) {
  return me == kTimed && state.is_late != 0;
}

/// Awake -> asleep, unless there is a signal.
std::uint8_t enter_sleep(State& state, int me, Word word, At asleep, At awake) {
  if (state.has_signal[me] != 0) {
    return awake;
  }
  state.word[me] = word;
  return asleep;
}

bool step_awake(State& state, int me, Rule rule) {
  std::uint8_t& at = state.at[me];
  const At end = rule == Rule::leave || rule == Rule::no_wake ? kLook : kEnd;
  switch (at) {
    case kPoll:
      poll(state);
      at = kTakeSignal;
      return true;
    case kTakeSignal:
      at = state.has_signal[me] != 0 || is_late(state, me) ? end : kEnterHook;
      return true;
    case kLook:
      at = state.was_beside[me] != 0 && state.has_sleeper == 0 ? kPass : kEnd;
      return true;
    case kPass:
      wake_aside(state);
      at = kEnd;
      return true;
    default:
      return false;
  }
}

bool step_sleep(State& state, int me, Rule rule) {
  std::uint8_t& at = state.at[me];
  switch (at) {
    case kEnterHook:
      at = enter_sleep(state, me, kInHook, kBecome, kPoll);
      return true;
    case kBecome:
      if (state.has_sleeper != 0) {
        state.word[me] = kAwake;
        at = kJoin;
      } else {
        at = kLookAtWord;
      }
      state.has_sleeper = 1;
      return true;
    case kLookAtWord:
      at = state.word[me] == kInHook && state.has_signal[me] == 0 ? kPrepare : kGetUp;
      return true;
    case kPrepare:
      at = state.network != 0 ? kGetUp : kInEpoll;
      return true;
    case kInEpoll:
      if (state.network == 0 && state.event == 0 && !is_late(state, me)) {
        return false;
      }
      state.event = 0;
      at = kGetUp;
      return true;
    case kGetUp:
      state.has_sleeper = 0;
      at = rule == Rule::no_wake ? kLeaveHook : kWakeAside;
      return true;
    case kWakeAside:
      wake_aside(state);
      at = kLeaveHook;
      return true;
    case kLeaveHook:
      state.word[me] = kAwake;
      at = kPoll;
      return true;
    default:
      return false;
  }
}

bool step_beside(State& state, int me, Rule rule) {
  std::uint8_t& at = state.at[me];
  switch (at) {
    case kJoin:
      join_aside(state, me);
      at = kEnterFutex;
      return true;
    case kEnterFutex:
      at = enter_sleep(state, me, kOnFutex, kLookForSleeper, kLeaveFutex);
      return true;
    case kLookForSleeper:
      at = state.has_sleeper != 0 ? kOnWord : kLeaveFutex;
      return true;
    case kOnWord:
      if (state.word[me] == kOnFutex && state.has_signal[me] == 0 && !is_late(state, me)) {
        return false;
      }
      at = kLeaveFutex;
      return true;
    case kLeaveFutex:
      state.word[me] = kAwake;
      at = kErase;
      return true;
    case kErase:
      leave_aside(state, me);
      state.was_beside[me] = 1;
      at = rule == Rule::early ? kEarlyLook : kPoll;
      return true;
    case kEarlyLook:
      at = state.has_signal[me] != 0 || is_late(state, me) ? kEarlyPass : kPoll;
      return true;
    case kEarlyPass:
      if (state.has_sleeper == 0) {
        wake_aside(state);
      }
      at = kPoll;
      return true;
    default:
      return false;
  }
}

bool step_event(State& state, int whose, bool is_from_network) {
  if (state.has_come[whose] != 0) {
    return false;
  }
  state.has_come[whose] = 1;
  if (is_from_network) {
    state.network = static_cast<std::uint8_t>(state.network | 1 << whose);
  } else {
    signal(state, whose);
  }
  return true;
}

bool explore(Rule rule, std::size_t& states) {
  return threads::holds_in_all_interleavings(
      State{}, 3 * kThreads + 1,
      [&](State& state, int process) {
        const int thread = process % kThreads;
        switch (process / kThreads) {
          case 0:
            return step_awake(state, thread, rule) || step_sleep(state, thread, rule) ||
                   step_beside(state, thread, rule);
          case 1:
            return step_event(state, thread, true);
          case 2:
            return step_event(state, thread, false);
          default:
            return state.is_late++ == 0;
        }
      },
      [](const State& state, bool is_final) {
        bool all_ended = true;
        for (const std::uint8_t at : state.at) {
          all_ended = all_ended && at == kEnd;
        }
        return is_final && !all_ended;
      },
      states);
}

/// The explorer is one kernel thread that runs the rules as plain functions: there is no access for
/// a sanitizer to judge, and under one it takes longer than the limit of a test. Those that break a
/// rule which fails early run all the same.
class ProgressSleepModel : public testing::Test {
 protected:
  static constexpr bool kSkips = threads::kSanitized;
  static constexpr const char* kWhy =
      "walking through so many states takes longer than a test may under a sanitizer";
};

TEST_F(ProgressSleepModel, WhoeverLeavesPassesTheTurnOn) {
  if (kSkips) {
    // A sanitizer is ten times as slow, and all states must be walked.
    GTEST_SKIP() << kWhy;
  }
  std::size_t states = 0;
  EXPECT_TRUE(explore(Rule::leave, states));
  EXPECT_GT(states, 10'000U);
}

TEST_F(ProgressSleepModel, AnEventThatComesAfterTheLookIsFoundToEndTheNetworksSleep) {
  if (kSkips) {
    // A sanitizer is ten times as slow, and all states must be walked.
    GTEST_SKIP() << kWhy;
  }
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rule::early, states));
}

TEST_F(ProgressSleepModel, WhoNeverPassesOnIsFoundToLeaveTheOthersAsleep) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rule::never, states));
}

TEST_F(ProgressSleepModel, ASleeperThatWakesNobodyIsFoundToLeaveTheOthersAsleep) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rule::no_wake, states));
}

}  // namespace
}  // namespace sterna::progress
