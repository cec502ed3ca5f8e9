// A packet is sent while its receiver falls asleep, all interleavings on a machine with store
// buffers (x86-TSO): with the fence of all processors, or with the ringer's, nothing lies unseen;
// with neither it lies until the sleep's end, and the next sleep has the fence. Negative controls:
// sleeps without any fence that do not end, and a sleeper that looks before it says that it sleeps.
#include <gtest/gtest.h>

#include "net/drivers/shm/doorbell.h"
#include "threads/model_explorer.h"

namespace sterna::net::shm {
namespace {

enum class Rules : std::uint8_t {
  fence_of_all,
  fence_of_ringer,
  short_then_fence_of_all,
  endless_without_fence,
  looks_first,
};

enum RingerAt : std::uint8_t { kSend, kLookAtFlag, kRing };
enum SleeperAt : std::uint8_t { kSay, kFence, kLook, kAsleepShortly, kAsleepForGood, kAwake };

struct State {
  std::uint8_t seen_sent;  // Packets that the sleeper can see.
  std::uint8_t buffered;   // The ringer's store of one is on its way.
  std::uint8_t to_send;
  std::uint8_t taken;
  std::uint8_t is_flagged;  // The sleeper's flag; its own fence is part of the store.
  std::uint8_t is_rung;
  std::uint8_t ringer_at;
  std::uint8_t sleeper_at;
  std::uint8_t has_dozed;  // The last sleep ended by itself, and nothing came.
};

void flush(State& state) {
  state.seen_sent += state.buffered;
  state.buffered = 0;
}

bool step_ringer(State& state, Rules rules) {
  switch (state.ringer_at) {
    case kSend:
      if (state.to_send == 0) {
        return false;
      }
      flush(state);  // The buffer holds one.
      --state.to_send;
      state.buffered = 1;
      if (rules == Rules::fence_of_ringer) {
        flush(state);
      }
      state.ringer_at = kLookAtFlag;
      return true;
    case kLookAtFlag:
      state.ringer_at = state.is_flagged != 0 ? kRing : kSend;
      return true;
    default:
      flush(state);  // The exchange of the flag.
      state.is_rung |= state.is_flagged;
      state.is_flagged = 0;
      state.ringer_at = kSend;
      return true;
  }
}

[[nodiscard]] bool is_short(const State& state, Rules rules) {
  return rules == Rules::short_then_fence_of_all && state.has_dozed == 0;
}

void wake_up(State& state) {
  state.is_flagged = 0;
  state.is_rung = 0;
  state.sleeper_at = kAwake;
}

bool step_sleeper(State& state, Rules rules) {
  switch (state.sleeper_at) {
    case kAwake:
      if (state.taken < state.seen_sent) {
        ++state.taken;
        state.has_dozed = 0;
        return true;
      }
      state.sleeper_at = rules == Rules::looks_first ? kLook : kSay;
      return true;
    case kSay:
      state.is_flagged = 1;
      state.sleeper_at = kFence;
      return true;
    case kFence:
      if (rules == Rules::fence_of_all || rules == Rules::looks_first ||
          (rules == Rules::short_then_fence_of_all && !is_short(state, rules))) {
        flush(state);  // membarrier: the ringer's processor passes a full barrier.
      }
      state.sleeper_at = rules == Rules::looks_first ? kAsleepForGood : kLook;
      return true;
    case kLook:
      if (state.taken < state.seen_sent) {
        wake_up(state);
      } else if (rules == Rules::looks_first) {
        state.sleeper_at = kSay;
      } else {
        state.sleeper_at = is_short(state, rules) ? kAsleepShortly : kAsleepForGood;
      }
      return true;
    case kAsleepShortly:  // A ring, or its end: at any time.
      state.has_dozed = state.is_rung == 0 ? 1 : 0;
      wake_up(state);
      return true;
    default:
      if (state.is_rung == 0) {
        return false;
      }
      wake_up(state);
      return true;
  }
}

bool explore(Rules rules) {
  const State initial{.seen_sent = 0,
                      .buffered = 0,
                      .to_send = 3,
                      .taken = 0,
                      .is_flagged = 0,
                      .is_rung = 0,
                      .ringer_at = kSend,
                      .sleeper_at = kAwake,
                      .has_dozed = 0};
  std::size_t states = 0;
  const bool holds = threads::holds_in_all_interleavings(
      initial, 3,
      [&](State& state, int process) {
        if (process == 0) {
          return step_ringer(state, rules);
        }
        if (process == 1) {
          return step_sleeper(state, rules);
        }
        const bool can_flush = state.buffered != 0;
        flush(state);
        return can_flush;
      },
      [](const State& state, bool is_final) {
        return is_final && (state.sleeper_at != kAsleepForGood || state.taken != 3);
      },
      states);
  EXPECT_GT(states, 30U);
  return holds;
}

TEST(ShmDoorbellModel, OneFenceForBothWakesTheSleeper) {
  EXPECT_TRUE(explore(Rules::fence_of_all));
}

TEST(ShmDoorbellModel, SoDoesTheFenceOfWhoRings) {
  EXPECT_TRUE(explore(Rules::fence_of_ringer));
}

TEST(ShmDoorbellModel, ASleepThatEndsNeedsNone) {
  EXPECT_TRUE(explore(Rules::short_then_fence_of_all));
}

TEST(ShmDoorbellModel, OneThatDoesNotEndLosesItsRing) {
  EXPECT_FALSE(explore(Rules::endless_without_fence));
}

TEST(ShmDoorbellModel, WhoLooksBeforeItSaysThatItSleepsLosesItsRing) {
  EXPECT_FALSE(explore(Rules::looks_first));
}

TEST(ShmDoze, TheSleepBehindOneInWhichNothingCameHasTheFence) {
  constexpr std::uint64_t kLimit = Doze::kLimitNs;
  Doze doze;
  EXPECT_EQ(doze.end_ns(), kNever);
  EXPECT_TRUE(doze.begin(1000, 7));
  EXPECT_EQ(doze.end_ns(), 1000 + kLimit);
  EXPECT_FALSE(doze.is_settled(1000));
  EXPECT_TRUE(doze.is_settled(1000 + Doze::kSettledNs));
  doze.end(1500);
  EXPECT_TRUE(doze.begin(2000, 7)) << "woken by something else: it has an end again";
  doze.end(2000 + kLimit);
  EXPECT_TRUE(doze.begin(3000 + kLimit, 8)) << "something came";
  doze.end(3000 + 2 * kLimit);
  EXPECT_FALSE(doze.begin(3000 + 2 * kLimit, 8));
  EXPECT_EQ(doze.end_ns(), kNever);
  doze.end(3000 + 9 * kLimit);
  EXPECT_TRUE(doze.begin(3000 + 9 * kLimit, 8)) << "the one with the fence is over";
}

// A tick of a program that computes looks as if it would sleep, and does not.
TEST(ShmDoze, WhatIsNotSleptIsNoSleep) {
  Doze doze;
  for (std::uint64_t now = 1000; now < 20 * Doze::kLimitNs; now += 3 * Doze::kLimitNs) {
    EXPECT_TRUE(doze.begin(now, 7));
    doze.end(now + 100);
  }
}

}  // namespace
}  // namespace sterna::net::shm
