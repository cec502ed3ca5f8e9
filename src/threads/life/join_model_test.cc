// join.cc: all interleavings of a thread that waits in the queue of worker 0, its joiner, which
// runs there, and a thief, worker 1, which may steal and run it, a step an access. The joiner goes
// on exactly once, after the end; the thread runs once. The joiner writes the thread's word by a
// plain store where the thread is in the queue whose lock it holds, by compare-and-swap elsewhere.
// Negative controls: the plain store without that lock; the plain store though the thread is not
// in that queue; an end that reads the word and then writes it, in two steps.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

enum Word : std::uint8_t { kZero, kJoiner, kEnded };
enum Place : std::uint8_t { kQueue, kOnOwner, kOnThief, kGone };
enum Lock : std::uint8_t { kFree, kOwner, kThief };
enum class Rules : std::uint8_t { real, without_lock, anywhere, end_in_two };

struct State {
  std::uint8_t word = kZero;
  std::uint8_t place = kQueue;
  std::uint8_t lock = kFree;
  std::uint8_t joiner_at = 0;
  std::uint8_t thief_at = 0;
  std::uint8_t owner_at = 0;  // Of what worker 0 runs while the joiner is off it.
  std::uint8_t end_saw = kZero;
  std::uint8_t wakes = 0;
  std::uint8_t runs = 0;
};

enum JoinerAt : std::uint8_t { kLock, kLook, kStore, kRunIt, kSwap, kWaits, kJoined };

/// The thread runs to its end on `worker`. False: not yet there.
bool end_step(State& s, std::uint8_t& at, Rules rules) {
  if (at == 0) {
    ++s.runs;
    at = 1;
    return false;
  }
  if (rules == Rules::end_in_two && at == 1) {
    s.end_saw = s.word;
    at = 2;
    return false;
  }
  const std::uint8_t saw = rules == Rules::end_in_two ? s.end_saw : s.word;  // exchange
  s.word = kEnded;
  s.place = kGone;
  s.wakes = static_cast<std::uint8_t>(s.wakes + (saw == kJoiner ? 1 : 0));
  return true;
}

bool step_joiner(State& s, Rules rules) {
  std::uint8_t& at = s.joiner_at;
  switch (at) {
    case kLock:
      if (rules != Rules::without_lock) {
        if (s.lock != kFree) {
          return false;
        }
        s.lock = kOwner;
      }
      at = kLook;
      return true;
    case kLook: {
      const bool is_here = s.place == kQueue || (rules == Rules::anywhere && s.place != kGone);
      at = is_here && s.word == kZero ? kStore : kSwap;
      return true;
    }
    case kStore:
      s.word = kJoiner;
      at = kRunIt;
      return true;
    case kRunIt:  // drop_next(), switch; the lock is given back on its context.
      if (s.place == kQueue) {
        s.place = kOnOwner;
      }
      s.lock = s.lock == kOwner ? std::uint8_t{kFree} : s.lock;
      at = kWaits;
      return true;
    case kSwap:
      at = s.word == kEnded ? kJoined : kWaits;
      s.word = s.word == kZero ? std::uint8_t{kJoiner} : s.word;
      s.lock = s.lock == kOwner ? std::uint8_t{kFree} : s.lock;
      return true;
    case kWaits:
      if (s.wakes == 0) {
        return false;
      }
      --s.wakes;
      at = kJoined;
      return true;
    default:
      return false;
  }
}

/// Worker 0, while the joiner is off it: runs what is in its queue, or was switched to.
bool step_owner(State& s, Rules rules) {
  if (s.joiner_at != kWaits) {
    return false;
  }
  if (s.place == kQueue && s.lock == kFree) {
    s.place = kOnOwner;
    return true;
  }
  if (s.place != kOnOwner) {
    return false;
  }
  static_cast<void>(end_step(s, s.owner_at, rules));
  return true;
}

bool step_thief(State& s, Rules rules) {
  std::uint8_t& at = s.thief_at;
  switch (at) {
    case 0:
      if (s.lock != kFree || s.place != kQueue) {
        return false;
      }
      s.lock = kThief;
      at = 1;
      return true;
    case 1:
      s.place = s.place == kQueue ? std::uint8_t{kOnThief} : s.place;
      s.lock = kFree;
      at = s.place == kOnThief ? 2 : 9;
      return true;
    default: {
      if (s.place != kOnThief) {
        return false;
      }
      std::uint8_t end_at = at - 2;
      const bool is_over = end_step(s, end_at, rules);
      at = is_over ? 9 : static_cast<std::uint8_t>(end_at + 2);
      return true;
    }
  }
}

bool joins_once(Rules rules) {
  std::size_t count = 0;
  const bool holds = holds_in_all_interleavings(
      State{}, 3,
      [&](State& s, int who) {
        return who == 0   ? step_joiner(s, rules)
               : who == 1 ? step_owner(s, rules)
                          : step_thief(s, rules);
      },
      [](const State& s, bool is_final) {
        const bool is_early = s.joiner_at == kJoined && s.place != kGone;
        const bool is_lost = is_final && (s.joiner_at != kJoined || s.word != kEnded);
        return is_early || s.runs > 1 || s.wakes > 1 || is_lost;
      },
      count);
  EXPECT_GT(count, 12U);
  return holds;
}

TEST(JoinModel, TheJoinerGoesOnOnceAfterTheEnd) {
  EXPECT_TRUE(joins_once(Rules::real));
}

TEST(JoinModel, APlainStoreWithoutTheLockIsFoundOut) {
  EXPECT_FALSE(joins_once(Rules::without_lock));
}

TEST(JoinModel, APlainStoreForAThreadThatIsElsewhereIsFoundOut) {
  EXPECT_FALSE(joins_once(Rules::anywhere));
}

TEST(JoinModel, AnEndIsOneExchange) {
  EXPECT_FALSE(joins_once(Rules::end_in_two));
}

}  // namespace
}  // namespace sterna::threads
