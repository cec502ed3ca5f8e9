// The lock for readers and writers, all orders of the sections of two readers and two writers, each
// of which may give up at its deadline at any moment while it waits: a writer is alone, nobody
// waits while the lock is free, and no reader that may have it. Each section is one step: they hold
// the spin lock of the object. Negative controls: a writer that gives up does not look after the
// readers that waited for it; a lock that is given back is handed to nobody.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"
#include "threads/sync/rwlock.h"

namespace sterna::threads {
namespace {

enum class Rules : std::uint8_t { real, leaves_readers, hands_over_nothing };
enum At : std::uint8_t { kBegin, kWaits, kHolds, kEnd };

constexpr int kReaders = 2;
constexpr int kAll = 4;  // Then the writers.
constexpr std::uint8_t kReaderBits = 0b0011;
constexpr std::uint8_t kWriterBits = 0b1100;

struct State {
  std::uint8_t has_writer;
  std::uint8_t reader_count;
  std::uint8_t waiting;  // Bit per thread.
  std::uint8_t rounds_left[kAll];
  std::uint8_t at[kAll];
};

class Model {
 public:
  Model(RwPreference preference, Rules rules) : preference_{preference}, rules_{rules} {}

  [[nodiscard]] bool may_read(const State& state) const {
    return state.has_writer == 0 &&
           (preference_ == RwPreference::readers || (state.waiting & kWriterBits) == 0);
  }
  /// Its next section.
  [[nodiscard]] bool step(State& state, int me) const {
    const bool is_reader = me < kReaders;
    switch (state.at[me]) {
      case kBegin: {
        if (state.rounds_left[me] == 0) {
          return false;
        }
        const bool may =
            is_reader ? may_read(state) : state.has_writer == 0 && state.reader_count == 0;
        if (may) {
          take(state, me);
        } else {
          state.at[me] = kWaits;
          state.waiting |= bit(me);
        }
        return true;
      }
      case kHolds:
        is_reader ? --state.reader_count : --state.has_writer;
        finish(state, me);
        if (rules_ != Rules::hands_over_nothing) {
          hand_over(state, !is_reader);
        }
        return true;
      default:
        return false;  // Somebody hands it over, or its deadline comes.
    }
  }

  /// Its deadline comes.
  [[nodiscard]] bool give_up(State& state, int me) const {
    if (state.at[me] != kWaits) {
      return false;
    }
    state.waiting &= ~bit(me);
    finish(state, me);
    if (me >= kReaders && may_read(state) && rules_ != Rules::leaves_readers) {
      take_readers(state);
    }
    return true;
  }

 private:
  static std::uint8_t bit(int me) { return static_cast<std::uint8_t>(1 << me); }
  static void take(State& state, int me) {
    state.at[me] = kHolds;
    me < kReaders ? ++state.reader_count : ++state.has_writer;
  }
  static void finish(State& state, int me) {
    --state.rounds_left[me];
    state.at[me] = kBegin;
  }
  static void take_readers(State& state) {
    for (int reader = 0; reader < kReaders; ++reader) {
      if ((state.waiting & bit(reader)) != 0) {
        state.waiting &= ~bit(reader);
        take(state, reader);
      }
    }
  }
  void hand_over(State& state, bool after_writer) const {
    if (state.has_writer != 0 || state.reader_count != 0) {
      return;
    }
    const bool readers_first =
        preference_ == RwPreference::readers || (preference_ == RwPreference::fair && after_writer);
    const bool has_readers = (state.waiting & kReaderBits) != 0;
    if ((state.waiting & kWriterBits) != 0 && (!has_readers || !readers_first)) {
      const int writer = (state.waiting & bit(kReaders)) != 0 ? kReaders : kReaders + 1;
      state.waiting &= ~bit(writer);
      take(state, writer);
    } else {
      take_readers(state);
    }
  }

  RwPreference preference_;
  Rules rules_;
};

bool explore(RwPreference preference, Rules rules, std::size_t& states) {
  const Model model{preference, rules};
  State initial{};
  for (std::uint8_t& rounds : initial.rounds_left) {
    rounds = 2;
  }
  return holds_in_all_interleavings(
      initial, 2 * kAll,
      [&](State& state, int process) {
        return process < kAll ? model.step(state, process) : model.give_up(state, process - kAll);
      },
      [&](const State& state, bool) {
        const bool is_free = state.has_writer == 0 && state.reader_count == 0;
        return state.has_writer > 1 || (state.has_writer != 0 && state.reader_count != 0) ||
               (is_free && state.waiting != 0) ||
               ((state.waiting & kReaderBits) != 0 && model.may_read(state));
      },
      states);
}

TEST(RwLockModel, WritersAreAloneAndNobodyWaitsForAFreeLock) {
  for (const auto preference : {RwPreference::fair, RwPreference::readers, RwPreference::writers}) {
    std::size_t states = 0;
    EXPECT_TRUE(explore(preference, Rules::real, states));
    EXPECT_GT(states, 500U);
  }
}

TEST(RwLockModel, EachRuleIsNeeded) {
  std::size_t states = 0;
  EXPECT_FALSE(explore(RwPreference::fair, Rules::leaves_readers, states));
  EXPECT_FALSE(explore(RwPreference::fair, Rules::hands_over_nothing, states));
}

}  // namespace
}  // namespace sterna::threads
