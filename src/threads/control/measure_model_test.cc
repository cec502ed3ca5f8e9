// measure.h: all interleavings of one who looks three times, of who takes the thread from its queue
// and carries the order out, and of the switch that ends the measurement, a step an access. Nobody
// but who has the thread writes where its turn began while it is accounted, and once somebody has
// looked it is accounted, or will be when it is taken next. Negative controls: a look that reads
// the flags before the order; an order that is taken back before the thread is accounted.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

enum class Rules : std::uint8_t { real, flags_first, order_first };

struct State {
  std::uint8_t is_ordered = 0;
  std::uint8_t is_accounted = 0;
  std::uint8_t looks_left = 3;
  std::uint8_t looker_at = 0;
  std::uint8_t saw_order = 0;
  std::uint8_t saw_accounted = 0;
  std::uint8_t taker_at = 0;
  std::uint8_t ends_left = 1;
  std::uint8_t is_broken = 0;
};

bool step_looker(State& s, Rules rules) {
  switch (s.looker_at) {
    case 0:
      if (s.looks_left == 0) {
        return false;
      }
      --s.looks_left;
      s.looker_at = 1;
      return true;
    case 1:
      (rules == Rules::flags_first ? s.saw_accounted : s.saw_order) =
          rules == Rules::flags_first ? s.is_accounted : s.is_ordered;
      s.looker_at = 2;
      return true;
    case 2:
      (rules == Rules::flags_first ? s.saw_order : s.saw_accounted) =
          rules == Rules::flags_first ? s.is_ordered : s.is_accounted;
      s.looker_at = s.saw_accounted != 0 || s.saw_order != 0 ? 0 : 3;
      return true;
    case 3:  // Writes cycles_begin.
      s.is_broken |= s.is_accounted;
      s.looker_at = 4;
      return true;
    default:
      s.is_ordered = 1;
      s.looker_at = 0;
      return true;
  }
}

/// Takes the thread, runs it, again and again; at one of these switches nobody has looked for long.
bool step_taker(State& s, Rules rules) {
  switch (s.taker_at) {
    case 0:
      if (s.is_ordered == 0) {
        return false;
      }
      (rules == Rules::order_first ? s.is_ordered : s.is_accounted) =
          rules == Rules::order_first ? 0 : 1;
      s.taker_at = 1;
      return true;
    default:
      (rules == Rules::order_first ? s.is_accounted : s.is_ordered) =
          rules == Rules::order_first ? 1 : 0;
      s.taker_at = 0;
      return true;
  }
}

bool step_end(State& s) {
  if (s.ends_left == 0 || s.is_accounted == 0 || s.taker_at != 0 || s.is_ordered != 0) {
    return false;
  }
  --s.ends_left;
  s.is_accounted = 0;
  return true;
}

bool holds(Rules rules) {
  std::size_t count = 0;
  const bool right = holds_in_all_interleavings(
      State{}, 3,
      [&](State& s, int who) {
        return who == 0 ? step_looker(s, rules) : who == 1 ? step_taker(s, rules) : step_end(s);
      },
      [](const State& s, bool is_final) {
        const bool is_measured = s.is_accounted != 0 || s.is_ordered != 0;
        return s.is_broken != 0 || (is_final && s.ends_left != 0 && !is_measured);
      },
      count);
  EXPECT_GT(count, 5U);
  return right;
}

TEST(MeasureModel, AnOrderIsGivenToWhoIsNotAccountedOnly) {
  EXPECT_TRUE(holds(Rules::real));
}

TEST(MeasureModel, TheOrderIsReadBeforeTheFlags) {
  EXPECT_FALSE(holds(Rules::flags_first));
}

TEST(MeasureModel, AThreadIsAccountedBeforeItsOrderIsTakenBack) {
  EXPECT_FALSE(holds(Rules::order_first));
}

}  // namespace
}  // namespace sterna::threads
