// The end of an offer that is not answered in time, in every order: one rank, its source, and a
// destination whose poll hears OFFER, CANCEL and COMMIT in the order sent, while a thread of its
// own looks at the offer some time later, as on_offer does. The rank is never at two places; in the
// end it is at one, unless it was lost with a node.
#include <gtest/gtest.h>

#include "migration/model_wire.h"
#include "migration/withdrawn.h"

namespace sterna::migration {
namespace {

enum Message : std::uint8_t { kNone, kOffer, kCancel, kCommit };
enum Source : std::uint8_t {
  kHere,      // The rank runs there.
  kOffered,   // Frozen, waits for the answer.
  kAnswered,  // Frozen, about to commit.
  kGone,      // Committed.
  kMovedOn,   // The rank went to a third node afterwards, and runs.
};
enum Arrival : std::uint8_t {
  kNothing,
  kReceived,
  kGivenUp,  // Taken back; its memory is being unmapped, and its number is still known.
  kInstalled,
};
// What the destination remembers of offers that were taken back.
enum Memory : std::uint8_t {
  kRemembers,      // The last of them, as WithdrawnOffers does.
  kForgetsAtNext,  // ... until a later offer is looked at.
  kRemembersNothing,
};

struct State {
  std::uint8_t source = kHere;
  ModelWire<4> wire;             // To the destination: message, and the number of the offer.
  std::uint8_t sent = 0;         // Offers made so far; the number of the last one.
  std::uint8_t waiting[3] = {};  // Numbers of offers that were heard and not looked at; 0: none.
  std::uint8_t arrival = kNothing;
  std::uint8_t arrival_number = 0;
  std::uint8_t withdrawn = 0;  // Offers up to this number are refused.
  std::uint8_t answer = 0;     // On its way to the source: number of an accepted offer.
  std::uint8_t refusal = 0;
  std::uint8_t is_source_dead = 0;
  std::uint8_t knows_death = 0;  // The destination was told.
};

constexpr std::uint8_t kOffersMax = 2;

constexpr std::uint8_t message_of(Message message, std::uint8_t number) {
  return static_cast<std::uint8_t>(message | number << 4);
}

void send(State& state, Message message) {
  (void)state.wire.send(message_of(message, state.sent));
}

bool source_step(State& state) {
  if (state.is_source_dead != 0) {
    return false;
  }
  switch (state.source) {
    case kHere:
      if (state.sent == kOffersMax || !state.wire.has_room()) {
        return false;
      }
      ++state.sent;
      send(state, kOffer);
      state.source = kOffered;
      return true;
    case kOffered:
      if (state.answer == state.sent) {
        state.answer = 0;
        state.source = kAnswered;
        return true;
      }
      if (state.refusal == state.sent) {
        state.refusal = 0;
        state.source = kHere;
        return true;
      }
      return false;
    case kAnswered:
      if (!state.wire.has_room()) {
        return false;
      }
      send(state, kCommit);
      state.source = kGone;
      return true;
    default:
      return false;
  }
}

/// The answer does not come in time, whatever is on its way.
bool time_passes(State& state) {
  if (state.source != kOffered || state.is_source_dead != 0 || !state.wire.has_room()) {
    return false;
  }
  send(state, kCancel);
  state.source = kHere;
  return true;
}

bool move_on(State& state) {
  if (state.source != kHere || state.is_source_dead != 0 || state.sent == 0) {
    return false;
  }
  state.source = kMovedOn;
  return true;
}

/// A node that dies after its ranks have left, but before what it had sent was taken, ends the job
/// (Flush): not looked at here.
bool die(State& state) {
  if (state.is_source_dead != 0 || (state.source == kMovedOn && !state.wire.is_empty())) {
    return false;
  }
  state.is_source_dead = 1;
  return true;
}

bool poll_step(State& state, Memory memory) {
  const std::uint8_t taken = state.wire.take();
  const int message = taken & 15;
  const auto number = static_cast<std::uint8_t>(taken >> 4);
  if (message == kNone) {
    return false;
  }
  if (message == kOffer) {
    for (std::uint8_t& place : state.waiting) {
      if (place == 0) {
        place = number;
        return true;
      }
    }
  } else if (message == kCancel) {
    if (state.arrival == kReceived) {
      state.arrival = kGivenUp;
    }
    const bool is_known = state.arrival != kNothing && state.arrival_number == number;
    if (!is_known && memory != kRemembersNothing) {
      state.withdrawn = number;
    }
  } else if (state.arrival == kReceived && state.arrival_number == number) {
    state.arrival = kInstalled;
  }
  return true;
}

/// The thread that unmaps what was given up has come to its end.
bool unmap_step(State& state) {
  if (state.arrival != kGivenUp) {
    return false;
  }
  state.arrival = kNothing;
  state.arrival_number = 0;
  return true;
}

/// A thread looks at one of the offers that wait (try_open): threads are not ordered.
bool offer_step(State& state, int which, Memory memory) {
  const std::uint8_t number = state.waiting[which];
  if (number == 0) {
    return false;
  }
  const bool is_withdrawn = number <= state.withdrawn;
  if (is_withdrawn || state.knows_death != 0) {
    state.waiting[which] = 0;
    state.refusal = number;
    return true;
  }
  const bool forgets = memory == kForgetsAtNext && state.withdrawn != 0;
  if (forgets) {
    state.withdrawn = 0;
  }
  if (state.arrival == kGivenUp) {
    return forgets;  // It looks again.
  }
  state.waiting[which] = 0;
  if (state.arrival != kNothing) {
    state.refusal = number;
    return true;
  }
  state.arrival = kReceived;  // Shared memory: accepted is received.
  state.arrival_number = number;
  state.answer = number;
  return true;
}

/// The news that the source is dead come after all it had sent (lose_peer).
bool loss_step(State& state) {
  if (state.is_source_dead == 0 || !state.wire.is_empty() || state.knows_death != 0) {
    return false;
  }
  state.knows_death = 1;
  if (state.arrival == kReceived) {
    state.arrival = kInstalled;
  }
  return true;
}

bool explore(Memory memory, std::size_t& states) {
  const auto poll = [&](State& state) { return poll_step(state, memory); };
  const auto first = [&](State& state) { return offer_step(state, 0, memory); };
  const auto second = [&](State& state) { return offer_step(state, 1, memory); };
  const auto third = [&](State& state) { return offer_step(state, 2, memory); };
  const auto unmap = [](State& state) { return unmap_step(state); };
  const auto source = [](State& state) { return source_step(state); };
  const auto time = [](State& state) { return time_passes(state); };
  const auto end = [](State& state) { return die(state); };
  const auto on = [](State& state) { return move_on(state); };
  const auto loss = [](State& state) { return loss_step(state); };
  const ModelProcess<State> processes[] = {source, time,  poll, first, second,
                                           third,  unmap, end,  on,    loss};
  return holds_for_all_orders(
      State{}, processes,
      [](const State& state, bool is_final) {
        const bool is_on_source = state.source <= kAnswered;
        const bool runs_elsewhere =
            state.source == kMovedOn || (is_on_source && state.is_source_dead == 0);
        const bool is_there = state.arrival == kInstalled;
        const bool is_twice = runs_elsewhere && is_there;
        const bool is_lost = is_on_source && state.is_source_dead != 0;
        const bool is_never = is_final && !runs_elsewhere && !is_there && !is_lost;
        return is_twice || is_never;
      },
      states);
}

TEST(OfferModel, ALateOfferNeverMakesTwoRanksNorNone) {
  std::size_t states = 0;
  EXPECT_TRUE(explore(kRemembers, states));
  EXPECT_GT(states, 200U);
}

// The model sees the fault that the numbers mend: a destination that forgets what was taken back
// installs, when the old source dies, a rank that runs elsewhere.
TEST(OfferModel, WithoutTheMemoryOfCancelledOffersItFindsTwo) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(kRemembersNothing, states));
}

// ... and so does one that forgets it when a later offer comes: that one may be taken back while
// its memory is known here, and the earlier one is looked at last.
TEST(OfferModel, WithAMemoryThatALaterOfferEndsItFindsTwo) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(kForgetsAtNext, states));
}

TEST(WithdrawnOffers, StayWithdrawnWhateverIsAskedLater) {
  WithdrawnOffers offers;
  EXPECT_FALSE(offers.contains(1, 7, 1));
  offers.add(1, 7, 3);
  EXPECT_FALSE(offers.contains(1, 7, 4)) << "a later offer is good";
  EXPECT_TRUE(offers.contains(1, 7, 3)) << "whoever asked for a later one";
  EXPECT_TRUE(offers.contains(1, 7, 2));
  EXPECT_FALSE(offers.contains(2, 7, 1)) << "another source";
  EXPECT_FALSE(offers.contains(1, 8, 1)) << "another rank";
  offers.add(1, 7, 5);
  EXPECT_TRUE(offers.contains(1, 7, 4));
}

}  // namespace
}  // namespace sterna::migration
