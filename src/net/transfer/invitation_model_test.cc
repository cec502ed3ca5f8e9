// A slot of an invitation board (net/invitation_board.h): an owner that tells of receives in it,
// one after the other, and takes them back; a peer that takes one. All interleavings. The peer
// never has words of two receives, and never one that the owner has taken back. Negative control:
// without the count of lives it has.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::net {
namespace {

enum Slot : std::uint8_t { kFree, kOpen, kTaken };
enum OwnerAt : std::uint8_t { kFirstWord, kSecondWord, kTell, kClose, kOwnerDone };
enum PeerAt : std::uint8_t { kLook, kReadFirst, kReadSecond, kTake, kPeerDone };
constexpr std::uint8_t kLives = 3;

struct State {
  std::uint8_t slot;
  std::uint8_t life;      // Of the slot.
  std::uint8_t words[2];  // Each says of which receive it is: the life.
  std::uint8_t owner_at;
  std::uint8_t owner_lost;  // The receive whose close found it taken; 0: none.
  std::uint8_t peer_at;
  std::uint8_t seen_life;
  std::uint8_t seen[2];
  std::uint8_t has_taken;
};

bool step_owner(State& state) {
  switch (state.owner_at) {
    case kFirstWord:
      state.words[0] = state.life + 1;
      state.owner_at = kSecondWord;
      return true;
    case kSecondWord:
      state.words[1] = state.life + 1;
      state.owner_at = kTell;
      return true;
    case kTell:
      ++state.life;
      state.slot = kOpen;
      state.owner_at = kClose;
      return true;
    case kClose:  // Whenever a message comes, or the receive is cancelled.
      if (state.slot == kOpen) {
        state.slot = kFree;
      } else {
        state.owner_lost = state.life;
      }
      state.owner_at = state.life == kLives ? kOwnerDone : kFirstWord;
      return true;
    default:
      return false;
  }
}

bool step_peer(State& state, bool compares_lives) {
  switch (state.peer_at) {
    case kLook:
      if (state.slot != kOpen) {
        return false;
      }
      state.seen_life = state.life;
      state.peer_at = kReadFirst;
      return true;
    case kReadFirst:
      state.seen[0] = state.words[0];
      state.peer_at = kReadSecond;
      return true;
    case kReadSecond:
      state.seen[1] = state.words[1];
      state.peer_at = kTake;
      return true;
    case kTake:
      if (state.slot == kOpen && (!compares_lives || state.life == state.seen_life)) {
        state.slot = kTaken;
        state.has_taken = state.life;
        state.peer_at = kPeerDone;
      } else {
        state.peer_at = kLook;
      }
      return true;
    default:
      return false;
  }
}

bool explore(bool compares_lives) {
  std::size_t states = 0;
  const bool holds = threads::holds_in_all_interleavings(
      State{}, 2,
      [&](State& state, int process) {
        return process == 0 ? step_owner(state) : step_peer(state, compares_lives);
      },
      [](const State& state, bool is_final) {
        const bool has_wrong_words = state.has_taken != 0 && (state.seen[0] != state.has_taken ||
                                                              state.seen[1] != state.has_taken);
        // Who of the two has the receive, both agree, once both are done.
        return has_wrong_words || (is_final && state.has_taken != state.owner_lost);
      },
      states);
  EXPECT_GT(states, 30U);
  return holds;
}

TEST(InvitationModel, OneOfTheTwoHasTheReceiveAndItsWordsAreOfOne) {
  EXPECT_TRUE(explore(true));
}

TEST(InvitationModel, WithoutLivesWordsOfAnotherReceiveAreTaken) {
  EXPECT_FALSE(explore(false));
}

}  // namespace
}  // namespace sterna::net
