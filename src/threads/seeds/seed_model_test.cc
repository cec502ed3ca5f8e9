// The deque of seeds, all interleavings of an owner that pushes and takes and of two thieves, on a
// machine with store buffers (x86-TSO): each seed is taken exactly once, by who believes that he
// has it; a thief looks at none that somebody else has taken; an owner that sleeps leaves nothing
// behind. One thief takes what it gets. The other one looks first and leaves every other seed where
// it was, or in a later slot; or it is a planter that has moved, and looks for one seed.
// Negative controls. Without the process barrier of thieves, with an owner that does not look once
// more under the lock, with one that looks into the slot before it has taken it, and with a planter
// that does not look there once more, the model finds a seed that is taken twice; with an owner
// that sleeps by the count, one that is left; with a thief that looks before it reaches, one that
// is gone.
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
constexpr std::uint8_t kSought = 1;
constexpr std::uint8_t kNobody = 0;
constexpr std::uint8_t kOwner = 9;

struct Thief {
  std::uint8_t at;
  std::uint8_t top;
  std::uint8_t wanted;
  std::uint8_t got;
  std::uint8_t wishes;  // A bit for each that it has got and wants.
  std::uint8_t rounds;  // Left to do.
};

struct State {
  std::uint8_t lock;  // Who has it: kNobody, kOwner, or the number of a thief + 1.
  std::uint8_t top;
  std::uint8_t bottom;         // As others see it; the owner knows its own.
  std::uint8_t slots[kSlots];  // As others see them.
  std::uint8_t own_bottom;
  // The owner's stores on their way, oldest first: 0 is bottom, else slot + 1.
  std::uint8_t buffered;
  std::uint8_t targets[kBuffer];
  std::uint8_t values[kBuffer];
  std::uint8_t script_at;
  std::uint8_t owner_at;
  std::uint8_t owner_saw;  // In the slot that it is about to take.
  std::uint8_t has_met_gone;
  std::uint8_t pushed;
  std::uint8_t taken[kSeeds];
  Thief thieves[kThieves];
  std::uint8_t is_sought;  // The second thief is the planter of kSought, and wants that one.
};

struct Rules {
  bool has_barrier = true;
  bool looks_again = true;
  bool reads_after_taking = true;
  bool looks_at_its_own = true;
  bool sleeps_under_lock = true;
  bool looks_again_for_its_own = true;
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

/// What the owner reads there: its own latest store, if that is still on its way.
std::uint8_t own_slot(const State& state, int index) {
  const int slot = index % kSlots;
  for (int i = state.buffered - 1; i >= 0; --i) {
    if (state.targets[i] == slot + 1) {
      return state.values[i];
    }
  }
  return state.slots[slot];
}

void set_bottom(State& state, int bottom) {
  state.own_bottom = static_cast<std::uint8_t>(bottom);
  store(state, 0, bottom);
}

/// 's': the end, if there is nothing: it sleeps.
bool step_to_sleep(State& state, std::string_view script, const Rules& rules) {
  if (rules.sleeps_under_lock) {
    if (state.lock != kNobody) {
      return false;
    }
    flush(state);
  }
  const bool is_empty = state.top >= state.own_bottom;
  state.script_at = static_cast<std::uint8_t>(is_empty ? script.size() : state.script_at + 1U);
  return true;
}

/// 'p' pushes, 't' takes: lowers the bottom; looks at the top; if that is too high, raises the
/// bottom again and looks once more with the lock. 'q' raises it and begins once more, as 't'.
bool step_owner(State& state, std::string_view script, const Rules& rules) {
  if (state.script_at == script.size()) {
    return false;
  }
  if (script[state.script_at] == 'p') {
    store(state, state.own_bottom % kSlots + 1, state.pushed);
    ++state.pushed;
    set_bottom(state, state.own_bottom + 1);
    ++state.script_at;
    return true;
  }
  if (script[state.script_at] == 's') {
    return step_to_sleep(state, script, rules);
  }
  const auto end_take = [&](bool is_mine) {
    if (is_mine) {
      ++state.taken[rules.reads_after_taking ? own_slot(state, state.own_bottom) : state.owner_saw];
    }
    state.owner_at = state.owner_saw = 0;
    ++state.script_at;
  };
  const bool is_quick = script[state.script_at] == 'q';
  switch (state.owner_at) {
    case 0:
    case 4:
      if (!rules.reads_after_taking) {
        state.owner_saw = own_slot(state, state.own_bottom - 1);
      }
      set_bottom(state, state.own_bottom - 1);
      state.owner_at = is_quick && state.owner_at == 0 ? 5 : 1;
      return true;
    case 1:
    case 5:
      if (state.top <= state.own_bottom || (state.owner_at == 1 && !rules.looks_again)) {
        end_take(true);
        return true;
      }
      set_bottom(state, state.own_bottom + 1);
      state.owner_at = state.owner_at == 1 ? 2 : 4;
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

/// The first thief wants all, the second one every other seed.
void look(State& state, int number) {
  Thief& thief = state.thieves[number];
  for (int i = 0; i < thief.got; ++i) {
    const std::uint8_t seed = state.slots[(thief.top + i) % kSlots];
    state.has_met_gone |= state.taken[seed] != 0 ? 1 : 0;
    if (number == 0 || seed % 2 != 0) {
      thief.wishes = static_cast<std::uint8_t>(thief.wishes | 1U << i);
    }
  }
}

/// A planter that has moved: up to where it sees its seed.
void seek(State& state, Thief& thief) {
  for (int i = thief.top; i < state.bottom && thief.wanted == 0; ++i) {
    if (state.slots[i % kSlots] == kSought) {
      thief.wanted = static_cast<std::uint8_t>(i - thief.top + 1);
    }
  }
  state.top = static_cast<std::uint8_t>(thief.top + thief.wanted);
  thief.at = thief.wanted == 0 ? 8 : 2;
}

/// What it has reached, if that is still its seed.
void look_for_sought(const State& state, Thief& thief, const Rules& rules) {
  const bool is_it = state.slots[(thief.top + thief.got - 1) % kSlots] == kSought;
  if (thief.got == thief.wanted && (is_it || !rules.looks_again_for_its_own)) {
    thief.wishes = static_cast<std::uint8_t>(1U << (thief.got - 1));
  }
}

/// Takes what it wants; the others go to the upper slots, in order.
void sort_out(State& state, Thief& thief, bool is_planter) {
  int left = 0;
  std::uint8_t kept[kSlots] = {};
  for (int i = 0; i < thief.got; ++i) {
    const std::uint8_t seed = state.slots[(thief.top + i) % kSlots];
    if ((thief.wishes >> i & 1) != 0) {
      ++state.taken[is_planter ? kSought : seed];
    } else {
      kept[left++] = seed;
    }
  }
  const int first = thief.top + thief.got - left;
  for (int i = 0; i < left; ++i) {
    state.slots[(first + i) % kSlots] = kept[i];
  }
  thief.got = static_cast<std::uint8_t>(thief.got - left);
}

/// One visit: lock; reach for half; barrier; see what is there; look at it; sort it; let go what is
/// not wanted; unlock.
bool step_thief(State& state, int number, const Rules& rules) {
  Thief& thief = state.thieves[number];
  switch (thief.at) {
    case 0:
      if (thief.rounds == 0) {
        return false;
      }
      --thief.rounds;
      if (state.lock != kNobody) {
        return true;  // It goes elsewhere.
      }
      state.lock = static_cast<std::uint8_t>(number + 1);
      thief.top = state.top;
      thief.at = 1;
      return true;
    case 1: {
      if (number == 1 && state.is_sought != 0) {
        seek(state, thief);
        return true;
      }
      const int half = (state.bottom - thief.top + 1) / 2;
      thief.wanted = static_cast<std::uint8_t>(half < 0 ? 0 : half > kBatch ? kBatch : half);
      if (!rules.looks_at_its_own) {
        thief.got = thief.wanted;
        thief.at = 7;
        return true;
      }
      state.top = static_cast<std::uint8_t>(thief.top + thief.wanted);
      thief.at = thief.wanted == 0 ? 8 : 2;
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
      state.top = static_cast<std::uint8_t>(thief.top + thief.got);
      thief.at = thief.got == 0 ? 8 : 4;
      return true;
    }
    case 4:
      if (number == 1 && state.is_sought != 0) {
        look_for_sought(state, thief, rules);
      } else {
        look(state, number);
      }
      thief.at = 5;
      return true;
    case 5:
      sort_out(state, thief, number == 1 && state.is_sought != 0);
      thief.at = 6;
      return true;
    case 6:
      state.top = static_cast<std::uint8_t>(thief.top + thief.got);
      thief.at = 8;
      return true;
    case 7:
      look(state, number);
      thief.at = 8;
      return true;
    default:
      state.lock = kNobody;
      thief.at = thief.top = thief.wanted = thief.got = thief.wishes = 0;
      return true;
  }
}

bool explore(std::string_view script, const Rules& rules, std::size_t& states,
             bool is_sought = false) {
  State initial{};
  initial.is_sought = is_sought ? 1 : 0;
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
        bool is_bad = state.has_met_gone != 0;
        for (int seed = 0; seed < state.pushed; ++seed) {
          // Scripts end with as many takes as pushes: nothing is left.
          is_bad = is_bad || state.taken[seed] > 1 || (is_final && state.taken[seed] != 1);
        }
        return is_bad;
      },
      states);
}

// Growing and falling depths; slots that are used again.
constexpr std::string_view kScripts[] = {"ppttt",  "ptptptt",     "pppttpttt", "pptpptpptttttt",
                                         "pst",    "ppsttt",      "ppqqt",     "pqpqpqt",
                                         "pppqqpqqt", "pppstptsttt", "ppsqqt"};

TEST(SeedModel, EachSeedIsTakenOnce) {
  for (const std::string_view script : kScripts) {
    std::size_t states = 0;
    EXPECT_TRUE(explore(script, {}, states)) << script;
    EXPECT_GT(states, 300U) << script;
  }
}

TEST(SeedModel, ThatIsSoughtByAPlanterThatHasMovedIsTakenOnce) {
  for (const std::string_view script : kScripts) {
    std::size_t states = 0;
    EXPECT_TRUE(explore(script, {}, states, true)) << script;
  }
}

TEST(SeedModel, WithAPlanterThatDoesNotLookAgainTheModelFindsItWithAnothersSeed) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("pptptt", {.looks_again_for_its_own = false}, states, true));
}

TEST(SeedModel, WithoutTheBarrierOfThievesTheModelFindsASeedTakenTwice) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("ppttt", {.has_barrier = false}, states));
  EXPECT_FALSE(explore("ppqqq", {.has_barrier = false}, states));
}

TEST(SeedModel, WithoutTheSecondLookTheModelFindsASeedTakenTwice) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("ppttt", {.looks_again = false}, states));
}

TEST(SeedModel, WithAnOwnerThatSleepsByTheCountTheModelFindsASeedThatNobodyTakes) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("pst", {.sleeps_under_lock = false}, states));
}

TEST(SeedModel, WithAnOwnerThatReadsTheSlotFirstTheModelFindsASeedTakenTwice) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("pppttpttt", {.reads_after_taking = false}, states));
}

TEST(SeedModel, WithAThiefThatLooksBeforeItReachesTheModelFindsOneThatIsGone) {
  std::size_t states = 0;
  EXPECT_FALSE(explore("ppttt", {.looks_at_its_own = false}, states));
}

}  // namespace
}  // namespace sterna::threads
