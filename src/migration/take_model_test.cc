// A rank that goes the short way, in every order: given and taken by one word (custody.h). The
// source does not wait for ever, either node may die or be slow, and the source may give the rank
// again, to the same node, while an old TAKE still lies there. The rank never runs at two places;
// in the end it is at one, unless a node died that had it.
#include <gtest/gtest.h>

#include "migration/custody.h"
#include "threads/model_explorer.h"

namespace sterna::migration {
namespace {

using threads::holds_in_all_interleavings;

enum Source : std::uint8_t {
  kRuns,   // Frozen or running: it is the source's.
  kGiven,  // The word is stored, TAKE is not sent.
  kWaits,  // For the answer.
  kGone,
};
enum There : std::uint8_t { kPrepared, kClaimed, kRunsThere, kDropped };

struct State {
  std::uint8_t source = kRuns;
  std::uint8_t word = 0;       // Number of the attempt it is given in; 0: not given.
  std::uint8_t attempts = 0;   // The last number.
  std::uint8_t queue[4] = {};  // Numbers of TAKEs, in order; kDrop.
  std::uint8_t there = kPrepared;
  std::uint8_t claimed = 0;  // The TAKE that is looked at.
  std::uint8_t answer = 0;   // On its way: number that was taken.
  std::uint8_t refusal = 0;  // ... refused.
  std::uint8_t is_source_dead = 0;
  std::uint8_t is_there_dead = 0;
};

constexpr std::uint8_t kDrop = 99;
constexpr std::uint8_t kAttemptsMax = 3;

struct Faults {
  bool takes_blindly = false;  // TAKE is believed without the word.
  bool has_numbers = true;     // The word says "given" of no attempt.
};

bool send(State& state, std::uint8_t message) {
  for (std::uint8_t& place : state.queue) {
    if (place == 0) {
      place = message;
      return true;
    }
  }
  return false;
}

/// The source's compare-and-exchange: back to it, or gone.
void decide(State& state) {
  const bool is_ours = state.word != 0;
  state.source = is_ours ? kRuns : kGone;
  state.word = 0;
}

bool source_step(State& state) {
  if (state.is_source_dead != 0) {
    return false;
  }
  switch (state.source) {
    case kRuns:
      if (state.attempts == kAttemptsMax) {
        return false;
      }
      state.word = ++state.attempts;
      state.source = kGiven;
      return true;
    case kGiven:
      if (!send(state, state.attempts)) {
        return false;
      }
      state.source = kWaits;
      return true;
    case kWaits:
      if (state.answer == state.attempts) {
        state.source = kGone;
        return true;
      }
      if (state.refusal == state.attempts || state.is_there_dead != 0) {
        decide(state);
        return true;
      }
      return false;
    default:
      return false;
  }
}

bool time_passes(State& state) {
  if (state.is_source_dead != 0 || state.source != kWaits) {
    return false;
  }
  decide(state);
  return true;
}

/// The order to forget what is prepared, when the rank stays: behind the TAKEs.
bool drop(State& state) {
  return state.is_source_dead == 0 && state.source == kRuns && state.attempts != 0 &&
         send(state, kDrop);
}

bool destination_step(State& state, const Faults& faults) {
  if (state.is_there_dead != 0) {
    return false;
  }
  if (state.there == kClaimed) {
    const bool is_given = faults.takes_blindly ||
                          (faults.has_numbers ? state.word == state.claimed : state.word != 0);
    if (is_given) {
      state.word = 0;
      state.there = kRunsThere;
      state.answer = state.claimed;
    } else {
      state.there = kPrepared;
      state.refusal = state.claimed;
    }
    return true;
  }
  const std::uint8_t message = state.queue[0];
  if (message == 0) {
    return false;
  }
  for (int i = 0; i < 3; ++i) {
    state.queue[i] = state.queue[i + 1];
  }
  state.queue[3] = 0;
  if (message == kDrop) {
    state.there = state.there == kPrepared ? std::uint8_t{kDropped} : state.there;
  } else if (state.there == kPrepared) {
    state.there = kClaimed;
    state.claimed = message;
  } else {
    state.refusal = message;
  }
  return true;
}

bool explore(const Faults& faults, std::size_t& states) {
  return holds_in_all_interleavings(
      State{}, 6,
      [&](State& state, int process) {
        switch (process) {
          case 0:
            return source_step(state);
          case 1:
            return time_passes(state);
          case 2:
            return drop(state);
          case 3:
            return destination_step(state, faults);
          case 4:
            return state.is_source_dead++ == 0;
          default:
            return state.is_there_dead++ == 0;
        }
      },
      [](const State& state, bool is_final) {
        const bool is_at_source = state.source == kRuns;
        const bool is_there = state.there == kRunsThere;
        const bool is_lost = (state.is_source_dead != 0 && state.source != kGone && !is_there) ||
                             (state.is_there_dead != 0 && is_there);
        const bool is_twice = is_at_source && is_there && state.is_source_dead == 0;
        return is_twice || (is_final && !is_at_source && !is_there && !is_lost);
      },
      states);
}

TEST(TakeModel, TheRankIsTakenOrTakenBack) {
  std::size_t states = 0;
  EXPECT_TRUE(explore({}, states));
  EXPECT_GT(states, 500U);
}

TEST(TakeModel, WithoutTheWordALateTakeMakesTwo) {
  std::size_t states = 0;
  EXPECT_FALSE(explore({.takes_blindly = true}, states));
}

// A word without a number: an old TAKE takes what is given anew, its answer names the old attempt,
// and nothing is lost. That is why the word alone decides, and not the answer.
TEST(TakeModel, TheWordDecidesEvenIfAnOldTakeTakes) {
  std::size_t states = 0;
  EXPECT_TRUE(explore({.has_numbers = false}, states));
}

TEST(Custody, IsTakenOrTakenBackAndNeverTheSameTwice) {
  std::atomic<std::uint64_t> word{0};
  const std::uint64_t first = give_custody(word, 7);
  EXPECT_TRUE(is_given_to(first, 7));
  EXPECT_FALSE(is_given_to(first, 6));
  EXPECT_TRUE(take_custody(word, first));
  EXPECT_FALSE(take_back_custody(word, first));
  const std::uint64_t second = give_custody(word, 7);
  EXPECT_NE(second, first);
  EXPECT_FALSE(take_custody(word, first));
  EXPECT_TRUE(take_back_custody(word, second));
  EXPECT_FALSE(take_custody(word, second));
  EXPECT_FALSE(is_given_to(word.load(), 7));
}

}  // namespace
}  // namespace sterna::migration
