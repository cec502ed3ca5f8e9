// Holding, all interleavings of a thread that waits in a run queue, two workers that may take it, a
// holder and a releaser: after hold() has returned it does not run before the release, it is never
// in two places, and after the release it is not lost.
// Negative control: a holder that does not pass through the locks of the workers is found to return
// while the thread is about to run.
//
// And two threads that run and hold each other, each among those that it holds, with a releaser
// that takes one order back at any moment: both come out of the wait. Negative controls: without
// `stopping` they wait for each other; without a look at the word one waits for ever for the other,
// which was let go.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

enum Word : std::uint8_t { kNone, kWanted, kHeld };
constexpr std::uint8_t kNobody = 9;

struct State {
  std::uint8_t word;
  std::uint8_t queued;      // In the (one) queue.
  std::uint8_t lock[2];     // Of each worker: 0 free, 1 owner, 2 holder.
  std::uint8_t current[2];  // The worker runs it.
  std::uint8_t worker_at[2];
  std::uint8_t taken_by;  // Popped, not yet running: who has it.
  std::uint8_t holder_at;
  std::uint8_t has_returned;  // From hold(), and the release has not begun.
  std::uint8_t releaser_at;
  std::uint8_t released;
  std::uint8_t runs_left;  // Turns that it may still take: bounds the model.
};

/// 0: lock; 1: pop, looking at the word; 2: settle the word; 3: run it, unlock; 4: it ends its
/// turn.
bool step_worker(State& state, std::uint8_t me) {
  std::uint8_t& at = state.worker_at[me];
  switch (at) {
    case 0:
      if (state.lock[me] != 0 || state.queued == 0 || state.taken_by != kNobody) {
        return false;
      }
      state.lock[me] = 1;
      at = 1;
      return true;
    case 1:
      if (state.queued == 0) {
        state.lock[me] = 0;
        at = 0;
        return true;
      }
      state.queued = 0;
      state.taken_by = me;
      at = state.word == kNone ? 3 : 2;
      return true;
    case 2:
      if (state.word == kWanted) {
        state.word = kHeld;
        state.taken_by = kNobody;
        state.lock[me] = 0;
        at = 0;
      } else {
        at = 3;
      }
      return true;
    case 3:
      state.current[me] = 1;
      state.taken_by = kNobody;
      state.lock[me] = 0;
      at = 4;
      return true;
    default:
      if (state.lock[me] != 0) {
        return false;
      }
      if (state.runs_left == 0) {
        return false;
      }
      --state.runs_left;
      state.current[me] = 0;  // A yield: back into the queue, in one section.
      state.queued = 1;
      at = 0;
      return true;
  }
}

/// 0: order; 1-2: through the locks; 3: wait until it does not run; 4: returned.
bool step_holder(State& state, bool passes_locks) {
  switch (state.holder_at) {
    case 0:
      state.word = kWanted;
      state.holder_at = passes_locks ? 1 : 3;
      return true;
    case 1:
    case 2: {
      const int worker = state.holder_at - 1;
      if (state.lock[worker] != 0) {
        return false;
      }
      ++state.holder_at;
      return true;
    }
    case 3:
      if (state.current[0] != 0 || state.current[1] != 0) {
        return false;
      }
      state.has_returned = 1;
      state.holder_at = 4;
      return true;
    default:
      return false;
  }
}

bool step_releaser(State& state) {
  if (state.releaser_at != 0 || state.has_returned == 0) {
    return false;
  }
  state.has_returned = 0;
  state.releaser_at = 1;
  state.released = 1;
  if (state.word == kHeld) {
    state.queued += 1;
  }
  state.word = kNone;
  return true;
}

bool explore(bool passes_locks, std::size_t& states) {
  State initial{};
  initial.queued = 1;
  initial.taken_by = kNobody;
  initial.runs_left = 3;
  return holds_in_all_interleavings(
      initial, 4,
      [&](State& state, int process) {
        if (process < 2) {
          return step_worker(state, static_cast<std::uint8_t>(process));
        }
        return process == 2 ? step_holder(state, passes_locks) : step_releaser(state);
      },
      [](const State& state, bool is_final) {
        const int places = state.queued + state.current[0] + state.current[1] +
                           (state.taken_by != kNobody ? 1 : 0) + (state.word == kHeld ? 1 : 0);
        const bool runs = state.current[0] != 0 || state.current[1] != 0;
        const bool is_lost = is_final && state.released != 0 && !runs && state.queued == 0;
        return places != 1 || (state.has_returned != 0 && runs) || is_lost;
      },
      states);
}

TEST(HoldModel, HeldThreadDoesNotRunAndIsNotLost) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(true, states));
  EXPECT_GT(states, 60U);
}

TEST(HoldModel, HolderThatPassesNoLockIsFoundToReturnTooEarly) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(false, states));
}

enum Order : std::uint8_t { kOrdered = 1, kStopping = 2, kStopped = 4 };

struct Pair {
  std::uint8_t words[2];
  std::uint8_t runs[2];
  std::uint8_t at[2];  // 0: orders the other one; 1: itself; 2: waits; 3: stops; 4: has come out.
  std::uint8_t releaser_at;
};

enum class PairRules : std::uint8_t { real, without_stopping, without_look };

bool step_mutual(Pair& pair, int me, PairRules rules) {
  const int other = 1 - me;
  std::uint8_t& at = pair.at[me];
  if (pair.runs[me] == 0) {
    return false;
  }
  switch (at) {
    case 0:
      pair.words[other] |= pair.words[other] == kStopped ? 0 : kOrdered;
      ++at;
      return true;
    case 1:
      pair.words[me] |= rules == PairRules::without_stopping ? kOrdered : kOrdered | kStopping;
      ++at;
      return true;
    case 2: {
      const std::uint8_t word = pair.words[other];
      const bool is_ordered = rules == PairRules::without_look || word != 0;
      if (is_ordered && (word & kStopping) == 0 && pair.runs[other] != 0) {
        return false;
      }
      ++at;
      return true;
    }
    case 3:
      if ((pair.words[me] & kOrdered) != 0) {
        pair.words[me] = kStopped;
        pair.runs[me] = 0;
      } else {
        pair.words[me] = 0;
      }
      ++at;
      return true;
    default:
      return false;
  }
}

/// unhold() of the first one, at any moment.
bool step_taking_back(Pair& pair) {
  if (pair.releaser_at != 0) {
    return false;
  }
  pair.releaser_at = 1;
  pair.runs[0] = 1;
  pair.words[0] &= kStopping;
  return true;
}

bool explore_pair(PairRules rules, std::size_t& states) {
  const Pair initial{.words = {}, .runs = {1, 1}, .at = {}, .releaser_at = 0};
  return holds_in_all_interleavings(
      initial, 3,
      [&](Pair& pair, int process) {
        return process == 2 ? step_taking_back(pair) : step_mutual(pair, process, rules);
      },
      [](const Pair& pair, bool is_final) {
        return is_final && (pair.at[0] != 4 || pair.at[1] != 4);
      },
      states);
}

TEST(HoldModel, TwoThatHoldEachOtherComeOutOfTheWait) {
  std::size_t states = 0;
  EXPECT_TRUE(explore_pair(PairRules::real, states));
  EXPECT_GT(states, 40U);
  EXPECT_FALSE(explore_pair(PairRules::without_stopping, states));
  EXPECT_FALSE(explore_pair(PairRules::without_look, states));
}

}  // namespace
}  // namespace sterna::threads
