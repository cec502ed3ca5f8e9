// The biased lock, all interleavings on a machine with store buffers (x86-TSO): never both inside,
// and nobody is stuck. Negative control: without the process barrier the model finds both inside.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

struct State {
  std::uint8_t owner_word;  // As others see it.
  std::uint8_t thief_word;
  std::uint8_t buffered;  // The owner's store buffer: 0 empty, else value + 1.
  std::uint8_t owner_at;
  std::uint8_t thief_at;
  std::uint8_t owner_rounds;  // Left to do.
  std::uint8_t thief_rounds;
};

enum OwnerAt : std::uint8_t { kStore, kRead, kInside, kRetreat, kAwait };
enum ThiefAt : std::uint8_t { kAnnounce, kBarrier, kAwaitOwner, kInsideToo };

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
      state.owner_at = state.thief_word == 0 ? kInside : kRetreat;
      return true;
    case kInside:
      store_owner(state, 0);
      --state.owner_rounds;
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

bool step_thief(State& state, bool has_barrier) {
  switch (state.thief_at) {
    case kAnnounce:
      if (state.thief_rounds == 0) {
        return false;
      }
      state.thief_word = 1;
      state.thief_at = kBarrier;
      return true;
    case kBarrier:
      if (has_barrier) {
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
      state.thief_at = kAnnounce;
      return true;
  }
}

bool explore(bool has_barrier, std::size_t& states) {
  const State initial{.owner_word = 0,
                      .thief_word = 0,
                      .buffered = 0,
                      .owner_at = kStore,
                      .thief_at = kAnnounce,
                      .owner_rounds = 3,
                      .thief_rounds = 3};
  return holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        if (process == 0) {
          return step_owner(state);
        }
        if (process == 1) {
          return step_thief(state, has_barrier);
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
  EXPECT_TRUE(explore(true, states));
  EXPECT_GT(states, 100U);
}

TEST(BiasedLockModel, WithoutTheBarrierTheModelFindsBothInside) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(false, states));
}

}  // namespace
}  // namespace sterna::threads
