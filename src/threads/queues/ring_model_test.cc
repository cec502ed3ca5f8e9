// base/ring.h: all interleavings of the producer and the consumer on a machine that reorders what
// nothing orders: a store that is not a release may be seen after later ones, a load may be made
// before an earlier one that is no acquire. All values arrive, once, in order, and no slot is
// written before it was read. Negative controls: each half of A and of B relaxed (the consumer's
// half of B is that its read comes before its store).
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kSlots = 2;
constexpr std::uint8_t kValues = 5;  // Twice round, and one.
constexpr std::uint8_t kEmpty = 255;
enum class Rules : std::uint8_t { real, weak_tail_store, weak_tail_load, weak_head_store };

struct State {
  std::uint8_t slots[kSlots] = {kEmpty, kEmpty};
  std::uint8_t tail = 0;
  std::uint8_t head = 0;
  std::uint8_t seen_head = 0;
  std::uint8_t seen_tail = 0;
  std::uint8_t pushed = 0;  // The producer's own index.
  std::uint8_t popped = 0;
  std::uint8_t pending = kEmpty;  // A value on its way into its slot, that of index `pending_at`.
  std::uint8_t pending_at = 0;
  std::uint8_t producer_at = 0;
  std::uint8_t consumer_at = 0;
  std::uint8_t loaded = kEmpty;  // By the consumer, ahead of its turn or in it.
  std::uint8_t is_broken = 0;
};

void settle(State& s) {
  if (s.pending != kEmpty) {
    s.slots[s.pending_at % kSlots] = s.pending;
    s.pending = kEmpty;
  }
}

bool step_producer(State& s, Rules rules) {
  switch (s.producer_at) {
    case 0:
      if (s.pushed == kValues) {
        return false;
      }
      if (s.pushed - s.seen_head >= kSlots) {
        if (s.head == s.seen_head) {
          return false;  // Full.
        }
        s.seen_head = s.head;  // Acquire.
      }
      s.producer_at = 1;
      return true;
    case 1:
      settle(s);  // An older one to the same place is never overtaken.
      s.pending = s.pushed;
      s.pending_at = s.pushed;
      s.producer_at = 2;
      return true;
    default:
      if (rules != Rules::weak_tail_store) {
        settle(s);
      }
      s.tail = ++s.pushed;
      s.producer_at = 0;
      return true;
  }
}

void take(State& s, std::uint8_t value) {
  s.is_broken |= value == s.popped ? 0 : 1;
}

bool step_consumer(State& s, Rules rules) {
  switch (s.consumer_at) {
    case 0:
      if (s.popped == kValues) {
        return false;
      }
      if (rules == Rules::weak_tail_load && s.loaded == kEmpty) {
        s.loaded = s.slots[s.popped % kSlots];  // Before it knows that there is something.
        s.consumer_at = 1;
        return s.loaded != kEmpty || s.tail != s.popped;
      }
      s.consumer_at = 1;
      return true;
    case 1:
      if (s.popped == s.seen_tail) {
        if (s.tail == s.seen_tail) {
          return false;  // Empty.
        }
        s.seen_tail = s.tail;  // Acquire.
      }
      s.consumer_at = 2;
      return true;
    case 2:
      if (rules == Rules::weak_head_store) {
        s.head = s.popped + 1;  // Seen before the slot was read.
      } else {
        take(s, rules == Rules::weak_tail_load ? s.loaded : s.slots[s.popped % kSlots]);
      }
      s.consumer_at = 3;
      return true;
    default:
      if (rules == Rules::weak_head_store) {
        take(s, s.slots[s.popped % kSlots]);
      }
      s.head = ++s.popped;
      s.loaded = kEmpty;
      s.consumer_at = 0;
      return true;
  }
}

bool step_memory(State& s) {
  const bool has_some = s.pending != kEmpty;
  settle(s);
  return has_some;
}

bool values_arrive(Rules rules) {
  std::size_t count = 0;
  const bool holds = holds_in_all_interleavings(
      State{}, 3,
      [&](State& s, int who) {
        return who == 0   ? step_producer(s, rules)
               : who == 1 ? step_consumer(s, rules)
                          : step_memory(s);
      },
      [](const State& s, bool is_final) {
        return s.is_broken != 0 || (is_final && s.popped != kValues);
      },
      count);
  EXPECT_GT(count, 6U);
  return holds;
}

TEST(RingModel, AllValuesArriveInOrder) {
  EXPECT_TRUE(values_arrive(Rules::real));
}

TEST(RingModel, ARelaxedStoreOfTheTailIsFoundOut) {
  EXPECT_FALSE(values_arrive(Rules::weak_tail_store));
}

TEST(RingModel, ARelaxedLoadOfTheTailIsFoundOut) {
  EXPECT_FALSE(values_arrive(Rules::weak_tail_load));
}

TEST(RingModel, ARelaxedStoreOfTheHeadIsFoundOut) {
  EXPECT_FALSE(values_arrive(Rules::weak_head_store));
}

}  // namespace
}  // namespace sterna::threads
