// SideWork, all interleavings of a thread that offers its work three times and two helpers: each
// piece is done once, and nobody is inside it when its giver goes on. Negative controls: a giver
// who takes back without asking the slot, one who does not wait, and a helper that takes without
// an exchange, each break that.
#include <gtest/gtest.h>

#include "net/rails/side_work.h"
#include "threads/model_explorer.h"

namespace sterna::net {
namespace {

enum class Rules : std::uint8_t { real, takes_blindly, goes_on, looks_then_clears };

struct State {
  std::uint8_t slot;  // The number of the piece that lies there; 0: none.
  std::uint8_t is_done;
  std::uint8_t piece;  // Which one the giver is at; from 1.
  std::uint8_t giver_at;
  std::uint8_t times_done;  // This piece.
  std::uint8_t is_broken;   // Done twice, or not at all, or somebody inside an old one.
  std::uint8_t helper_at[2];
  std::uint8_t helper_has[2];  // A piece.
  std::uint8_t turns[2];
};

enum GiverAt : std::uint8_t { kOffer, kTakeBack, kDoIt, kWait, kGoOn, kEnd };
enum HelperAt : std::uint8_t { kLook, kClear, kRun, kSay, kGone };
constexpr std::uint8_t kPieces = 3;

bool step_giver(State& state, Rules rules) {
  switch (state.giver_at) {
    case kOffer:
      state.slot = state.piece;
      state.is_done = 0;
      state.times_done = 0;
      state.giver_at = kTakeBack;
      return true;
    case kTakeBack: {
      const bool is_mine = rules == Rules::takes_blindly || state.slot == state.piece;
      state.slot = is_mine ? 0 : state.slot;
      state.giver_at = is_mine ? kDoIt : kWait;
      return true;
    }
    case kDoIt:
      ++state.times_done;
      state.giver_at = kGoOn;
      return true;
    case kWait:
      if (state.is_done == 0 && rules != Rules::goes_on) {
        return false;
      }
      state.giver_at = kGoOn;
      return true;
    case kGoOn: {
      const bool is_inside =
          state.helper_has[0] == state.piece || state.helper_has[1] == state.piece;
      state.is_broken |= state.times_done != 1 || is_inside ? 1 : 0;
      state.giver_at = state.piece == kPieces ? kEnd : kOffer;
      ++state.piece;
      return true;
    }
    default:
      return false;
  }
}

bool step_helper(State& state, int helper, Rules rules) {
  std::uint8_t& at = state.helper_at[helper];
  switch (at) {
    case kLook:
      if (state.turns[helper]-- == 0) {
        at = kGone;
      } else if (state.slot != 0) {
        state.helper_has[helper] = state.slot;
        at = rules == Rules::looks_then_clears ? kClear : kRun;
        state.slot = rules == Rules::looks_then_clears ? state.slot : 0;
      }
      return true;
    case kClear:
      state.slot = 0;
      at = kRun;
      return true;
    case kRun:
      state.is_broken |= state.helper_has[helper] != state.piece ? 1 : 0;
      ++state.times_done;
      at = kSay;
      return true;
    case kSay:
      state.is_done = 1;
      state.helper_has[helper] = 0;
      at = kLook;
      return true;
    default:
      return false;
  }
}

bool each_is_done_once(Rules rules) {
  const State initial{.slot = 0,
                      .is_done = 0,
                      .piece = 1,
                      .giver_at = kOffer,
                      .times_done = 0,
                      .is_broken = 0,
                      .helper_at = {kLook, kLook},
                      .helper_has = {0, 0},
                      .turns = {4, 4}};
  std::size_t states = 0;
  const bool holds = threads::holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        return process == 0 ? step_giver(state, rules) : step_helper(state, process - 1, rules);
      },
      [](const State& state, bool is_final) {
        return state.is_broken != 0 || (is_final && state.giver_at != kEnd);
      },
      states);
  EXPECT_GT(states, 50U);
  return holds;
}

TEST(SideWorkModel, EachPieceIsDoneOnceAndLeftBeforeItsGiverGoesOn) {
  EXPECT_TRUE(each_is_done_once(Rules::real));
}

TEST(SideWorkModel, WhatIsTakenBackIsAskedOfTheSlot) {
  EXPECT_FALSE(each_is_done_once(Rules::takes_blindly));
}

TEST(SideWorkModel, AGiverWaitsForItsHelper) {
  EXPECT_FALSE(each_is_done_once(Rules::goes_on));
}

TEST(SideWorkModel, AHelperTakesByOneExchange) {
  EXPECT_FALSE(each_is_done_once(Rules::looks_then_clears));
}

}  // namespace
}  // namespace sterna::net
