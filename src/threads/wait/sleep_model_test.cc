// Falling asleep, all interleavings. First a worker whose thread is bound, with a waker and a thief
// that moves threads from the inbox to the queue. Then a worker that wants to sleep in the hook
// while another kernel thread sleeps there and may take the wake-up that was meant for it. Then a
// searcher, whom a waker does not wake, and who stops to search. Negative controls: a last look at
// the inbox only; a hook that does not look at the sleeper's word; a waker whose look for searchers
// may pass its push (what x86-64 never does after a locked instruction, and AArch64 may).
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

// --- The last look, and the thief ---------------------------------------------------------------

struct Team {
  std::uint8_t inbox;
  std::uint8_t queue;
  std::uint8_t ran;
  std::uint8_t sleep_word;
  std::uint8_t lock;  // 1: the thief's.
  std::uint8_t worker_at;
  std::uint8_t waker_at;
  std::uint8_t to_wake;
  std::uint8_t thief_at;
  std::uint8_t thefts_left;
};

enum WorkerAt : std::uint8_t { kSearch, kPublish, kLastLook, kFallAsleep, kAsleep };

bool step_worker(Team& team, bool looks_at_queue) {
  switch (team.worker_at) {
    case kSearch:
      if (team.inbox + team.queue == 0) {
        team.worker_at = kPublish;
        return true;
      }
      if (team.lock != 0) {
        return false;
      }
      team.ran += team.inbox + team.queue;
      team.inbox = team.queue = 0;
      return true;
    case kPublish:
      team.sleep_word = 1;
      team.worker_at = kLastLook;
      return true;
    case kLastLook: {
      if (looks_at_queue && team.lock != 0) {
        return false;
      }
      const bool stays = team.inbox != 0 || (looks_at_queue && team.queue != 0);
      team.sleep_word = stays ? 0 : team.sleep_word;
      team.worker_at = stays ? kSearch : kFallAsleep;
      return true;
    }
    case kFallAsleep:
      team.worker_at = team.sleep_word == 0 ? kSearch : kAsleep;
      return true;
    default:
      if (team.sleep_word != 0) {
        return false;
      }
      team.worker_at = kSearch;
      return true;
  }
}

bool step_waker(Team& team) {
  if (team.waker_at == 0) {
    if (team.to_wake == 0) {
      return false;
    }
    --team.to_wake;
    ++team.inbox;
    team.waker_at = 1;
  } else {
    team.sleep_word = 0;  // The exchange, and the futex.
    team.waker_at = 0;
  }
  return true;
}

bool step_thief(Team& team) {
  switch (team.thief_at) {
    case 0:
      if (team.thefts_left == 0 || team.inbox == 0) {
        return false;
      }
      team.lock = 1;
      team.thief_at = 1;
      return true;
    case 1:
      team.queue += team.inbox;
      team.inbox = 0;
      team.thief_at = 2;
      return true;
    default:
      team.lock = 0;
      --team.thefts_left;
      team.thief_at = 0;
      return true;
  }
}

bool explore_look(bool looks_at_queue) {
  Team initial{};
  initial.to_wake = 3;
  initial.thefts_left = 3;
  std::size_t states = 0;
  return holds_in_all_interleavings(
      initial, 3,
      [&](Team& team, int process) {
        return process == 0 ? step_worker(team, looks_at_queue)
                            : (process == 1 ? step_waker(team) : step_thief(team));
      },
      [](const Team& team, bool is_final) { return is_final && team.ran != 3; }, states);
}

TEST(SleepModel, WorkerDoesNotSleepOnAThreadThatAThiefLeftInItsQueue) {
  EXPECT_TRUE(explore_look(true));
}

TEST(SleepModel, LookAtTheInboxOnlyIsFoundToSleepOnAThread) {
  EXPECT_FALSE(explore_look(false));
}

// --- One wake-up of the hook, two that may take it ----------------------------------------------

struct Hook {
  std::uint8_t event;  // The eventfd.
  std::uint8_t has_sleeper;
  std::uint8_t word[2];  // 1: in the hook, not woken.
  std::uint8_t work[2];  // Given by the waker of that sleeper.
  std::uint8_t at[2];
  std::uint8_t waker_at[2];
};

enum At : std::uint8_t { kEnter, kBecome, kCheck, kWait, kLeave, kBeside, kDone };

/// Waits once for its work, and is done.
bool step_sleeper(Hook& hook, int me, bool looks_at_word) {
  std::uint8_t& at = hook.at[me];
  switch (at) {
    case kEnter:
      if (hook.work[me] != 0) {
        at = kDone;
      } else {
        hook.word[me] = 1;
        at = kBecome;
      }
      return true;
    case kBecome:
      if (hook.work[me] != 0 && hook.word[me] == 1) {
        hook.word[me] = 0;  // The last look finds the work.
        at = kDone;
        return true;
      }
      at = hook.has_sleeper != 0 ? kBeside : kCheck;
      hook.has_sleeper = 1;
      return true;
    case kCheck:
      at = looks_at_word && hook.word[me] == 0 ? kLeave : kWait;
      return true;
    case kWait:
      if (hook.event == 0) {
        return false;
      }
      hook.event = 0;
      at = kLeave;
      return true;
    case kLeave:
      hook.has_sleeper = 0;
      hook.word[me] = 0;
      at = kEnter;
      return true;
    case kBeside:  // On the futex of its word, for a while at most.
      hook.word[me] = 0;
      at = kEnter;
      return true;
    default:
      return false;
  }
}

bool step_hook_waker(Hook& hook, int whom) {
  std::uint8_t& at = hook.waker_at[whom];
  switch (at) {
    case 0:
      hook.work[whom] = 1;
      at = 1;
      return true;
    case 1:
      at = hook.word[whom] == 1 ? 2 : 3;
      hook.word[whom] = 0;
      return true;
    case 2:
      hook.event = 1;
      at = 3;
      return true;
    default:
      return false;
  }
}

bool explore_hook(bool looks_at_word) {
  const Hook initial{};
  std::size_t states = 0;
  return holds_in_all_interleavings(
      initial, 4,
      [&](Hook& hook, int process) {
        return process < 2 ? step_sleeper(hook, process, looks_at_word)
                           : step_hook_waker(hook, process - 2);
      },
      [](const Hook& hook, bool is_final) {
        return is_final && (hook.at[0] != kDone || hook.at[1] != kDone);
      },
      states);
}

TEST(SleepModel, WakeUpThatAnotherSleeperOfTheHookTakesIsNotLost) {
  EXPECT_TRUE(explore_hook(true));
}

TEST(SleepModel, HookThatDoesNotLookAtTheWordIsFoundToLoseAWakeUp) {
  EXPECT_FALSE(explore_hook(false));
}

// --- A searcher is not woken: it looks once more ------------------------------------------------

struct Search {
  std::uint8_t on_its_way;  // The push of the waker, in its store buffer.
  std::uint8_t work;
  std::uint8_t searchers;
  std::uint8_t sleep_word;
  std::uint8_t searcher_at;
  std::uint8_t waker_at;
};

enum SearcherAt : std::uint8_t { kLooks, kIsCountedNoMore, kSays, kLooksOnce, kSleeps, kHasIt };

bool step_searcher(Search& search) {
  switch (search.searcher_at) {
    case kLooks:
    case kLooksOnce:
      search.searcher_at = search.work != 0 ? kHasIt : search.searcher_at + 1;
      return true;
    case kIsCountedNoMore:
      search.searchers = 0;
      search.searcher_at = kSays;
      return true;
    case kSays:
      search.sleep_word = 1;
      search.searcher_at = kLooksOnce;
      return true;
    case kSleeps:
      if (search.sleep_word != 0) {
        return false;
      }
      search.searcher_at = kLooksOnce;
      return true;
    default:
      return false;
  }
}

bool step_search_waker(Search& search, bool is_ordered) {
  if (search.waker_at == 0) {
    search.on_its_way = 1;
    search.waker_at = 1;
  } else if (search.waker_at == 1 && (!is_ordered || search.on_its_way == 0)) {
    search.waker_at = search.searchers != 0 ? 3 : 2;
  } else if (search.waker_at == 2 && search.on_its_way == 0) {
    search.sleep_word = 0;
    search.waker_at = 3;
  } else {
    return false;
  }
  return true;
}

bool arrives(Search& search) {
  const bool is_there = search.on_its_way != 0;
  search.work |= search.on_its_way;
  search.on_its_way = 0;
  return is_there;
}

bool explore_search(bool is_ordered) {
  Search initial{};
  initial.searchers = 1;
  std::size_t states = 0;
  return holds_in_all_interleavings(
      initial, 3,
      [&](Search& search, int process) {
        return process == 0
                   ? step_searcher(search)
                   : (process == 1 ? step_search_waker(search, is_ordered) : arrives(search));
      },
      [](const Search& search, bool is_final) { return is_final && search.searcher_at != kHasIt; },
      states);
}

TEST(SleepModel, WorkForWhichASearcherIsNotWokenIsFoundByIt) {
  EXPECT_TRUE(explore_search(true));
}

TEST(SleepModel, LookForSearchersThatPassesThePushIsFoundToLoseAWakeUp) {
  EXPECT_FALSE(explore_search(false));
}

}  // namespace
}  // namespace sterna::threads
