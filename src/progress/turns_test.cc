// Who has the poller's turn, beside others that wait: how long it looks, and whom it wakes.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>

#include "base/clock.h"
#include "progress/completion.h"
#include "progress/progress.h"

namespace sterna::progress {
namespace {

class ProgressTurns : public testing::Test {
 protected:
  std::unique_ptr<Progress> progress = std::move(Progress::open().value());
};

/// What is waited for comes from somebody who sleeps until he is woken.
class AbsentSource final : public Source {
 public:
  std::uint32_t poll() noexcept override { return 0; }
  bool wake_absent(bool /*is_long*/) noexcept override {
    if (!completion.done()) {
      completion.complete();
    }
    return true;
  }
  Completion completion;
};

TEST_F(ProgressTurns, AKernelThreadThatWaitsInVainWakesWhoIsAbsent) {
  AbsentSource absent;
  ASSERT_TRUE(progress->add(absent));
  const std::uint64_t deadline_ns = now_ns() + 100'000'000'000;
  EXPECT_EQ(absent.completion.wait_for(*progress, {.deadline_ns = deadline_ns}),
            threads::Wake::signalled);
  progress->remove(absent);
}

/// Something comes between a round and the next one.
class SightedSource final : public Source {
 public:
  std::uint32_t poll() noexcept override {
    ++polls;
    return std::exchange(has_event, false) ? 1 : 0;
  }
  bool sight(std::uint32_t looks) noexcept override {
    ++sights;
    has_event = has_event || (looks != 0 && comes_now);
    return has_event;
  }
  int polls = 0, sights = 0;
  bool has_event = true;
  bool comes_now = false;
};

TEST_F(ProgressTurns, WhoHasNothingElseToDoLooksWhereTheLastEventCameFrom) {
  SightedSource sighted;
  ASSERT_TRUE(progress->add(sighted));
  EXPECT_EQ(progress->poll(threads::SchedulingPoint::idle), 1U);
  EXPECT_EQ(sighted.sights, 0) << "it had something";
  EXPECT_EQ(progress->poll(threads::SchedulingPoint::enter), 0U);
  EXPECT_EQ(sighted.sights, 0) << "who asks has something to do";
  EXPECT_EQ(progress->poll(threads::SchedulingPoint::idle), 0U);
  EXPECT_EQ(sighted.sights, 1);
  EXPECT_EQ(sighted.polls, 3);
  sighted.comes_now = true;
  const std::uint64_t before = progress->counters().events;
  EXPECT_EQ(progress->poll(threads::SchedulingPoint::idle), 1U);
  EXPECT_EQ(progress->poll_and_look(), 1U);
  EXPECT_EQ(progress->counters().events, before + 2);
  progress->remove(sighted);
}

TEST_F(ProgressTurns, WhoLooksLastWaitsForTheTurn) {
  SightedSource sighted;
  ASSERT_TRUE(progress->add(sighted));
  std::atomic<std::uint32_t> found{0};
  std::atomic<bool> has_ended{false};
  std::thread last;
  {
    const Progress::Turn turn{*progress};
    ASSERT_TRUE(turn.is_taken());
    EXPECT_EQ(progress->poll(), 0U) << "declined";
    last = std::thread{[&] {
      found = progress->poll_in_turn();
      has_ended = true;
    }};
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    EXPECT_FALSE(has_ended);
  }
  last.join();
  EXPECT_EQ(found, 1U);
  progress->remove(sighted);
}

/// Something comes for one that sleeps, and is taken by this thread's poll.
class AnsweredSource final : public Source {
 public:
  std::uint32_t poll() noexcept override { return has_event.exchange(false) ? 1 : 0; }
  bool wake_absent(bool /*is_long*/) noexcept override {
    if (std::this_thread::get_id() == test_thread) {
      ++times_woken;
    }
    return true;
  }
  std::atomic<bool> has_event{false};
  int times_woken = 0;  // By the test's thread.
  const std::thread::id test_thread = std::this_thread::get_id();
};

// The answer to it is part of an exchange, whose next part the peer gives only once it is awake.
TEST_F(ProgressTurns, WhoAnswersForASleeperWakesWhoIsAbsent) {
  AnsweredSource answered;
  Completion completion;
  ASSERT_TRUE(progress->add(answered));
  answered.has_event.store(true);
  EXPECT_EQ(progress->poll(), 1U);
  EXPECT_EQ(answered.times_woken, 0) << "nobody sleeps";
  std::thread sleeper{[&] { completion.wait(*progress); }};
  // Until it sleeps it takes some of the events itself.
  const std::uint64_t limit_ns = now_ns() + 100'000'000'000;
  while (answered.times_woken == 0 && now_ns() < limit_ns) {
    std::this_thread::yield();
    answered.has_event.store(false);
    EXPECT_EQ(progress->poll(), 0U);
    EXPECT_EQ(answered.times_woken, 0) << "nothing came";
    answered.has_event.store(true);
    (void)progress->poll();
  }
  EXPECT_EQ(answered.times_woken, 1);
  completion.complete();
  sleeper.join();
  progress->remove(answered);
}

// Who waits beside one that sleeps for the network, and polled in vain, asks for its own answer.
TEST_F(ProgressTurns, WhoSleepsBesideASleeperWakesWhoIsAbsent) {
  AnsweredSource absent;
  ASSERT_TRUE(progress->add(absent));
  Completion never;
  std::thread sleeper{[&] { never.wait(*progress); }};
  const std::atomic<std::uint32_t> word{0};
  const std::uint64_t limit_ns = now_ns() + 100'000'000'000;
  do {  // Until it finds the other one asleep.
    std::this_thread::yield();
    absent.times_woken = 0;
  } while (progress->sleep(now_ns() + 1'000'000, word, 0) && now_ns() < limit_ns);
  EXPECT_EQ(absent.times_woken, 1);
  never.complete();
  sleeper.join();
  progress->remove(absent);
}

/// Else who waits for the descriptor would never sleep again.
TEST_F(ProgressTurns, WhoHearsTakesARingThatNobodySleptFor) {
  const auto is_ringing = [&] {
    pollfd waits{.fd = progress->descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&waits, 1, 0) == 1;
  };
  progress->wake();
  progress->wake();
  EXPECT_TRUE(is_ringing());
  EXPECT_TRUE(progress->hear());
  EXPECT_FALSE(is_ringing());
  progress->wake();
  EXPECT_TRUE(is_ringing());
}

TEST_F(ProgressTurns, TheRingOfASleeperIsLeftToIt) {
  const std::atomic<std::uint32_t> word{1};
  std::atomic<bool> has_slept{false};
  std::thread sleeper{[&] { has_slept = progress->sleep(kNever, word, 1); }};
  while (progress->counters().sleeps == 0) {
    std::this_thread::yield();
  }
  progress->wake();
  for (int i = 0; i < 100; ++i) {
    (void)progress->hear();
  }
  sleeper.join();
  EXPECT_TRUE(has_slept);
}

}  // namespace
}  // namespace sterna::progress
