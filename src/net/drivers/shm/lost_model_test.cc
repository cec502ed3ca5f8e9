// A peer is lost while a sender fills a chunk for it, all interleavings on a machine with store
// buffers (x86-TSO): chunks are taken back when nobody fills one, and always. Negative controls: a
// loss told without its fence, a sender that looks before it says what it does, and one that does
// not look again when it has done.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::net::shm {
namespace {

enum class Rules : std::uint8_t { real, without_fence, looks_first, looks_once };

enum SenderAt : std::uint8_t { kSay, kLook, kFill, kUnsay, kLookAgain };
enum PollerAt : std::uint8_t { kTell, kFence, kAsk, kDone };

struct State {
  std::uint8_t is_filling;  // As others see it.
  std::uint8_t buffered;    // The sender's store of it on its way: 0 none, else value + 1.
  std::uint8_t is_lost;
  std::uint8_t sender_at;
  std::uint8_t poller_at;
  std::uint8_t packets;        // That the sender has yet to send.
  std::uint8_t is_held;        // The pool's accounts name the peer as holder of a chunk.
  std::uint8_t is_taken_away;  // From a sender that was filling it.
};

void flush(State& state) {
  if (state.buffered != 0) {
    state.is_filling = state.buffered - 1;
    state.buffered = 0;
  }
}

void store_is_filling(State& state, std::uint8_t value) {
  flush(state);  // The buffer holds one.
  state.buffered = value + 1;
}

void reclaim(State& state) {
  state.is_taken_away |= state.sender_at == kFill && state.is_held != 0 ? 1 : 0;
  state.is_held = 0;
}

/// The sender has seen what is_lost says: it gets a chunk, or leaves.
void decide(State& state, std::uint8_t then) {
  if (state.is_lost != 0) {
    state.sender_at = kUnsay;
  } else {
    state.sender_at = then;
  }
}

bool step_sender(State& state, Rules rules) {
  switch (state.sender_at) {
    case kSay:
      if (state.packets == 0) {
        return false;
      }
      --state.packets;
      if (rules == Rules::looks_first) {
        decide(state, kLook);
        return true;
      }
      store_is_filling(state, 1);
      state.sender_at = kLook;
      return true;
    case kLook:
      if (rules == Rules::looks_first) {
        store_is_filling(state, 1);
        state.sender_at = kFill;
      } else {
        decide(state, kFill);
      }
      state.is_held |= state.sender_at == kFill ? 1 : 0;
      return true;
    case kFill:
      state.sender_at = kUnsay;
      return true;
    case kUnsay:
      store_is_filling(state, 0);
      state.sender_at = kLookAgain;
      return true;
    default:
      state.sender_at = kSay;
      if (state.is_lost != 0 && rules != Rules::looks_once) {
        reclaim(state);
      }
      return true;
  }
}

bool step_poller(State& state, Rules rules) {
  switch (state.poller_at) {
    case kTell:
      state.is_lost = 1;
      state.poller_at = kFence;
      return true;
    case kFence:
      if (rules != Rules::without_fence) {
        flush(state);  // membarrier: the sender's processor passes a full barrier.
      }
      state.poller_at = kAsk;
      return true;
    case kAsk:
      if (state.is_filling == 0) {
        reclaim(state);
      }
      state.poller_at = kDone;
      return true;
    default:
      return false;
  }
}

bool explore(Rules rules) {
  const State initial{.is_filling = 0,
                      .buffered = 0,
                      .is_lost = 0,
                      .sender_at = kSay,
                      .poller_at = kTell,
                      .packets = 3,
                      .is_held = 0,
                      .is_taken_away = 0};
  std::size_t states = 0;
  const bool holds = threads::holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        if (process == 0) {
          return step_sender(state, rules);
        }
        if (process == 1) {
          return step_poller(state, rules);
        }
        const bool can_flush = state.buffered != 0;
        flush(state);
        return can_flush;
      },
      [](const State& state, bool is_final) {
        return state.is_taken_away != 0 || (is_final && state.is_held != 0);
      },
      states);
  EXPECT_GT(states, 30U);
  return holds;
}

TEST(ShmLostModel, ChunksAreTakenBackOnceNobodyFillsThem) {
  EXPECT_TRUE(explore(Rules::real));
}

TEST(ShmLostModel, WithoutTheFenceOneIsTakenWhileItIsFilled) {
  EXPECT_FALSE(explore(Rules::without_fence));
}

TEST(ShmLostModel, WhoLooksBeforeItSaysWhatItDoesLosesItsChunk) {
  EXPECT_FALSE(explore(Rules::looks_first));
}

TEST(ShmLostModel, WhoDoesNotLookAgainLeavesChunksLost) {
  EXPECT_FALSE(explore(Rules::looks_once));
}

}  // namespace
}  // namespace sterna::net::shm
