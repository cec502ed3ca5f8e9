// One chunk that its owner sends to two peers, who answer in it or leave it, all interleavings of
// the owner's pool, its two senders, the peers' senders and all readers. Senders try at any time
// whatever their RecentChunks may still hold: entries may be as old as they like. At any time one
// has the chunk, and the pool's accounts name the node that has it. Negative controls: a sender
// that looks and then stores, one that takes whatever is idle, a reader that lets go before it has
// read, and a chunk that comes home as if it had never been away, each break that.
#include <gtest/gtest.h>

#include "net/drivers/shm/segment.h"
#include "threads/model_explorer.h"

namespace sterna::net::shm {
namespace {

enum class Rules : std::uint8_t { real, looks_then_stores, takes_any, lets_go_early, names_nobody };

constexpr std::uint16_t kNobody = 0xffff;
constexpr std::uint8_t kPeers = 2;

// What a sender is at.
enum At : std::uint8_t { kRests, kLooked, kFills };

struct State {
  std::uint16_t idle;             // As in the head.
  std::uint16_t holder;           // By the pool; kNobody: it is free.
  std::uint8_t sent[kPeers];      // To the peer: 1, and not read.
  std::uint8_t answered[kPeers];  // By the peer.
  std::uint8_t reads[kPeers];     // The peer does.
  std::uint8_t reads_answer[kPeers];
  std::uint8_t out_at[kPeers];   // The owner's sender to the peer.
  std::uint8_t back_at[kPeers];  // The peer's sender.
  std::uint16_t collected;       // What collect() has seen; 0: it is not at it.
};

class Chunk {
 public:
  Chunk(State& state, Rules rules) : state_{state}, rules_{rules} {}

  bool step(int process) {
    const int peer = process % kPeers;
    switch (process / kPeers) {
      case 0:
        return send(peer);
      case 1:
        return answer(peer);
      case 2:
        return read(state_.sent[peer], state_.reads[peer], idle_at(node(peer)));
      case 3:
        return read(state_.answered[peer], state_.reads_answer[peer],
                    rules_ == Rules::names_nobody ? idle_at_home(0) : idle_at_home(node(peer)));
      case 4:
        return put_back(state_.out_at[peer], state_.holder, kNobody);
      case 5:
        return put_back(state_.back_at[peer], state_.idle, idle_at(node(peer)));
      default:
        return peer == 0 && collect();
    }
  }

 private:
  static std::uint32_t node(int peer) { return static_cast<std::uint32_t>(peer); }

  /// One exchange, or what a sender that does it wrongly does.
  bool take(std::uint8_t& at, std::uint16_t expected) {
    const bool is_wanted = rules_ == Rules::takes_any ? state_.idle != 0 : state_.idle == expected;
    if (at == kLooked) {
      state_.idle = 0;
      at = kFills;
      return true;
    }
    if (!is_wanted) {
      return false;
    }
    at = rules_ == Rules::looks_then_stores ? kLooked : kFills;
    state_.idle = at == kFills ? 0 : state_.idle;
    return true;
  }

  bool send(int peer) {
    std::uint8_t& at = state_.out_at[peer];
    if (at == kFills) {
      at = kRests;
      state_.sent[peer] = 1;
      return true;
    }
    if (at == kRests && state_.holder == kNobody) {
      state_.holder = static_cast<std::uint16_t>(peer);
      at = kFills;
      return true;
    }
    return take(at, rules_ == Rules::names_nobody ? idle_at_home(0) : idle_at_home(node(peer)));
  }

  bool answer(int peer) {
    std::uint8_t& at = state_.back_at[peer];
    if (at == kFills) {
      at = kRests;
      state_.answered[peer] = 1;
      return true;
    }
    return take(at, idle_at(node(peer)));
  }

  /// There was no room for the reference.
  static bool put_back(std::uint8_t& at, std::uint16_t& where, std::uint16_t value) {
    if (at != kFills) {
      return false;
    }
    at = kRests;
    where = value;
    return true;
  }

  bool read(std::uint8_t& has_come, std::uint8_t& is_reading, std::uint16_t idle) {
    if (is_reading != 0) {
      is_reading = 0;
      state_.idle = rules_ == Rules::lets_go_early ? state_.idle : idle;
      return true;
    }
    if (has_come == 0) {
      return false;
    }
    has_come = 0;
    is_reading = 1;
    state_.idle = rules_ == Rules::lets_go_early ? idle : state_.idle;
    return true;
  }

  bool collect() {
    if (state_.collected == 0) {
      state_.collected = state_.holder != kNobody ? state_.idle : 0;
      return state_.collected != 0;
    }
    if (state_.idle == state_.collected) {
      state_.idle = 0;
      state_.holder = kNobody;
    }
    state_.collected = 0;
    return true;
  }

  State& state_;
  Rules rules_;
};

bool is_bad(const State& state) {
  int users = state.holder == kNobody ? 1 : 0;  // The pool.
  std::uint16_t user = state.holder;
  for (std::uint16_t peer = 0; peer < kPeers; ++peer) {
    const int of_peer = state.sent[peer] + state.answered[peer] + state.reads[peer] +
                        state.reads_answer[peer] + (state.out_at[peer] == kFills ? 1 : 0) +
                        (state.back_at[peer] == kFills ? 1 : 0);
    users += of_peer;
    user = of_peer != 0 ? peer : user;
  }
  if (state.idle == 0) {
    return users != 1 || user != state.holder;
  }
  return users != 0 ||
         (state.idle != idle_at(state.holder) && state.idle != idle_at_home(state.holder));
}

bool one_has_it(Rules rules) {
  State initial{};
  initial.holder = kNobody;
  std::size_t states = 0;
  const bool holds = threads::holds_in_all_interleavings(
      initial, 7 * kPeers,
      [&](State& state, int process) { return Chunk{state, rules}.step(process); },
      [](const State& state, bool) { return is_bad(state); }, states);
  EXPECT_GT(states, holds ? 20U : 1U);
  return holds;
}

TEST(ShmChunkModel, OneHasIt) {
  EXPECT_TRUE(one_has_it(Rules::real));
}

TEST(ShmChunkModel, ItIsTakenByOneExchange) {
  EXPECT_FALSE(one_has_it(Rules::looks_then_stores));
}

TEST(ShmChunkModel, ASenderTakesOnlyWhatItsPeerHolds) {
  EXPECT_FALSE(one_has_it(Rules::takes_any));
}

TEST(ShmChunkModel, AReaderLetsGoWhenItHasRead) {
  EXPECT_FALSE(one_has_it(Rules::lets_go_early));
}

TEST(ShmChunkModel, AtHomeItSaysWhoHolds) {
  EXPECT_FALSE(one_has_it(Rules::names_nobody));
}

}  // namespace
}  // namespace sterna::net::shm
