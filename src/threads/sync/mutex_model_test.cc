// The biased mutex, all interleavings of a worker W that locks and unlocks, one of its threads
// after the other, and of somebody else who does too, on a machine with store buffers (x86-TSO):
// never both inside, nobody is stuck, no change of the word is lost. The lock of the home is
// biased_lock.h, step by step; the word becomes biased at the first use by W, as often as `losses`
// allows.
// Negative controls: the bias is taken away without the lock of the home, without the process
// barrier, or the worker does not look at the word again inside its section.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

// The word.
constexpr std::uint8_t kLocked = 1;
constexpr std::uint8_t kBiased = 2;
constexpr std::uint8_t kLoss = 4;  // Each time the bias was taken away; two are the end of it.
constexpr std::uint8_t kLossesMax = 2 * kLoss;

enum Place : std::uint8_t { kOwner, kThief, kWord, kPlaces };

struct State {
  std::uint8_t memory[kPlaces];
  std::uint8_t buffer[3];  // Of W, oldest first: place * 16 + value.
  std::uint8_t buffered;
  std::uint8_t at;      // Of W.
  std::uint8_t other;   // Of the other one.
  std::uint8_t seen;    // What W read of the word.
  std::uint8_t others;  // What the other one read.
  std::uint8_t is_unlock;
  std::uint8_t rounds_left;
  std::uint8_t other_rounds_left;
};

enum class Rules : std::uint8_t { real, without_home, without_barrier, without_second_look };

enum At : std::uint8_t {
  kRead,
  kExchange,
  kEnter,
  kLookAtThief,
  kLookAgain,
  kChange,
  kLeaveFit,
  kLeaveUnfit,
  kRetreat,
  kAwaitThief,
  kCritical,
};
enum Other : std::uint8_t {
  kOtherRead,
  kOtherExchange,
  kAnnounce,
  kBarrier,
  kAwaitOwner,
  kTake,
  kGiveBack,
  kOtherCritical,
};

void flush_one(State& state) {
  state.memory[state.buffer[0] / 16] = state.buffer[0] % 16;
  --state.buffered;
  for (int i = 0; i < 2; ++i) {
    state.buffer[i] = state.buffer[i + 1];
  }
  state.buffer[2] = 0;
}

void flush(State& state) {
  while (state.buffered != 0) {
    flush_one(state);
  }
}

void store(State& state, Place place, std::uint8_t value) {
  if (state.buffered == 3) {
    flush_one(state);
  }
  state.buffer[state.buffered++] = static_cast<std::uint8_t>(place * 16 + value);
}

/// W reads its own youngest store, if it has one.
std::uint8_t load(const State& state, Place place) {
  for (int i = state.buffered - 1; i >= 0; --i) {
    if (state.buffer[i] / 16 == place) {
      return state.buffer[i] % 16;
    }
  }
  return state.memory[place];
}

/// W has changed the word as it wanted.
void advance(State& state) {
  if (state.is_unlock == 0) {
    state.at = kCritical;
  } else {
    state.is_unlock = 0;
    --state.rounds_left;
    state.at = kRead;
  }
}

/// W, outside of sections: reads the word, and changes it if it is not biased.
bool step_outside(State& state) {
  if (state.at == kRead) {
    if (state.rounds_left == 0) {
      return false;
    }
    state.seen = load(state, kWord);
    if ((state.seen & kBiased) != 0) {
      state.at = kEnter;
    } else if (state.is_unlock == 0 && (state.seen & kLocked) != 0) {
      return false;  // The other one has it.
    } else {
      state.at = kExchange;
    }
    return true;
  }
  flush(state);
  if (state.memory[kWord] != state.seen) {
    state.at = kRead;
    return true;
  }
  const bool gets_bias = state.is_unlock == 0 && state.seen < kLossesMax;
  state.memory[kWord] = (state.seen ^ kLocked) | (gets_bias ? kBiased : 0);
  advance(state);
  return true;
}

bool step_owner(State& state, Rules rules) {
  switch (state.at) {
    case kRead:
    case kExchange:
      return step_outside(state);
    case kEnter:
      store(state, kOwner, 1);
      state.at = kLookAtThief;
      return true;
    case kLookAtThief:
      state.at = load(state, kThief) != 0 ? kRetreat : kLookAgain;
      return true;
    case kLookAgain: {
      const std::uint8_t fit = (state.seen & ~kLocked) | (state.is_unlock != 0 ? kLocked : 0);
      const bool is_fit = rules == Rules::without_second_look || load(state, kWord) == fit;
      state.at = is_fit ? kChange : kLeaveUnfit;
      return true;
    }
    case kChange:
      store(state, kWord, (state.seen & ~kLocked) | (state.is_unlock != 0 ? 0 : kLocked));
      state.at = kLeaveFit;
      return true;
    case kLeaveFit:
      store(state, kOwner, 0);
      advance(state);
      return true;
    case kLeaveUnfit:
      store(state, kOwner, 0);
      state.at = kRead;
      return true;
    case kRetreat:
      store(state, kOwner, 0);
      state.at = kAwaitThief;
      return true;
    case kAwaitThief:
      if (load(state, kThief) != 0) {
        return false;
      }
      store(state, kOwner, 1);
      flush(state);
      state.at = kLookAtThief;
      return true;
    default:  // kCritical
      state.is_unlock = 1;
      state.at = kRead;
      return true;
  }
}

/// The other one's stores are seen at once: each but the last of a section is followed by a locked
/// instruction or by one that lets W in.
bool step_other(State& state, Rules rules) {
  std::uint8_t& word = state.memory[kWord];
  switch (state.other) {
    case kOtherRead:
      if (state.other_rounds_left == 0 || (word & (kLocked | kBiased)) == kLocked) {
        return false;
      }
      state.others = word;
      state.other = (word & kBiased) == 0          ? kOtherExchange
                    : rules == Rules::without_home ? kTake
                                                   : kAnnounce;
      return true;
    case kOtherExchange:
      if (word == state.others) {
        word |= kLocked;
        state.other = kOtherCritical;
      } else {
        state.other = kOtherRead;
      }
      return true;
    case kAnnounce:
      state.memory[kThief] = 1;
      state.other = kBarrier;
      return true;
    case kBarrier:
      if (rules != Rules::without_barrier) {
        flush(state);  // membarrier: W's processor passes a full barrier.
      }
      state.other = kAwaitOwner;
      return true;
    case kAwaitOwner:
      if (state.memory[kOwner] != 0) {
        return false;
      }
      state.other = kTake;
      return true;
    case kTake:
      if ((word & kBiased) != 0) {
        word = static_cast<std::uint8_t>((word & ~kBiased) + kLoss);
      }
      state.other = kGiveBack;
      return true;
    case kGiveBack:
      state.memory[kThief] = 0;
      state.other = kOtherRead;
      return true;
    default:  // kOtherCritical: nobody changes a locked word that has no bias.
      word &= ~kLocked;
      --state.other_rounds_left;
      state.other = kOtherRead;
      return true;
  }
}

/// W is between having locked the mutex and giving it back.
bool is_inside(const State& state) {
  return state.at == kCritical || state.is_unlock != 0;
}

bool explore(Rules rules, std::size_t& states) {
  State initial{};
  initial.rounds_left = 5;
  initial.other_rounds_left = 4;
  return holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        if (process == 0) {
          return step_owner(state, rules);
        }
        if (process == 1) {
          return step_other(state, rules);
        }
        const bool can_flush = state.buffered != 0;
        if (can_flush) {
          flush_one(state);
        }
        return can_flush;
      },
      [](const State& state, bool is_final) {
        const bool is_done = state.rounds_left == 0 && state.other_rounds_left == 0 &&
                             (state.memory[kWord] & kLocked) == 0;
        return (is_inside(state) && state.other == kOtherCritical) || (is_final && !is_done);
      },
      states);
}

TEST(MutexModel, WorkerAndOthersAreNeverBothInsideAndNobodyIsStuck) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(Rules::real, states));
  EXPECT_GT(states, 1000U);
}

TEST(MutexModel, EachRuleIsNeeded) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rules::without_home, states));
  EXPECT_FALSE(explore(Rules::without_barrier, states));
  EXPECT_FALSE(explore(Rules::without_second_look, states));
}

}  // namespace
}  // namespace sterna::threads
