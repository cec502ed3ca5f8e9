// The inbox of a worker, all interleavings: two producers, one of whom wakes two threads, and a
// consumer that empties the place of the lone thread by a plain store. Negative controls: a
// consumer that empties it though it has found nobody there; two consumers without a lock.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

struct Inbox {
  std::uint8_t lone;   // A thread, 1 to 3.
  std::uint8_t stack;  // Bits of threads; its order does not matter here.
  std::uint8_t ran[4];
  std::uint8_t producer_at[2];
  std::uint8_t left[2];  // What each has to push.
  std::uint8_t consumer_at[2];
  std::uint8_t found[2];
  std::uint8_t rounds[2];
};

struct Rule {
  bool stores_always = false;
  int consumer_count = 1;
};

/// The first thread is the last of producer 0, the third that of producer 1.
std::uint8_t thread_of(const Inbox& inbox, int producer) {
  return static_cast<std::uint8_t>(producer == 0 ? inbox.left[0] : 3);
}

bool step_producer(Inbox& inbox, int which) {
  if (inbox.left[which] == 0) {
    return false;
  }
  const std::uint8_t thread = thread_of(inbox, which);
  if (inbox.producer_at[which] == 0) {
    if (inbox.lone != 0) {  // The compare-and-swap fails.
      inbox.producer_at[which] = 1;
      return true;
    }
    inbox.lone = thread;
  } else {
    inbox.stack |= static_cast<std::uint8_t>(1U << thread);
    inbox.producer_at[which] = 0;
  }
  --inbox.left[which];
  return true;
}

void run_stack(Inbox& inbox) {
  for (std::uint8_t thread = 1; thread < 4; ++thread) {
    inbox.ran[thread] = static_cast<std::uint8_t>(inbox.ran[thread] + (inbox.stack >> thread & 1U));
  }
  inbox.stack = 0;
}

bool step_consumer(Inbox& inbox, int which, const Rule& rule) {
  switch (inbox.consumer_at[which]) {
    case 0:
      if ((inbox.lone == 0 && inbox.stack == 0) || inbox.rounds[which] == 0) {
        return false;
      }
      --inbox.rounds[which];
      inbox.found[which] = inbox.lone;
      inbox.consumer_at[which] = 1;
      return true;
    case 1:
      if (inbox.found[which] != 0 || rule.stores_always) {
        inbox.lone = 0;
      }
      if (inbox.found[which] != 0) {
        ++inbox.ran[inbox.found[which]];
      }
      inbox.found[which] = 0;
      inbox.consumer_at[which] = 2;
      return true;
    default:
      run_stack(inbox);
      inbox.consumer_at[which] = 0;
      return true;
  }
}

bool holds(const Rule& rule) {
  Inbox initial{};
  initial.left[0] = 2;
  initial.left[1] = 1;
  initial.rounds[0] = initial.rounds[1] = 4;  // More than there is to be taken.
  std::size_t states = 0;
  return holds_in_all_interleavings(
      initial, 2 + rule.consumer_count,
      [&](Inbox& inbox, int process) {
        return process < 2 ? step_producer(inbox, process)
                           : step_consumer(inbox, process - 2, rule);
      },
      [](const Inbox& inbox, bool is_final) {
        bool is_bad = false;
        for (int thread = 1; thread < 4; ++thread) {
          is_bad = is_bad || inbox.ran[thread] > 1 || (is_final && inbox.ran[thread] != 1);
        }
        return is_bad;
      },
      states);
}

TEST(InboxModel, EachThreadIsTakenOnce) {
  EXPECT_TRUE(holds({}));
}

TEST(InboxModel, ConsumerThatEmptiesThePlaceUnseenLosesAThread) {
  EXPECT_FALSE(holds({.stores_always = true}));
}

TEST(InboxModel, TwoConsumersWithoutALockDoubleOne) {
  EXPECT_FALSE(holds({.consumer_count = 2}));
}

}  // namespace
}  // namespace sterna::threads
