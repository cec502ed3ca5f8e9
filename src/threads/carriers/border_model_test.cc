// border.h, all interleavings, a step an access: a thread that crosses the border to and fro, with
// a store buffer (x86-TSO), inside gives way and goes on with this worker or with another one, or
// lets the worker go itself, as before a blocking call; and a claimer that takes its worker over.
// Who finds a claim waits, or goes back to the code of its program and tries again.
// Never have both the worker, the claimer takes no worker that the thread does not have, and
// neither waits for ever. Negative controls: without the process barrier; an entry that does not
// look whether it was taken after it has found no claim; a claimer that announces nothing; that
// does not hold the lock of the worker while it looks; a worker that says it runs a thread which it
// has lost.
//
// And a handler that preempts: it may come between any two steps of the thread, on its kernel
// thread, and the thread then goes on with another worker. Whoever enters looks at the claim of the
// worker that it has. Negative control: an entry that reads its worker before it says that it is in
// the runtime.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

constexpr std::uint8_t kEmpty = 9;
enum class Rules : std::uint8_t {
  real,
  without_barrier,
  one_look,
  unannounced,
  unlocked,
  late,
};
enum At : std::uint8_t { kUser, kStore, kLookClaim, kLookTaken, kWait, kInside, kQueued };

/// Worker 0 is the one that is claimed.
struct State {
  std::uint8_t in_user = 1;  // As others see it.
  std::uint8_t buffered = kEmpty;
  std::uint8_t claim = 0;
  std::uint8_t is_taken = 0;
  std::uint8_t home = 0;        // Thread::worker.
  std::uint8_t has = 0;         // The worker that the thread has in truth; kEmpty: none.
  std::uint8_t lock = 0;        // Of worker 0, held from outside.
  std::uint8_t is_current = 1;  // Worker 0 says that it runs the thread.
  std::uint8_t thread_at = kUser;
  std::uint8_t rounds_left = 3;
  std::uint8_t moves_left = 2;
  std::uint8_t claimer_at = 0;
  std::uint8_t claims_left = 2;
  std::uint8_t is_broken = 0;
};

void flush(State& s) {
  s.in_user = s.buffered != kEmpty ? s.buffered : s.in_user;
  s.buffered = kEmpty;
}

void store_user(State& s, std::uint8_t value) {
  flush(s);  // One place: the older store first.
  s.buffered = value;
}

/// enter_runtime(), enter_claimed(), come_back(), leave_runtime().
bool step_thread(State& s, Rules rules) {
  std::uint8_t& at = s.thread_at;
  const std::uint8_t claim = s.home == 0 ? s.claim : 0;
  switch (at) {
    case kUser:
      if (s.rounds_left == 0) {
        return false;
      }
      --s.rounds_left;
      at = kStore;
      return true;
    case kStore:
      store_user(s, 0);
      at = kLookClaim;
      return true;
    case kLookClaim:
      at = claim != 0 ? kWait : rules == Rules::one_look ? kInside : kLookTaken;
      return true;
    case kLookTaken:
      at = s.is_taken != 0 ? kWait : kInside;
      return true;
    case kWait:
      if (s.is_taken != 0) {
        s.is_taken = 0;  // Into a queue, by a locked instruction.
        flush(s);
        at = kQueued;
        return true;
      }
      at = claim == 0 ? kInside : kWait;
      return claim == 0;
    case kInside:
      store_user(s, 1);
      at = kUser;
      return true;
    default:
      return false;
  }
}

/// The worker goes on without the thread: let_go(). Under the lock of the worker.
void let_go(State& s, Rules rules) {
  s.is_taken = 1;
  s.has = kEmpty;
  s.is_current = rules == Rules::late ? s.is_current : 0;
}

/// try_enter_from_user() instead: it does not wait, but goes back, and tries again.
bool step_back(State& s) {
  if (s.thread_at != kWait) {
    return false;
  }
  store_user(s, 1);
  s.thread_at = kUser;
  return true;
}

/// What workers do, each under the lock of worker 0. `who`: the thread gives way there; worker 0
/// picks it; worker 1 does; the thread lets worker 0 go, for a call that blocks.
bool step_workers(State& s, int who, Rules rules) {
  if (s.lock != 0) {
    return false;
  }
  if (who == 1 || who == 2) {
    if (s.thread_at != kQueued) {
      return false;
    }
    s.has = s.home = static_cast<std::uint8_t>(who - 1);
    s.is_current = who == 1 ? 1 : s.is_current;
    s.thread_at = kInside;
    return true;
  }
  if (s.thread_at != kInside || s.moves_left == 0 || (who == 3 && s.has != 0)) {
    return false;
  }
  --s.moves_left;
  flush(s);  // The lock of the queue is given back.
  if (who == 0) {
    s.is_current = s.has == 0 ? 0 : s.is_current;
    s.has = kEmpty;
    s.thread_at = kQueued;
  } else {
    let_go(s, rules);
    store_user(s, 1);
    s.thread_at = kUser;
  }
  return true;
}

/// try_take_over().
bool step_claimer(State& s, Rules rules) {
  enum : std::uint8_t { kBegin, kLock, kBarrier, kCurrent, kInUser, kTake, kUnlock };
  std::uint8_t& at = s.claimer_at;
  const auto go_on = [&](bool is_so) { at = is_so ? at + 1 : kUnlock; };
  switch (at) {
    case kBegin:
      if (s.claims_left == 0) {
        return false;
      }
      --s.claims_left;
      s.claim = rules == Rules::unannounced ? 0 : 1;
      break;
    case kLock:
      s.lock = rules == Rules::unlocked ? 0 : 1;
      break;
    case kBarrier:
      if (rules != Rules::without_barrier) {
        flush(s);
      }
      break;
    case kCurrent:
      go_on(s.is_current != 0);
      return true;
    case kInUser:
      go_on(s.in_user != 0);
      return true;
    case kTake:
      s.is_broken |= s.has != 0 || s.thread_at == kInside ? 1 : 0;
      let_go(s, rules);
      break;
    case kUnlock:
      s.lock = 0;
      break;
    default:
      s.claim = 0;
      at = kBegin;
      return true;
  }
  ++at;
  return true;
}

bool step_buffer(State& s) {
  const bool is_full = s.buffered != kEmpty;
  flush(s);
  return is_full;
}

bool holds(Rules rules) {
  std::size_t count = 0;
  const bool right = holds_in_all_interleavings(
      State{}, 8,
      [&](State& s, int who) {
        return who == 0   ? step_thread(s, rules)
               : who == 1 ? step_claimer(s, rules)
               : who == 2 ? step_buffer(s)
               : who == 7 ? step_back(s)
                          : step_workers(s, who - 3, rules);
      },
      [](const State& s, bool is_final) {
        const bool both = s.thread_at == kInside && s.has == kEmpty;
        return s.is_broken != 0 || both || (is_final && (s.thread_at != kUser || s.claim != 0));
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

TEST(BorderModel, WhoLooksHoldsTheLockOfTheWorker) {
  EXPECT_FALSE(holds(Rules::unlocked));
}

TEST(BorderModel, AWorkerSaysAtOnceThatItHasLostItsThread) {
  EXPECT_FALSE(holds(Rules::late));
}

// --- The handler --------------------------------------------------------------------------------

/// The thread begins on worker 0, in its program's code; another one runs on what it has lost.
struct Preempted {
  std::uint8_t in_user = 1;
  std::uint8_t worker = 0;           // Of the thread.
  std::uint8_t its_worker = kEmpty;  // As the entry has read it.
  std::uint8_t at = 0;
  std::uint8_t crossings_left = 2;
  std::uint8_t handler_at = 0;  // Not 0: it runs, the thread stands still.
  std::uint8_t signals_left = 2;
  std::uint8_t is_broken = 0;
};

/// In: 0-3; out: 4. Whoever reads its worker early does so before step 1.
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
      break;
    case 1:
      s.in_user = 0;
      break;
    case 2:
      s.its_worker = reads_early ? s.its_worker : s.worker;
      break;
    case 3:  // Looks at the claim of that worker, and uses it.
      s.is_broken |= s.its_worker != s.worker ? 1 : 0;
      break;
    default:
      s.in_user = 1;
      s.at = 0;
      return true;
  }
  ++s.at;
  return true;
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
      s.worker = 1 - s.worker;  // Who was there before gave way to us, and the next one runs here.
      s.handler_at = 3;
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
