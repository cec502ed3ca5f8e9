// base/mpsc_queue.h: all interleavings of two pushes with a consumer, a step an access: between two
// pops a queue that looks empty holds nothing. Negative control: looking at the last element only.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kStub = 2;
constexpr std::uint8_t kNone = 255;
constexpr int kConsumer = 2;

struct State {
  std::uint8_t last = kStub;
  std::uint8_t first = kStub;
  std::uint8_t next[3] = {kNone, kNone, kNone};
  std::uint8_t step[3] = {};
  std::uint8_t previous[3] = {kNone, kNone, kNone};
  std::uint8_t candidate = kNone;  // What the pop under way would return.
  std::uint8_t is_popped[2] = {};
};

bool push_step(State& s, int me) {
  switch (s.step[me]) {
    case 0:
      s.previous[me] = s.last;
      s.last = static_cast<std::uint8_t>(me);
      s.step[me] = 1;
      return true;
    case 1:
      s.next[s.previous[me]] = static_cast<std::uint8_t>(me);
      s.step[me] = 2;
      return true;
    default:
      return false;
  }
}

bool take(State& s, std::uint8_t node, std::uint8_t next) {
  s.first = next;
  s.is_popped[node] = 1;
  s.candidate = kNone;
  s.step[kConsumer] = 0;
  return true;
}

bool pop_step(State& s) {
  switch (s.step[kConsumer]) {
    case 0:
      if (s.first == kStub) {
        if (s.next[kStub] == kNone) {
          return false;
        }
        s.first = s.next[kStub];
      }
      s.candidate = s.first;
      s.step[kConsumer] = 1;
      return true;
    case 1:
      if (s.next[s.candidate] != kNone) {
        return take(s, s.candidate, s.next[s.candidate]);
      }
      s.step[kConsumer] = 2;
      return true;
    case 2:
      s.step[kConsumer] = s.candidate == s.last ? 3 : 0;
      return true;
    case 3:
      s.next[kStub] = kNone;
      s.previous[kConsumer] = s.last;
      s.last = kStub;
      s.step[kConsumer] = 4;
      return true;
    case 4:
      s.next[s.previous[kConsumer]] = kStub;
      s.step[kConsumer] = 5;
      return true;
    default:
      if (s.next[s.candidate] != kNone) {
        return take(s, s.candidate, s.next[s.candidate]);
      }
      s.step[kConsumer] = 0;
      return true;
  }
}

bool is_never_wrongly_empty(bool looks_at_first) {
  std::size_t count = 0;
  const bool holds = holds_in_all_interleavings(
      State{}, 3,
      [](State& s, int who) { return who == kConsumer ? pop_step(s) : push_step(s, who); },
      [&](const State& s, bool) {
        const bool looks_empty = s.last == kStub && (!looks_at_first || s.first == kStub);
        bool holds_one = false;
        for (int i = 0; i < 2; ++i) {
          holds_one = holds_one || (s.step[i] > 0 && s.is_popped[i] == 0);
        }
        return s.step[kConsumer] == 0 && looks_empty && holds_one;
      },
      count);
  EXPECT_GT(count, looks_at_first ? 50U : 5U);
  return holds;
}

TEST(MpscModel, AQueueThatLooksEmptyHoldsNothing) {
  EXPECT_TRUE(is_never_wrongly_empty(true));
}

TEST(MpscModel, TheLastElementAloneDoesNotSay) {
  EXPECT_FALSE(is_never_wrongly_empty(false));
}

}  // namespace
}  // namespace sterna::threads
