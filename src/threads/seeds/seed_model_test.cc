// The deque of seeds, all interleavings of an owner that pushes and takes and of two thieves, on a
// machine with store buffers (x86-TSO): each seed is taken exactly once.
// Negative controls: without the process barrier of thieves, and with an owner that does not look
// once more under the lock, the model finds a seed that is taken twice.
#include <string_view>

#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr int kThieves = 2;
constexpr int kSlots = 4;
constexpr int kSeeds = 6;
constexpr int kBuffer = 4;

constexpr int kBatch = 2;
constexpr std::uint8_t kNobody = 0;
constexpr std::uint8_t kOwner = 9;

struct Thief {
  std::uint8_t at;
  std::uint8_t top;
  std::uint8_t wanted;
  std::uint8_t got;
  std::uint8_t rounds;  // Left to do.
};

struct State {
  std::uint8_t lock;  // Who has it: kNobody, kOwner, or the number of a thief + 1.
  std::uint8_t top;
  std::uint8_t bottom;         // As others see it; the owner knows its own.
  std::uint8_t slots[kSlots];  // The same.
  std::uint8_t own_bottom;
  std::uint8_t own_slots[kSlots];
  // The owner's stores on their way, oldest first: 0 is bottom, else slot + 1.
  std::uint8_t buffered;
  std::uint8_t targets[kBuffer];
  std::uint8_t values[kBuffer];
  std::uint8_t script_at;
  std::uint8_t owner_at;
  std::uint8_t pushed;
  std::uint8_t taken[kSeeds];
  Thief thieves[kThieves];
};

struct Rules {
  bool has_barrier = true;
  bool looks_again = true;
};

bool flush_one(State& state) {
  if (state.buffered == 0) {
    return false;
  }
  if (state.targets[0] == 0) {
    state.bottom = state.values[0];
  } else {
    state.slots[state.targets[0] - 1] = state.values[0];
  }
  --state.buffered;
  for (int i = 0; i < state.buffered; ++i) {
    state.targets[i] = state.targets[i + 1];
    state.values[i] = state.values[i + 1];
  }
  state.targets[state.buffered] = state.values[state.buffered] = 0;
  return true;
}

void flush(State& state) {
  while (flush_one(state)) {
  }
}

void store(State& state, int target, int value) {
  if (state.buffered == kBuffer) {
    flush_one(state);
  }
  state.targets[state.buffered] = static_cast<std::uint8_t>(target);
  state.values[state.buffered] = static_cast<std::uint8_t>(value);
  ++state.buffered;
}

void set_bottom(State& state, int bottom) {
  state.own_bottom = static_cast<std::uint8_t>(bottom);
  store(state, 0, bottom);
}

/// 'p' pushes, 't' takes: lowers the bottom; looks at the top; if that is too high, raises the
/// bottom again and looks once more with the lock.
bool step_owner(State& state, std::string_view script, const Rules& rules) {
  if (state.script_at == script.size()) {
    return false;
  }
  if (script[state.script_at] == 'p') {
    const int slot = state.own_bottom % kSlots;
    state.own_slots[slot] = state.pushed;
    store(state, slot + 1, state.pushed);
    ++state.pushed;
    set_bottom(state, state.own_bottom + 1);
    ++state.script_at;
    return true;
  }
  const auto end_take = [&](bool is_mine) {
    if (is_mine) {
      ++state.taken[state.own_slots[state.own_bottom % kSlots]];
    }
    state.owner_at = 0;
    ++state.script_at;
  };
  switch (state.owner_at) {
    case 0:
      set_bottom(state, state.own_bottom - 1);
      state.owner_at = 1;
      return true;
    case 1:
      if (state.top <= state.own_bottom) {
        end_take(true);
        return true;
      }
      if (!rules.looks_again) {
        end_take(true);
        return true;
      }
      set_bottom(state, state.own_bottom + 1);
      state.owner_at = 2;
      return true;
    case 2:
      if (state.lock != kNobody) {
        return false;
      }
      state.lock = kOwner;
      flush(state);  // The exchange is a full barrier.
      state.owner_at = 3;
      return true;
    default: {
      const bool is_mine = state.top <= state.own_bottom - 1;
      if (is_mine) {
        set_bottom(state, state.own_bottom - 1);
        flush(state);  // Before the lock is given back, as stores are in order.
      }
      state.lock = kNobody;
      end_take(is_mine);
      return true;
    }
  }
}

/// One visit: lock; reach for half; barrier; see what is there; take it; unlock.
bool step_thief(State& state, int number, const Rules& rules) {
  Thief& thief = state.thieves[number];
  switch (thief.at) {
    case 0:
      if (thief.rounds == 0) {
        return false;
      }
      if (state.lock != kNobody) {
        --thief.rounds;  // It goes elsewhere.
        return true;
      }
      state.lock = static_cast<std::uint8_t>(number + 1);
      --thief.rounds;
      thief.top = state.top;
      thief.at = 1;
      return true;
    case 1: {
      const int half = (state.bottom - thief.top + 1) / 2;
      thief.wanted = static_cast<std::uint8_t>(half < 0 ? 0 : half > kBatch ? kBatch : half);
      state.top = static_cast<std::uint8_t>(thief.top + thief.wanted);
      thief.at = thief.wanted == 0 ? 5 : 2;
      return true;
    }
    case 2:
      if (rules.has_barrier) {
        flush(state);  // membarrier: the owner's processor passes a full barrier.
      }
      thief.at = 3;
      return true;
    case 3: {
      const int there = state.bottom - thief.top;
      thief.got = static_cast<std::uint8_t>(there < 0              ? 0
                                            : there > thief.wanted ? thief.wanted
                                                                   : there);
      thief.at = 4;
      return true;
    }
    case 4:
      for (int i = 0; i < thief.got; ++i) {
        ++state.taken[state.slots[(thief.top + i) % kSlots]];
      }
      state.top = static_cast<std::uint8_t>(thief.top + thief.got);
      thief.at = 5;
      return true;
    default:
      state.lock = kNobody;
      thief.at = thief.top = thief.wanted = thief.got = 0;
      return true;
  }
}

bool explore(std::string_view script, const Rules& rules, std::size_t& states) {
  State initial{};
  initial.top = initial.bottom = initial.own_bottom = 1;
  for (Thief& thief : initial.thieves) {
    thief.rounds = 2;
  }
  return holds_in_all_interleavings(
      initial, 2 + kThieves,
      [&](State& state, int process) {
        if (process == 0) {
          return step_owner(state, script, rules);
        }
        return process == 1 ? flush_one(state) : step_thief(state, process - 2, rules);
      },
      [&](const State& state, bool is_final) {
        bool is_bad = false;
        for (int seed = 0; seed < state.pushed; ++seed) {
          // Scripts end with as many takes as pushes: nothing is left.
          is_bad = is_bad || state.taken[seed] > 1 || (is_final && state.taken[seed] != 1);
        }
        return is_bad;
      },
      states);
}

// Growing and falling depths; slots that are used again.
constexpr std::string_view kScripts[] = {"ppttt", "ptptptt", "pppttpttt", "pptpptpptttttt"};

TEST(SeedModel, EachSeedIsTakenOnce) {
  for (const std::string_view script : kScripts) {
    std::size_t states = 0;
    EXPECT_TRUE(explore(script, {}, states)) << script;
    EXPECT_GT(states, 300U) << script;
  }
}

TEST(SeedModel, WithoutTheBarrierOfThievesTheModelFindsASeedTakenTwice) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("ppttt", {.has_barrier = false}, states));
}

TEST(SeedModel, WithoutTheSecondLookTheModelFindsASeedTakenTwice) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("ppttt", {.looks_again = false}, states));
}

}  // namespace
}  // namespace sterna::threads
