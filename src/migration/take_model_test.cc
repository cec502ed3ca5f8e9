// A rank that goes the short way, in every order: given and taken by one word (custody.h). The
// source does not wait for ever, either node may die or be slow, and the source may give the rank
// again, to the same node, while an old TAKE still lies there. In place of TAKE it may send GIFT,
// which a thread of the destination looks at, some time later, and maps the rank before it takes
// it. The rank never runs at two places; in the end it is at one, unless a node died that had it.
#include <gtest/gtest.h>

#include "migration/custody.h"
#include "migration/model_wire.h"

namespace sterna::migration {
namespace {

constexpr int kGiftsMax = 2;

enum Source : std::uint8_t {
  kRuns,   // Frozen or running: it is the source's.
  kGiven,  // The word is stored, TAKE is not sent.
  kWaits,  // For the answer.
  kGone,
};
enum There : std::uint8_t { kPrepared, kClaimed, kMapping, kRunsThere, kDropped };

struct State {
  std::uint8_t source = kRuns;
  std::uint8_t word = 0;      // Number of the attempt it is given in; 0: not given.
  std::uint8_t attempts = 0;  // The last number.
  ModelWire<4> wire;          // Numbers of TAKEs; of GIFTs; kDrop.
  std::uint8_t there = kPrepared;
  std::uint8_t claimed = 0;                // The TAKE that is looked at.
  std::uint8_t answer = 0;                 // On its way: number that was taken.
  std::uint8_t refusal = 0;                // ... refused.
  std::uint8_t gifts[kGiftsMax] = {};      // Of the threads, numbers; 0: there is none.
  std::uint8_t is_mapped[kGiftsMax] = {};  // By that thread.
  std::uint8_t is_source_dead = 0;
  std::uint8_t is_there_dead = 0;
};

constexpr std::uint8_t kDrop = 99;
constexpr std::uint8_t kGift = 16;  // Added to the number of a GIFT.
constexpr std::uint8_t kAttemptsMax = 3;

struct Faults {
  bool takes_blindly = false;  // TAKE is believed without the word.
  bool is_gift_blind = false;  // GIFT is.
  bool has_numbers = true;     // The word says "given" of no attempt.
};

/// The source's compare-and-exchange: back to it, or gone.
void decide(State& state) {
  const bool is_ours = state.word != 0;
  state.source = is_ours ? kRuns : kGone;
  state.word = 0;
}

bool send_away(State& state, int message) {
  if (!state.wire.send(static_cast<std::uint8_t>(message))) {
    return false;
  }
  state.source = kWaits;
  return true;
}

/// In place of TAKE: it thinks that the rank is not mapped there, rightly or not.
bool send_gift(State& state) {
  return state.is_source_dead == 0 && state.source == kGiven &&
         send_away(state, kGift + state.attempts);
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
      return send_away(state, state.attempts);
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
         state.wire.send(kDrop);
}

/// Whether what is given may be taken, by TAKE or GIFT `number`; takes it.
bool take(State& state, std::uint8_t number, bool is_blind, const Faults& faults) {
  const bool is_given = is_blind || (faults.has_numbers ? state.word == number : state.word != 0);
  if (is_given) {
    state.word = 0;
    state.there = kRunsThere;
    state.answer = number;
  } else {
    state.refusal = number;
  }
  return is_given;
}

bool start_gift(State& state, std::uint8_t number) {
  for (std::uint8_t& place : state.gifts) {
    if (place == 0) {
      place = number;
      return true;
    }
  }
  state.refusal = number;
  return true;
}

bool poll_step(State& state, const Faults& faults) {
  if (state.is_there_dead != 0) {
    return false;
  }
  if (state.there == kClaimed) {
    if (!take(state, state.claimed, faults.takes_blindly, faults)) {
      state.there = kPrepared;
    }
    return true;
  }
  const std::uint8_t message = state.wire.take();
  if (message == 0) {
    return false;
  }
  if (message == kDrop) {
    state.there = state.there == kPrepared ? std::uint8_t{kDropped} : state.there;
  } else if (message > kGift) {
    return start_gift(state, message - kGift);
  } else if (state.there == kPrepared) {
    state.there = kClaimed;
    state.claimed = message;
  } else {
    state.refusal = message;
  }
  return true;
}

/// A thread with a GIFT: maps the rank unless another has it, then takes it. Threads are not
/// ordered, and nothing tells them that the source has ended.
bool gift_step(State& state, int which, const Faults& faults) {
  const std::uint8_t number = state.gifts[which];
  if (number == 0 || state.is_there_dead != 0 || state.there == kClaimed) {
    return false;
  }
  if (state.is_mapped[which] == 0) {
    if (state.there == kPrepared || state.there == kDropped) {
      state.there = kMapping;
      state.is_mapped[which] = 1;
    } else {
      state.refusal = number;
      state.gifts[which] = 0;
    }
    return true;
  }
  if (!take(state, number, faults.is_gift_blind, faults)) {
    state.there = kDropped;
  }
  state.gifts[which] = state.is_mapped[which] = 0;
  return true;
}

bool explore(const Faults& faults, std::size_t& states) {
  const auto source = [](State& state) { return source_step(state); };
  const auto gift = [](State& state) { return send_gift(state); };
  const auto time = [](State& state) { return time_passes(state); };
  const auto dropping = [](State& state) { return drop(state); };
  const auto poll = [&](State& state) { return poll_step(state, faults); };
  const auto first = [&](State& state) { return gift_step(state, 0, faults); };
  const auto second = [&](State& state) { return gift_step(state, 1, faults); };
  const auto end = [](State& state) { return happen_once(state.is_source_dead); };
  const auto end_there = [](State& state) { return happen_once(state.is_there_dead); };
  const ModelProcess<State> processes[] = {source, gift,   time, dropping, poll,
                                           first,  second, end,  end_there};
  return holds_for_all_orders(
      State{}, processes,
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
  EXPECT_GT(states, 5000U);
}

TEST(TakeModel, WithoutTheWordALateTakeMakesTwo) {
  std::size_t states = 0;
  EXPECT_FALSE(explore({.takes_blindly = true}, states));
}

TEST(TakeModel, WithoutTheWordALateGiftMakesTwo) {
  std::size_t states = 0;
  EXPECT_FALSE(explore({.is_gift_blind = true}, states));
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
