// The contract of net/driver.h for who sleeps: no wake-up is lost. Instances are in driver_test.cc.
#include <atomic>
#include <ctime>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/processors.h"
#include "net/drivers/contract.h"
#include "progress/completion.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

/// As a poller does: until the bell rings, or the driver wants to be polled. False: neither came.
bool rest(TestNode& node) {
  const std::uint64_t deadline_ns = node.driver->next_deadline_ns();
  if (deadline_ns == kNever) {
    return is_readable(node.driver->fd(), kPatienceMs);
  }
  const std::uint64_t now = now_ns();
  const std::uint64_t left_ns = deadline_ns > now ? deadline_ns - now : 0;
  const timespec left{.tv_sec = static_cast<time_t>(left_ns / 1'000'000'000),
                      .tv_nsec = static_cast<long>(left_ns % 1'000'000'000)};
  pollfd asked{.fd = node.driver->fd(), .events = POLLIN, .revents = 0};
  static_cast<void>(::ppoll(&asked, 1, &left, nullptr));
  return left_ns < std::uint64_t{kPatienceMs} * 1'000'000;
}

/// Where nothing rings a sleep is at least as long as this one, when nothing has come for a while.
constexpr std::uint64_t kNapNs = 1'000'000;

/// A driver as progress/ polls it, whose first packet completes what is awaited.
struct DriverSource final : progress::Source {
  explicit DriverSource(TestNode& of) : node{of} {}
  std::uint32_t poll() noexcept override {
    ++polls;
    const std::uint32_t count = node.poll();
    if (count != 0 && awaited != nullptr) {
      awaited.exchange(nullptr)->complete();
    }
    return count;
  }
  int fd() noexcept override { return node.driver->fd(); }
  bool prepare_sleep() noexcept override { return node.driver->prepare_sleep(); }
  void end_sleep() noexcept override { node.driver->end_sleep(); }
  std::uint64_t next_deadline_ns() noexcept override { return node.driver->next_deadline_ns(); }

  TestNode& node;
  std::uint64_t polls = 0;
  std::atomic<progress::Completion*> awaited{nullptr};
};

TEST_P(DriverContract, SleeperIsWokenByAPacket) {
  if (!can_sleep()) {
    return;
  }
  join();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(sleep(b));
    EXPECT_FALSE(is_readable(b.driver->fd(), 0));
    ASSERT_EQ(send_text(a_to_b(), "wake"), SendState::accepted);
    if (waits_for_a_poll()) {
      ASSERT_TRUE(poll_until({&a}, [&] { return is_readable(b.driver->fd(), 1); }));
    }
    ASSERT_TRUE(rings() ? is_readable(b.driver->fd(), kPatienceMs) : rest(b));
    b.driver->end_sleep();
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == std::size_t(i) + 1; }));
  }
}

TEST_P(DriverContract, SleepIsDeclinedWhilePacketsWait) {
  if (!can_sleep()) {
    return;
  }
  join();
  ASSERT_EQ(send_text(a_to_b(), "first"), SendState::accepted);
  ASSERT_EQ(send_text(a_to_b(), "second"), SendState::accepted);
  ASSERT_TRUE(poll_until({&a}, [&] { return b.poll(1) > 0; }));
  // What was not handed over must not be slept on: either declined, or the bell rings at once.
  if (b.sink.packets.size() < 2 && b.driver->prepare_sleep()) {
    EXPECT_TRUE(waits_for_a_poll() ||
                (rings() ? is_readable(b.driver->fd(), kPatienceMs) : rest(b)));
    b.driver->end_sleep();
  }
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 2; }));
}

TEST_P(DriverContract, SleeperIsWokenByRoom) {
  if (!can_sleep()) {
    return;
  }
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{packet_bytes_max()}}) {
    join();
    const std::string text(bytes, 'x');
    std::size_t sent = 0;
    // The network may take some more a little later; in the end nothing moves.
    for (bool is_still = false; !is_still;) {
      while (send_text(a_to_b(), text) == SendState::accepted) {
        ++sent;
      }
      a.poll();
      if (a.driver->prepare_sleep()) {
        is_still = !is_readable(a.driver->fd(), 20);
        if (!is_still) {
          a.driver->end_sleep();
        }
      }
    }
    ASSERT_TRUE(poll_until({&b}, [&] { return is_over(a, 0); }));
    a.driver->end_sleep();
    EXPECT_TRUE(send_patiently({&a, &b}, a_to_b(), text));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == sent + 1; }));
    b.sink.packets.clear();
    a.sink.packets.clear();
  }
}

/// Two nodes that exchange packets, each in its thread.
struct Exchange {
  std::atomic<int> late{0};
  std::atomic<int> finished{0};
};

/// Sends `count` packets, answers to `count`, sleeps whenever the driver allows; a lost wake-up
/// shows as a sleep that lasts too long.
void exchange_asleep(TestNode& node, Channel& channel, int count, Exchange& exchange) {
  for (int i = 0; i < count; ++i) {
    static_cast<void>(send_patiently({&node}, channel, std::to_string(i)));
    while (node.sink.packets.size() <= static_cast<std::size_t>(i)) {
      if (node.poll() == 0 && node.driver->prepare_sleep()) {
        if (!rest(node)) {
          exchange.late.fetch_add(1);
          exchange.finished.fetch_add(2);
          return;
        }
        node.driver->end_sleep();
      }
    }
  }
  for (exchange.finished.fetch_add(1); exchange.finished.load() < 2;) {
    node.poll();  // What it sent last may still be here.
  }
}

/// Both sleep between any two packets. How many slept too long.
int count_late(TestNode& one, TestNode& other, Channel& there, Channel& back, int count) {
  Exchange exchange;
  std::thread beside{[&] { exchange_asleep(other, back, count, exchange); }};
  exchange_asleep(one, there, count, exchange);
  beside.join();
  return exchange.late.load();
}

TEST_P(DriverContract, NoWakeUpIsLost) {
  if (!can_sleep()) {
    return;
  }
  join();
  EXPECT_EQ(count_late(a, b, a_to_b(), b_to_a(), count_of(3000)), 0);
}

// There a driver may leave fences to who rings.
TEST_P(DriverContract, NoWakeUpIsLostWhereNodesOutnumberProcessors) {
  if (!can_sleep()) {
    return;
  }
  TestJob crowd{usable_processors() + 1};
  TestNode x{choice_of(GetParam()), crowd, 0};
  TestNode y{choice_of(GetParam()), crowd, 1};
  Channel& there = x.to(y, 1);
  Channel& back = y.to(x, 0);
  EXPECT_EQ(count_late(x, y, there, back, count_of(3000)), 0);
}

TEST_P(DriverContract, WhereNothingComesOneSleepsOnInTheEnd) {
  if (!can_sleep()) {
    return;
  }
  join();
  bool lasts = false;
  for (int i = 0; i < 20 && !lasts; ++i) {
    const std::uint64_t begin_ns = now_ns();
    ASSERT_TRUE(sleep(b));
    const std::uint64_t deadline_ns = b.driver->next_deadline_ns();
    lasts = rings() ? deadline_ns == kNever : deadline_ns >= begin_ns + kNapNs;
    if (!lasts) {
      EXPECT_TRUE(rest(b));
    }
    b.driver->end_sleep();
  }
  EXPECT_TRUE(lasts);
}

TEST_P(DriverContract, WhatAThreadOfTheNodeSendsGoesWhileThePollerSleeps) {
  if (!can_sleep()) {
    return;
  }
  join();
  for (std::size_t i = 1; i <= 20; ++i) {
    ASSERT_TRUE(sleep(a));
    ASSERT_EQ(send_text(a_to_b(), "from beside"), SendState::accepted);
    // Whether a provider wants polls for it nobody knows.
    EXPECT_TRUE(!GetParam().starts_with("fabric") || is_readable(a.driver->fd(), 0));
    ASSERT_TRUE(poll_until({&b}, [&] {
      if (is_readable(a.driver->fd(), 0)) {
        a.driver->end_sleep();
        a.poll();
        EXPECT_TRUE(sleep(a));
      }
      return b.sink.packets.size() == i;
    }));
    a.driver->end_sleep();
  }
}

// A processor that does nothing but poll does it more often in that time.
constexpr std::uint64_t kLongNs = 200'000'000;
constexpr std::uint64_t kFewPolls = 50'000;

TEST_P(DriverContract, AWaitInVainBurnsNoProcessor) {
  if (GetParam().find("sim") != std::string::npos) {
    return;  // The only one without any sleep: its time is no machine's.
  }
  join();
  DriverSource source{b};
  const auto progress = std::move(progress::Progress::open({}).value());
  ASSERT_TRUE(progress->add(source));
  progress::Completion never;
  // On a busy machine the time may be over before it has looked for long enough to sleep.
  for (int i = 0; i < 50 && progress->counters().sleeps == 0 && !HasFailure(); ++i) {
    source.polls = 0;
    EXPECT_EQ(never.wait_for(*progress, {.deadline_ns = now_ns() + kLongNs}),
              threads::Wake::timed_out);
    EXPECT_LT(source.polls, kFewPolls);
  }
  EXPECT_NE(progress->counters().sleeps, 0U);
  progress->remove(source);
}

TEST_P(DriverContract, AWaitEndsByAPacketAndByAThreadOfTheNode) {
  if (!can_sleep()) {
    return;
  }
  join();
  DriverSource source{b};
  const auto progress = std::move(progress::Progress::open({}).value());
  ASSERT_TRUE(progress->add(source));
  const auto until_it_has_slept = [&](std::uint64_t sleeps) {
    while (progress->counters().sleeps < sleeps) {
      ::usleep(1000);
    }
  };
  for (const bool is_packet : {true, false}) {
    progress::Completion completion;
    source.awaited = is_packet ? &completion : nullptr;
    const std::uint64_t sleeps = progress->counters().sleeps;
    std::thread beside{[&] {
      until_it_has_slept(sleeps + 1);
      if (!is_packet) {
        completion.complete();
        return;
      }
      EXPECT_TRUE(send_patiently({&a}, a_to_b(), "at last"));
      EXPECT_TRUE(poll_until({&a}, [&] { return source.awaited.load() == nullptr; }));
    }};
    EXPECT_EQ(completion.wait_for(*progress, {.deadline_ns = now_ns() + kPatienceNs}),
              threads::Wake::signalled);
    beside.join();
  }
  EXPECT_EQ(b.sink.packets.size(), 1U);
  progress->remove(source);
}

}  // namespace
}  // namespace sterna::net
