// Parking, all interleavings of a thread that waits three times with an unparker, a signaller, a
// timer and (in a second model) a canceller, whose event stays: it is made runnable exactly once
// per parking, and never sleeps on an event it waits for.
// Negative control: a thread that parks by a plain store, not by a compare-and-swap, loses a
// wake-up.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

// The word, as in park.cc, with the signals in bits 4 and 5.
constexpr std::uint8_t kToken = 1;
constexpr std::uint8_t kParked = 2;  // For whatever the wait asks.
constexpr std::uint8_t kTimer = 4;   // Or, in the second model, cancel: it stays.
constexpr std::uint8_t kSignal = 16;

struct State {
  std::uint8_t word;
  std::uint8_t at;        // Of the thread.
  std::uint8_t seen;      // What it read.
  std::uint8_t runnable;  // Times it was made runnable and has not run since.
  std::uint8_t waits_left;
  std::uint8_t brought;  // Events brought, bit per bringer: token, signal, timer.
  std::uint8_t bringer_at[3];
  std::uint8_t bringer_seen[3];
  std::uint8_t is_cancel;  // Constant.
};

enum At : std::uint8_t { kTake, kLook, kPark, kAsleep };

bool has_event(std::uint8_t word) {
  return (word & (kToken | kTimer)) != 0 || word >= kSignal;
}

bool step_thread(State& state, bool has_exchange) {
  switch (state.at) {
    case kTake:
      if (state.waits_left == 0) {
        return false;
      }
      if (!has_event(state.word)) {
        state.at = kLook;
      } else {
        // One event per wait: a signal, else the token, else the timer.
        if (state.word >= kSignal) {
          state.word -= kSignal;
        } else if ((state.word & kToken) != 0) {
          state.word &= ~kToken;
        } else if (state.is_cancel == 0) {
          state.word &= ~kTimer;
        }
        --state.waits_left;
      }
      return true;
    case kLook:
      state.seen = state.word;
      state.at = has_event(state.seen) ? kTake : kPark;
      return true;
    case kPark:
      if (has_exchange && state.word != state.seen) {
        state.at = kLook;
        return true;
      }
      state.word = state.seen | kParked;
      state.at = kAsleep;
      return true;
    default:
      if (state.runnable == 0) {
        return false;
      }
      --state.runnable;
      state.at = kTake;
      return true;
  }
}

/// Reads, then swaps if nothing changed in between, then makes the thread runnable if it was
/// parked.
bool step_bringer(State& state, int bringer) {
  std::uint8_t& at = state.bringer_at[bringer];
  std::uint8_t& seen = state.bringer_seen[bringer];
  switch (at) {
    case 0:
      seen = state.word;
      at = 1;
      return true;
    case 1: {
      if (state.word != seen) {
        at = 0;
        return true;
      }
      const std::uint8_t base = seen & ~kParked;
      state.word = bringer == 0 ? base | kToken : bringer == 1 ? base + kSignal : base | kTimer;
      state.brought |= static_cast<std::uint8_t>(1 << bringer);
      at = (seen & kParked) != 0 ? 2 : 3;
      return true;
    }
    case 2:
      ++state.runnable;
      at = 3;
      return true;
    default:
      return false;
  }
}

bool explore(bool has_exchange, std::size_t& states, bool is_cancel = false) {
  State initial{};
  initial.is_cancel = is_cancel ? 1 : 0;
  initial.waits_left = 3;
  return holds_in_all_interleavings(
      initial, 4,
      [&](State& state, int process) {
        return process == 0 ? step_thread(state, has_exchange) : step_bringer(state, process - 1);
      },
      [](const State& state, bool is_final) {
        // Made runnable while it runs, or twice for one parking.
        const bool is_doubled = state.runnable > 1 || (state.runnable == 1 && state.at != kAsleep);
        // Three events are brought for three waits: at the end none is left and nobody sleeps.
        const bool is_lost = is_final && state.waits_left != 0;
        return is_doubled || is_lost;
      },
      states);
}

TEST(ParkModel, ThreadIsMadeRunnableOncePerParkingAndLosesNoEvent) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(true, states));
  EXPECT_GT(states, 1000U);
}

TEST(ParkModel, CancelledThreadSleepsNoMore) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(true, states, true));
  EXPECT_GT(states, 1000U);
  EXPECT_FALSE(explore(false, states, true));
}

TEST(ParkModel, PlainStoreInsteadOfTheExchangeIsFoundToLoseAWakeUp) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(false, states));
}

}  // namespace
}  // namespace sterna::threads
