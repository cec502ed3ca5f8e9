// border.h, all interleavings, a step an access: a thread that crosses the border to and fro, with
// a store buffer (x86-TSO), and a claimer that takes its worker over: never have both the worker,
// and neither waits for ever. Negative controls: without the process barrier; an entry that does
// not look whether it was taken after it has found no claim; a claimer that announces nothing.
//
// And a handler that preempts: it may come between any two steps of the thread, on its kernel
// thread, and the thread then goes on with another worker. Whoever enters has the worker that it
// thinks it has, and marks no other one. Negative control: an entry that reads its worker before it
// says that it is in the runtime.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kEmpty = 9;
enum class Rules : std::uint8_t { real, without_barrier, one_look, unannounced };
enum At : std::uint8_t { kUser, kLookTaken, kStore, kLookClaim, kLookAgain, kWait, kInside, kBack };

struct State {
  std::uint8_t is_user = 1;  // As others see it.
  std::uint8_t buffered = kEmpty;
  std::uint8_t claim = 0;
  std::uint8_t is_taken = 0;
  std::uint8_t thread_at = kUser;
  std::uint8_t rounds_left = 2;
  std::uint8_t claimer_at = 0;
  std::uint8_t saw_user = 0;
  std::uint8_t claimer_has = 0;  // The worker; its spare carrier runs others with it.
  std::uint8_t claims_left = 2;
};

void flush(State& s) {
  s.is_user = s.buffered != kEmpty ? s.buffered : s.is_user;
  s.buffered = kEmpty;
}

void store_user(State& s, std::uint8_t value) {
  flush(s);  // One place: the older store first.
  s.buffered = value;
}

/// enter_runtime(), enter_claimed(), come_back(), leave_runtime().
bool step_thread(State& s, Rules rules) {
  std::uint8_t& at = s.thread_at;
  switch (at) {
    case kUser:
      if (s.rounds_left == 0) {
        return false;
      }
      --s.rounds_left;
      at = kLookTaken;
      return true;
    case kLookTaken:
      at = s.is_taken != 0 ? kWait : kStore;
      return true;
    case kStore:
      store_user(s, 0);
      at = kLookClaim;
      return true;
    case kLookClaim:
      at = s.claim != 0 ? kWait : rules == Rules::one_look ? kInside : kLookAgain;
      return true;
    case kLookAgain:
      at = s.is_taken != 0 ? kWait : kInside;
      return true;
    case kWait:
      if (s.is_taken != 0) {
        s.is_taken = 0;  // Into a queue, by a locked instruction.
        flush(s);
        at = kBack;
        return true;
      }
      at = s.claim == 0 ? kInside : kWait;
      return s.claim == 0;
    case kInside:
      store_user(s, 1);
      at = kUser;
      return true;
    default:  // kBack: who has the worker now comes to it, and gives it back.
      if (s.claimer_has == 0 || s.claimer_at != 0) {
        return false;
      }
      s.claimer_has = 0;
      at = kInside;
      return true;
  }
}

/// try_take_over(). It takes from who has a worker only: the ticker looks at workers that compute.
bool step_claimer(State& s, Rules rules) {
  std::uint8_t& at = s.claimer_at;
  switch (at) {
    case 0:
      if (s.claims_left == 0 || s.claimer_has != 0) {
        return false;
      }
      --s.claims_left;
      s.claim = rules == Rules::unannounced ? 0 : 1;
      at = 1;
      return true;
    case 1:
      if (rules != Rules::without_barrier) {
        flush(s);
      }
      at = 2;
      return true;
    case 2:
      s.saw_user = s.is_user;
      at = s.saw_user != 0 ? 3 : 5;
      return true;
    case 3:
      s.is_user = 0;
      at = 4;
      return true;
    case 4:
      s.is_taken = 1;
      s.claimer_has = 1;
      at = 5;
      return true;
    default:
      s.claim = 0;
      at = 0;
      return true;
  }
}

bool step_buffer(State& s) {
  const bool is_full = s.buffered != kEmpty;
  flush(s);
  return is_full;
}

bool holds(Rules rules) {
  std::size_t count = 0;
  const bool right = holds_in_all_interleavings(
      State{}, 3,
      [&](State& s, int who) {
        return who == 0   ? step_thread(s, rules)
               : who == 1 ? step_claimer(s, rules)
                          : step_buffer(s);
      },
      [](const State& s, bool is_final) {
        const bool both = s.thread_at == kInside && s.claimer_has != 0;
        return both || (is_final && (s.thread_at != kUser || s.claim != 0));
      },
      count);
  EXPECT_GT(count, 20U);
  return right;
}

TEST(BorderModel, AWorkerIsItsThreadsOrItsClaimers) {
  EXPECT_TRUE(holds(Rules::real));
}

TEST(BorderModel, WithoutTheBarrierBothHaveIt) {
  EXPECT_FALSE(holds(Rules::without_barrier));
}

TEST(BorderModel, AClaimThatIsOverAlreadyHasToBeSeenAsWell) {
  EXPECT_FALSE(holds(Rules::one_look));
}

TEST(BorderModel, AClaimHasToBeAnnounced) {
  EXPECT_FALSE(holds(Rules::unannounced));
}

// --- The handler --------------------------------------------------------------------------------

/// The thread begins on worker 0, in its program's code; another one runs on what it has lost.
struct Preempted {
  std::uint8_t in_user = 1;
  std::uint8_t worker = 0;  // Of the thread.
  std::uint8_t is_user[2] = {1, 1};
  std::uint8_t its_worker = kEmpty;  // As the entry has read it.
  std::uint8_t at = 0;
  std::uint8_t crossings_left = 2;
  std::uint8_t handler_at = 0;  // Not 0: it runs, the thread stands still.
  std::uint8_t signals_left = 2;
  std::uint8_t is_broken = 0;
};

/// In: 0-3; out: 4-6. Whoever reads its worker early does so before step 1.
bool step_code(Preempted& s, bool reads_early) {
  if (s.handler_at != 0) {
    return false;
  }
  switch (s.at) {
    case 0:
      if (s.crossings_left == 0) {
        return false;
      }
      --s.crossings_left;
      s.its_worker = reads_early ? s.worker : kEmpty;
      s.at = 1;
      return true;
    case 1:
      s.in_user = 0;
      s.at = 2;
      return true;
    case 2:
      s.its_worker = reads_early ? s.its_worker : s.worker;
      s.at = 3;
      return true;
    case 3:
      // Another one's, or not marked as in the code of a program: it was changed under us.
      s.is_broken |= s.its_worker != s.worker || s.is_user[s.its_worker] == 0 ? 1 : 0;
      s.is_user[s.its_worker] = 0;
      s.at = 4;
      return true;
    case 4:
      s.its_worker = s.worker;
      s.at = 5;
      return true;
    case 5:
      s.is_user[s.its_worker] = 1;
      s.at = 6;
      return true;
    default:
      s.in_user = 1;
      s.at = 0;
      return true;
  }
}

/// handle(): enters as any code, gives the worker away, goes on with the other one.
bool step_handler(Preempted& s) {
  switch (s.handler_at) {
    case 0:
      if (s.signals_left == 0) {
        return false;
      }
      --s.signals_left;
      s.handler_at = s.in_user != 0 ? 1 : 0;  // Else it declines.
      return true;
    case 1:
      s.in_user = 0;
      s.handler_at = 2;
      return true;
    case 2:
      s.is_broken |= s.is_user[s.worker] == 0 ? 1 : 0;
      s.worker = 1 - s.worker;  // Who was there before gave way to us, and the next one runs here.
      s.handler_at = 3;
      return true;
    case 3:
      s.is_user[s.worker] = 1;
      s.handler_at = 4;
      return true;
    default:
      s.in_user = 1;
      s.handler_at = 0;
      return true;
  }
}

bool handler_is_harmless(bool reads_early) {
  std::size_t count = 0;
  const bool right = holds_in_all_interleavings(
      Preempted{}, 2,
      [&](Preempted& s, int who) { return who == 0 ? step_code(s, reads_early) : step_handler(s); },
      [](const Preempted& s, bool is_final) {
        return s.is_broken != 0 || (is_final && s.in_user == 0);
      },
      count);
  EXPECT_GT(count, 20U);
  return right;
}

TEST(BorderModel, WhoIsPreemptedEntersWithTheWorkerThatItHasThen) {
  EXPECT_TRUE(handler_is_harmless(false));
}

TEST(BorderModel, AWorkerThatWasReadBeforeTheEntryIsAnothers) {
  EXPECT_FALSE(handler_is_harmless(true));
}

}  // namespace
}  // namespace sterna::threads
