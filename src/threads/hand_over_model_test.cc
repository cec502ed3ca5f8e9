// HandOver, all interleavings of one thread that hands work over and two workers that search, look,
// and stop: nothing is left lying when all have gone. Negative controls: a worker that leaves
// without a last look, a giver that trusts what it saw before, and one who takes the work and only
// then says so, each leave some.
#include <gtest/gtest.h>

#include "threads/hand_over.h"
#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

enum class Rules : std::uint8_t { real, leaves_without_look, trusts_hint, clears_late };

struct State {
  std::uint8_t lying;  // Work that nobody has done.
  std::uint8_t is_handed;
  std::uint8_t searchers;
  std::uint8_t giver_at;
  std::uint8_t to_give;
  std::uint8_t worker_at[2];
  std::uint8_t turns[2];
};

enum GiverAt : std::uint8_t { kHint, kPush, kSay, kAsk };
enum WorkerAt : std::uint8_t {
  kBegin,
  kLook,
  kTake,
  kWork,
  kTurn,
  kLeave,
  kLastLook,
  kLastTake,
  kLastWork,
  kGone
};

bool step_giver(State& state, Rules rules) {
  if (state.to_give == 0) {
    return false;
  }
  switch (state.giver_at) {
    case kHint:
      if (state.searchers == 0) {
        --state.to_give;  // It does the work at once.
      } else {
        state.giver_at = kPush;
      }
      return true;
    case kPush:
      ++state.lying;
      state.giver_at = kSay;
      return true;
    case kSay:
      state.is_handed = 1;
      state.giver_at = kAsk;
      return true;
    default:
      if (rules != Rules::trusts_hint && state.searchers == 0) {
        state.lying = 0;
      }
      --state.to_give;
      state.giver_at = kHint;
      return true;
  }
}

/// The three steps of take(), from `at` on; `after` is what follows.
void step_take(State& state, std::uint8_t& at, std::uint8_t after, Rules rules) {
  switch (at) {
    case kLook:
    case kLastLook:
      at = state.is_handed != 0 ? static_cast<std::uint8_t>(at + 1) : after;
      return;
    case kTake:
    case kLastTake:
      if (rules == Rules::clears_late) {
        state.lying = 0;
        at = static_cast<std::uint8_t>(at + 1);
      } else {
        at = state.is_handed != 0 ? static_cast<std::uint8_t>(at + 1) : after;
        state.is_handed = 0;
      }
      return;
    default:
      if (rules == Rules::clears_late) {
        state.is_handed = 0;
      } else {
        state.lying = 0;
      }
      at = after;
  }
}

bool step_worker(State& state, int worker, Rules rules) {
  std::uint8_t& at = state.worker_at[worker];
  switch (at) {
    case kBegin:
      ++state.searchers;
      at = kLook;
      return true;
    case kTurn:
      at = state.turns[worker]-- != 0 ? kLook : kLeave;
      return true;
    case kLeave: {
      const bool is_last = --state.searchers == 0;
      at = is_last && rules != Rules::leaves_without_look ? kLastLook : kGone;
      return true;
    }
    case kGone:
      return false;
    default:
      step_take(state, at, at < kTurn ? kTurn : kGone, rules);
      return true;
  }
}

bool nothing_is_left(Rules rules) {
  const State initial{.lying = 0,
                      .is_handed = 0,
                      .searchers = 0,
                      .giver_at = kHint,
                      .to_give = 3,
                      .worker_at = {kBegin, kBegin},
                      .turns = {2, 2}};
  std::size_t states = 0;
  const bool holds = holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        return process == 0 ? step_giver(state, rules) : step_worker(state, process - 1, rules);
      },
      [](const State& state, bool is_final) { return is_final && state.lying != 0; }, states);
  EXPECT_GT(states, 50U);
  return holds;
}

TEST(HandOverModel, NothingIsLeftLying) {
  EXPECT_TRUE(nothing_is_left(Rules::real));
}

TEST(HandOverModel, WhoLeavesLooksOnceMore) {
  EXPECT_FALSE(nothing_is_left(Rules::leaves_without_look));
}

TEST(HandOverModel, WhoHandsOverAsksAgain) {
  EXPECT_FALSE(nothing_is_left(Rules::trusts_hint));
}

TEST(HandOverModel, TheMarkIsTakenBeforeTheWork) {
  EXPECT_FALSE(nothing_is_left(Rules::clears_late));
}

TEST(HandOver, IsTakenAtATurnOrByWhoLeavesOrNotAtAll) {
  HandOver hand_over;
  int done = 0;
  EXPECT_FALSE(hand_over.has_taker());
  hand_over.serve([](void* object) noexcept { ++*static_cast<int*>(object); }, &done);
  EXPECT_FALSE(hand_over.hand()) << "nobody is there: the giver does it";
  hand_over.begin_search();
  EXPECT_TRUE(hand_over.has_taker());
  EXPECT_TRUE(hand_over.hand());
  hand_over.take();
  EXPECT_EQ(done, 1);
  hand_over.take();
  EXPECT_EQ(done, 1) << "there was nothing more";
  EXPECT_TRUE(hand_over.hand());
  hand_over.end_search();
  EXPECT_EQ(done, 2) << "who leaves takes it";
  hand_over.stop();
  hand_over.begin_search();
  EXPECT_TRUE(hand_over.hand());
  hand_over.end_search();
  EXPECT_EQ(done, 2) << "nobody is inside after the stop";
}

}  // namespace
}  // namespace sterna::threads
