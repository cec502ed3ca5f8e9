// The one caller of a process and the second one, all interleavings on a machine with store buffers
// (x86-TSO): the owner is never in a call without locks once another thread calls, and nobody is
// stuck, although one call of the owner ends only after that of the other. Negative controls:
// without the second look, or the process barrier, the model finds both; an owner that does not
// give way while it waits leaves both stuck.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::progress {
namespace {

struct State {
  std::uint8_t has_owner;  // owner_: it, or nobody.
  std::uint8_t inside;     // The two words of the lock, as others see them.
  std::uint8_t thief;
  std::uint8_t buffered;  // The owner's store of `inside` on its way: 0 none, else value + 1.
  std::uint8_t owner_at;
  std::uint8_t other_at;
  std::uint8_t calls;  // That the owner has yet to make; the last but one waits for the other's.
};

enum OwnerAt : std::uint8_t { kLook, kStore, kReadThief, kAwaitThief, kLookAgain, kAlone, kShared };
enum OtherAt : std::uint8_t { kEnter, kAnnounce, kBarrier, kAwaitOwner, kShare, kGiveBack, kDone };
constexpr std::uint8_t kCalls = 4;
constexpr std::uint8_t kWaitingCall = 2;

enum class Rules : std::uint8_t { real, one_look, without_barrier, keeps_way };

void flush(State& state) {
  if (state.buffered != 0) {
    state.inside = state.buffered - 1;
    state.buffered = 0;
  }
}

void store_inside(State& state, std::uint8_t value) {
  flush(state);  // The buffer holds one.
  state.buffered = value + 1;
}

/// What the call of the owner waits for, if it does, has happened.
bool may_end(const State& state) {
  return state.calls != kWaitingCall || state.other_at == kDone;
}

bool step_owner(State& state, Rules rules) {
  switch (state.owner_at) {
    case kLook:
      if (state.calls == 0) {
        return false;
      }
      state.owner_at = state.has_owner != 0 ? kStore : kShared;
      return true;
    case kStore:
      store_inside(state, 1);
      state.owner_at = kReadThief;
      return true;
    case kReadThief:
      if (state.thief != 0) {
        store_inside(state, 0);
        state.owner_at = kAwaitThief;
      } else {
        state.owner_at = rules == Rules::one_look ? kAlone : kLookAgain;
      }
      return true;
    case kAwaitThief:
      if (state.thief != 0) {
        return false;
      }
      store_inside(state, 1);
      flush(state);  // An exchange.
      state.owner_at = kReadThief;
      return true;
    case kLookAgain:
      if (state.has_owner == 0) {
        store_inside(state, 0);
      }
      state.owner_at = state.has_owner != 0 ? kAlone : kShared;
      return true;
    case kAlone:
      if (may_end(state)) {
        store_inside(state, 0);
        --state.calls;
        state.owner_at = kLook;
        return true;
      }
      if (state.thief == 0 || rules == Rules::keeps_way) {
        return false;  // Polls on.
      }
      store_inside(state, 0);  // Gives way, and comes back as it has come in.
      state.owner_at = kLook;
      return true;
    default:
      if (!may_end(state)) {
        return false;
      }
      --state.calls;
      state.owner_at = kLook;
      return true;
  }
}

bool step_other(State& state, Rules rules) {
  switch (state.other_at) {
    case kEnter:
      state.other_at = kAnnounce;
      return true;
    case kAnnounce:
      state.thief = 1;
      state.other_at = kBarrier;
      return true;
    case kBarrier:
      if (rules != Rules::without_barrier) {
        flush(state);  // membarrier: the owner's processor passes a full barrier.
      }
      state.other_at = kAwaitOwner;
      return true;
    case kAwaitOwner:
      if (state.inside != 0) {
        return false;
      }
      state.other_at = kShare;
      return true;
    case kShare:
      state.has_owner = 0;
      state.other_at = kGiveBack;
      return true;
    case kGiveBack:
      state.thief = 0;
      state.other_at = kDone;  // In its call from here on, and after it.
      return true;
    default:
      return false;
  }
}

bool explore(Rules rules) {
  const State initial{.has_owner = 1,
                      .inside = 0,
                      .thief = 0,
                      .buffered = 0,
                      .owner_at = kLook,
                      .other_at = kEnter,
                      .calls = kCalls};
  std::size_t states = 0;
  const bool holds = threads::holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        if (process == 0) {
          return step_owner(state, rules);
        }
        if (process == 1) {
          return step_other(state, rules);
        }
        const bool can_flush = state.buffered != 0;
        flush(state);
        return can_flush;
      },
      [](const State& state, bool is_final) {
        const bool is_broken = state.owner_at == kAlone && state.other_at >= kShare;
        return is_broken || (is_final && (state.calls != 0 || state.other_at != kDone));
      },
      states);
  EXPECT_GT(states, 30U);
  return holds;
}

TEST(OneCallerModel, NobodyCallsBesideTheOneCallerAndNobodyIsStuck) {
  EXPECT_TRUE(explore(Rules::real));
}

TEST(OneCallerModel, WithOneLookBothCall) {
  EXPECT_FALSE(explore(Rules::one_look));
}

TEST(OneCallerModel, WithoutTheBarrierBothCall) {
  EXPECT_FALSE(explore(Rules::without_barrier));
}

TEST(OneCallerModel, AnOwnerThatWaitsMustGiveWay) {
  EXPECT_FALSE(explore(Rules::keeps_way));
}

}  // namespace
}  // namespace sterna::progress
