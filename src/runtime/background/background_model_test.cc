// Who is rung for while the program looks a last time and goes away, all interleavings of the
// program, of a peer that sends and rings, and of the thread that progresses in the place of the
// program: what the peer has sent is taken. Negative controls: a program that does not ask whether
// it was rung for, and a thread that does not look for the program once it has said that it has
// heard.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::runtime {
namespace {

struct Rules {
  bool program_asks;
  bool thread_looks_again;
};

constexpr std::uint8_t kAway = 1, kRung = 2, kHeard = 3;  // 0: it is present.

struct State {
  std::uint8_t flag;
  bool is_gone;  // The owner is nobody.
  bool is_sent;  // And not taken.
  bool is_rung;  // As the program saw it.
  bool is_parked;
  std::uint8_t program_at;
  std::uint8_t peer_at;
  std::uint8_t thread_at;
};

bool step_program(State& state, const Rules& rules) {
  switch (state.program_at++) {
    case 0:
      state.flag = kAway;
      return true;
    case 1:
      state.is_sent = false;  // Its last poll.
      return true;
    case 2:
      state.is_gone = true;
      return true;
    case 3:
      state.is_rung = state.flag == kRung || state.flag == kHeard;
      return true;
    case 4:
      if (state.is_rung && rules.program_asks) {
        state.flag = kRung;
        state.is_parked = false;
      }
      return true;
    default:
      state.program_at = 5;
      return false;
  }
}

/// It waits, and asks from time to time.
bool step_peer(State& state) {
  switch (state.peer_at) {
    case 0:
      state.is_sent = true;
      state.peer_at = 1;
      return true;
    case 1:
      if (!state.is_sent || state.flag != kAway) {
        return false;
      }
      state.flag = kRung;
      state.peer_at = 2;
      return true;
    default:
      state.is_parked = false;
      state.peer_at = 1;
      return true;
  }
}

enum At : std::uint8_t { kSleeps, kLooks, kRests, kLooksLast, kSaysHeard, kLooksAgain, kGoesOn };

bool step_thread(State& state, const Rules& rules) {
  switch (state.thread_at) {
    case kSleeps:
      if (state.is_parked) {
        return false;
      }
      state.is_parked = state.flag != kRung;
      state.thread_at = state.is_parked ? kSleeps : kLooks;
      return true;
    case kLooks:
      state.is_sent = state.is_sent && !state.is_gone;
      state.thread_at = state.is_gone ? kRests : kSaysHeard;
      return true;
    case kRests:
      state.flag = state.flag == kRung ? kAway : state.flag;
      state.thread_at = kLooksLast;
      return true;
    case kLooksLast:
      state.is_sent = false;
      state.thread_at = kSleeps;
      return true;
    case kSaysHeard:
      state.thread_at = state.flag == kRung && rules.thread_looks_again ? kLooksAgain : kSleeps;
      state.flag = state.flag == kRung ? kHeard : state.flag;
      return true;
    case kLooksAgain:
      state.thread_at = state.is_gone ? kGoesOn : kSleeps;
      return true;
    default:
      state.flag = state.flag == kHeard ? kRung : state.flag;
      state.thread_at = kSleeps;
      return true;
  }
}

bool explore(const Rules& rules) {
  std::size_t states = 0;
  return threads::holds_in_all_interleavings(
      State{}, 3,
      [&](State& state, int process) {
        return process == 0   ? step_program(state, rules)
               : process == 1 ? step_peer(state)
                              : step_thread(state, rules);
      },
      [](const State& state, bool is_final) { return is_final && state.is_sent; },
      states);
}

TEST(BackgroundModel, WhatIsRungForWhileTheProgramGoesIsTaken) {
  EXPECT_TRUE(explore({.program_asks = true, .thread_looks_again = true}));
}

TEST(BackgroundModel, AProgramThatDoesNotAskIsFoundToLeaveIt) {
  EXPECT_FALSE(explore({.program_asks = false, .thread_looks_again = true}));
}

TEST(BackgroundModel, AThreadThatDoesNotLookAgainIsFoundToLeaveIt) {
  EXPECT_FALSE(explore({.program_asks = true, .thread_looks_again = false}));
}

}  // namespace
}  // namespace sterna::runtime
