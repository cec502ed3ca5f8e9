// The biased lock, all interleavings on a machine with store buffers (x86-TSO): never both inside,
// and nobody is stuck; the thief may give up at any moment of its wait, and does not begin while
// the owner waits for one. In every other round the owner tries lock_at_once() first. Negative
// controls: without the process barrier the model finds both
// inside; a thief that gives up without taking back what it announced leaves the owner stuck.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

struct State {
  std::uint8_t owner_word;  // As others see it.
  std::uint8_t thief_word;
  std::uint8_t owner_waits;
  std::uint8_t buffered;  // The owner's store buffer: 0 empty, else value + 1.
  std::uint8_t owner_at;
  std::uint8_t thief_at;
  std::uint8_t owner_rounds;  // Left to do.
  std::uint8_t thief_rounds;
  std::uint8_t has_tried;  // lock_at_once(), in this round of the owner.
};

enum OwnerAt : std::uint8_t { kStore, kRead, kInside, kRetreatAtOnce, kRetreat, kAwait };
enum ThiefAt : std::uint8_t { kLook, kAnnounce, kBarrier, kAwaitOwner, kInsideToo };

enum class Rules : std::uint8_t { real, without_barrier, silent_give_up };

/// A store of the owner: into the buffer, which holds one; a full one is written out first.
void store_owner(State& state, std::uint8_t value) {
  if (state.buffered != 0) {
    state.owner_word = state.buffered - 1;
  }
  state.buffered = value + 1;
}

void flush(State& state) {
  if (state.buffered != 0) {
    state.owner_word = state.buffered - 1;
    state.buffered = 0;
  }
}

bool step_owner(State& state) {
  switch (state.owner_at) {
    case kStore:
      if (state.owner_rounds == 0) {
        return false;
      }
      store_owner(state, 1);
      state.owner_at = kRead;
      return true;
    case kRead:
      if (state.thief_word == 0) {
        state.owner_at = kInside;
      } else {
        const bool is_at_once = state.owner_rounds % 2 != 0 && state.has_tried == 0;
        state.owner_at = is_at_once ? kRetreatAtOnce : kRetreat;
      }
      state.has_tried = 1;
      state.owner_waits = state.owner_at == kRetreat ? 1 : 0;
      return true;
    case kRetreatAtOnce:
      store_owner(state, 0);
      state.owner_at = kStore;
      return true;
    case kInside:
      store_owner(state, 0);
      --state.owner_rounds;
      state.has_tried = 0;
      state.owner_at = kStore;
      return true;
    case kRetreat:
      store_owner(state, 0);
      state.owner_at = kAwait;
      return true;
    default:  // kAwait: until the thief has gone; then the exchange, a full barrier.
      if (state.thief_word != 0) {
        return false;
      }
      store_owner(state, 1);
      flush(state);
      state.owner_at = kRead;
      return true;
  }
}

bool step_thief(State& state, Rules rules) {
  switch (state.thief_at) {
    case kLook:
      if (state.thief_rounds == 0 || state.owner_waits != 0) {
        return false;
      }
      state.thief_at = kAnnounce;
      return true;
    case kAnnounce:
      state.thief_word = 1;
      state.thief_at = kBarrier;
      return true;
    case kBarrier:
      if (rules != Rules::without_barrier) {
        flush(state);  // membarrier: the owner's processor passes a full barrier.
      }
      state.thief_at = kAwaitOwner;
      return true;
    case kAwaitOwner:
      if (state.owner_word != 0) {
        return false;
      }
      state.thief_at = kInsideToo;
      return true;
    default:
      state.thief_word = 0;
      --state.thief_rounds;
      state.thief_at = kLook;
      return true;
  }
}

/// The owner stays inside for too long.
bool step_give_up(State& state, Rules rules) {
  if (state.thief_at != kAwaitOwner || state.owner_word == 0) {
    return false;
  }
  state.thief_word = rules == Rules::silent_give_up ? 1 : 0;
  --state.thief_rounds;
  state.thief_at = kLook;
  return true;
}

bool explore(Rules rules, std::size_t& states) {
  const State initial{.owner_word = 0,
                      .thief_word = 0,
                      .owner_waits = 0,
                      .buffered = 0,
                      .owner_at = kStore,
                      .thief_at = kLook,
                      .owner_rounds = 3,
                      .thief_rounds = 3,
                      .has_tried = 0};
  return holds_in_all_interleavings(
      initial, 4,
      [&](State& state, int process) {
        if (process == 0) {
          return step_owner(state);
        }
        if (process == 1) {
          return step_thief(state, rules);
        }
        if (process == 2) {
          return step_give_up(state, rules);
        }
        const bool can_flush = state.buffered != 0;
        flush(state);
        return can_flush;
      },
      [](const State& state, bool is_final) {
        const bool is_broken = state.owner_at == kInside && state.thief_at == kInsideToo;
        return is_broken || (is_final && (state.owner_rounds != 0 || state.thief_rounds != 0));
      },
      states);
}

TEST(BiasedLockModel, OwnerAndThiefAreNeverBothInsideAndNobodyIsStuck) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(Rules::real, states));
  EXPECT_GT(states, 100U);
}

TEST(BiasedLockModel, WithoutTheBarrierTheModelFindsBothInside) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rules::without_barrier, states));
}

TEST(BiasedLockModel, WhoGivesUpTakesBackWhatItAnnounced) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(Rules::silent_give_up, states));
}

}  // namespace
}  // namespace sterna::threads
