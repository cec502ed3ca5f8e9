// All interleavings of the two waits on words.
//
// A kernel thread waits for signals on its own futex (KernelWaiter, futex.cc): it waits three
// times, three signals come from two others, and its sleep may end without a reason at any moment.
// Negative controls: to fall asleep by a plain store forgets a signal; a signaller that adds after
// it has looked whether the waiter sleeps wakes nobody.
//
// Threads wait until a word of the program changes (WordWait, sync/word_wait.cc): two waiters, and
// one who changes the word and then wakes all. Negative control: a waiter that reads the word
// before it has the lock sleeps for ever.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kOnFutex = 1;
constexpr std::uint8_t kSignal = 4;

enum class SignalRules : std::uint8_t { real, plain_store, look_first };

struct Signals {
  std::uint8_t word;
  std::uint8_t at;  // Of the waiter.
  std::uint8_t seen;
  std::uint8_t waits_left;
  std::uint8_t signaller_at[2];
  std::uint8_t signaller_seen[2];
  std::uint8_t signals_left[2];
};

enum At : std::uint8_t { kLook, kTake, kEnter, kCall, kAsleep };

bool step_waiter(Signals& state, SignalRules rules) {
  switch (state.at) {
    case kLook:
      if (state.waits_left == 0) {
        return false;
      }
      state.seen = state.word;
      state.at = state.seen >= kSignal ? kTake : kEnter;
      return true;
    case kTake:
      state.at = kLook;
      if (state.word == state.seen) {
        state.word = static_cast<std::uint8_t>((state.seen - kSignal) & ~kOnFutex);
        --state.waits_left;
      }
      return true;
    case kEnter:
      if (rules != SignalRules::plain_store && state.word != state.seen) {
        state.at = kLook;
        return true;
      }
      state.word = kOnFutex;
      state.at = kCall;
      return true;
    case kCall:  // The kernel compares, and puts it to sleep, in one step.
      state.at = state.word == kOnFutex ? kAsleep : kLook;
      return true;
    default:
      return false;
  }
}

bool step_signaller(Signals& state, int me, SignalRules rules) {
  std::uint8_t& at = state.signaller_at[me];
  std::uint8_t& seen = state.signaller_seen[me];
  switch (at) {
    case 0:
      if (state.signals_left[me] == 0) {
        return false;
      }
      seen = state.word;
      if (rules != SignalRules::look_first) {
        state.word += kSignal;
      }
      at = 1;
      return true;
    case 1:
      if (rules == SignalRules::look_first) {
        state.word += kSignal;
      }
      at = 2;
      return true;
    default:  // FUTEX_WAKE, if it was on the futex.
      if ((seen & kOnFutex) != 0 && state.at == kAsleep) {
        state.at = kLook;
      }
      --state.signals_left[me];
      seen = 0;
      at = 0;
      return true;
  }
}

bool explore_signals(SignalRules rules, bool wakes_by_itself, std::size_t& states) {
  Signals initial{};
  initial.waits_left = 3;
  initial.signals_left[0] = 2;
  initial.signals_left[1] = 1;
  return holds_in_all_interleavings(
      initial, 4,
      [&](Signals& state, int process) {
        if (process == 0) {
          return step_waiter(state, rules);
        }
        if (process < 3) {
          return step_signaller(state, process - 1, rules);
        }
        if (!wakes_by_itself || state.at != kAsleep) {
          return false;
        }
        state.at = kLook;
        return true;
      },
      [](const Signals& state, bool is_final) { return is_final && state.waits_left != 0; },
      states);
}

TEST(FutexModel, KernelThreadLosesNoSignal) {
  std::size_t states = 0;
  EXPECT_TRUE(explore_signals(SignalRules::real, false, states));
  EXPECT_GT(states, 200U);
  EXPECT_TRUE(explore_signals(SignalRules::real, true, states));
}

TEST(FutexModel, EachRuleOfASignalIsNeeded) {
  std::size_t states = 0;
  EXPECT_FALSE(explore_signals(SignalRules::plain_store, false, states));
  EXPECT_FALSE(explore_signals(SignalRules::look_first, false, states));
}

struct Words {
  std::uint8_t word;
  std::uint8_t lock;    // 0 free, else process + 1.
  std::uint8_t listed;  // Bit per waiter.
  std::uint8_t awake;   // Bit per waiter: it was woken.
  std::uint8_t at[2];
  std::uint8_t seen[2];
  std::uint8_t taken;  // By the waker, to be woken.
  std::uint8_t waker_at;
};

/// 0: takes the lock; 1: reads; 2: joins the list, or not; 3: gives the lock back; 4: sleeps.
bool step_word_waiter(Words& state, int me, bool reads_inside) {
  std::uint8_t& at = state.at[me];
  const auto bit = static_cast<std::uint8_t>(1 << me);
  const int first = reads_inside ? 0 : 1;
  if (at == first) {  // The lock: before the look, or, in the control, after it.
    if (state.lock != 0) {
      return false;
    }
    state.lock = static_cast<std::uint8_t>(me + 1);
    ++at;
    return true;
  }
  switch (at) {
    case 0:
    case 1:
      state.seen[me] = state.word;
      ++at;
      return true;
    case 2:
      state.listed |= state.seen[me] == 0 ? bit : 0;
      ++at;
      return true;
    case 3:
      state.lock = 0;
      at = state.seen[me] == 0 ? 4 : 5;
      return true;
    case 4:
      if ((state.awake & bit) == 0) {
        return false;
      }
      at = 5;
      return true;
    default:
      return false;
  }
}

bool step_waker(Words& state) {
  switch (state.waker_at) {
    case 0:
      state.word = 1;
      break;
    case 1:
      if (state.lock != 0) {
        return false;
      }
      state.lock = 3;
      break;
    case 2:
      state.taken = state.listed;
      state.listed = 0;
      break;
    case 3:
      state.lock = 0;
      break;
    case 4:
      state.awake |= state.taken;
      break;
    default:
      return false;
  }
  ++state.waker_at;
  return true;
}

bool explore_words(bool reads_inside, std::size_t& states) {
  return holds_in_all_interleavings(
      Words{}, 3,
      [&](Words& state, int process) {
        return process == 2 ? step_waker(state) : step_word_waiter(state, process, reads_inside);
      },
      [](const Words& state, bool is_final) {
        return is_final && (state.at[0] != 5 || state.at[1] != 5);
      },
      states);
}

TEST(FutexModel, WhoWaitsForAWordIsWokenByItsChange) {
  std::size_t states = 0;
  EXPECT_TRUE(explore_words(true, states));
  EXPECT_GT(states, 60U);
  EXPECT_FALSE(explore_words(false, states));
}

}  // namespace
}  // namespace sterna::threads
