// owned_lock.h: all interleavings of two workers, each of which enters by a section of its own if
// it owns the lock, and else locks it as anybody does and then owns it, a step an access. Never are
// two inside, and nobody waits for ever. What is written inside needs no model of its own: who is
// next comes by way of the spin lock or of the biased lock, which has one. Negative controls:
// taking the ownership away without the lock of the owner's queue; looking who owns it before the
// section instead of inside; claiming it for another worker than one's own.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kNobody = 2;
enum class Rules : std::uint8_t { real, takes_without_lock, looks_outside, claims_for_other };
enum At : std::uint8_t {
  kBegin,
  kLook,
  kSection,  // Inside, by its own section.
  kLeaveSection,
  kSpin,
  kLookOwner,
  kLockOwner,
  kDisown,
  kUnlockOwner,
  kHolds,  // Inside, by the spin lock.
  kUnlock,
};

struct State {
  std::uint8_t owner = kNobody;
  std::uint8_t spin = kNobody;
  std::uint8_t biased[2] = {kNobody, kNobody};  // Who is inside the section of each worker.
  std::uint8_t at[2] = {};
  std::uint8_t seen[2] = {kNobody, kNobody};
  std::uint8_t rounds_left[2] = {2, 2};
};

bool step(State& s, std::uint8_t me, Rules rules) {
  std::uint8_t& at = s.at[me];
  switch (at) {
    case kBegin:
      if (s.rounds_left[me] == 0 || s.biased[me] != kNobody) {
        return false;
      }
      --s.rounds_left[me];
      s.seen[me] = s.owner;
      if (rules != Rules::looks_outside) {
        s.biased[me] = me;
      }
      at = kLook;
      return true;
    case kLook:
      if (rules == Rules::looks_outside) {
        if (s.biased[me] != kNobody) {
          return false;
        }
        s.biased[me] = me;
      } else {
        s.seen[me] = s.owner;
      }
      at = s.seen[me] == me ? kSection : kSpin;
      if (at == kSpin) {
        s.biased[me] = kNobody;
      }
      return true;
    case kSection:
      at = kLeaveSection;
      return true;
    case kLeaveSection:
      s.biased[me] = kNobody;
      at = kBegin;
      return true;
    case kSpin:
      if (s.spin != kNobody) {
        return false;
      }
      s.spin = me;
      at = kLookOwner;
      return true;
    case kLookOwner:
      s.seen[me] = s.owner;
      at = s.owner == kNobody || s.owner == me  ? kHolds
           : rules == Rules::takes_without_lock ? kDisown
                                                : kLockOwner;
      return true;
    case kLockOwner:
      if (s.biased[s.seen[me]] != kNobody) {
        return false;
      }
      s.biased[s.seen[me]] = me;
      at = kDisown;
      return true;
    case kDisown:
      s.owner = kNobody;
      at = rules == Rules::takes_without_lock ? kHolds : kUnlockOwner;
      return true;
    case kUnlockOwner:
      s.biased[s.seen[me]] = kNobody;
      at = kHolds;
      return true;
    case kHolds:  // claim(), while it is inside.
      s.owner = rules == Rules::claims_for_other ? static_cast<std::uint8_t>(1 - me) : me;
      at = kUnlock;
      return true;
    default:
      s.spin = kNobody;
      at = kBegin;
      return true;
  }
}

bool is_inside(std::uint8_t at) {
  // Who leaves a section or unlocks is inside until that is done.
  return at == kSection || at == kLeaveSection || at == kHolds || at == kUnlock;
}

bool excludes(Rules rules) {
  std::size_t count = 0;
  const bool holds = holds_in_all_interleavings(
      State{}, 2, [&](State& s, int me) { return step(s, static_cast<std::uint8_t>(me), rules); },
      [](const State& s, bool is_final) {
        const bool both = is_inside(s.at[0]) && is_inside(s.at[1]);
        return both || (is_final && (s.at[0] != kBegin || s.at[1] != kBegin));
      },
      count);
  EXPECT_GT(count, 20U);
  return holds;
}

TEST(OwnedLockModel, SectionsAndHoldersExcludeEachOther) {
  EXPECT_TRUE(excludes(Rules::real));
}

TEST(OwnedLockModel, OwnershipIsTakenUnderTheOwnersLockOnly) {
  EXPECT_FALSE(excludes(Rules::takes_without_lock));
}

TEST(OwnedLockModel, TheOwnerLooksInsideItsSection) {
  EXPECT_FALSE(excludes(Rules::looks_outside));
}

TEST(OwnedLockModel, NobodyClaimsForAnotherWorker) {
  EXPECT_FALSE(excludes(Rules::claims_for_other));
}

}  // namespace
}  // namespace sterna::threads
