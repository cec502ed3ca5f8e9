// The contract of net/driver.h for who sleeps: no wake-up is lost. Instances are in driver_test.cc.
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/processors.h"
#include "net/drivers/contract.h"

namespace sterna::net {
namespace {

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
    ASSERT_TRUE(is_readable(b.driver->fd(), kPatienceMs));
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
    EXPECT_TRUE(waits_for_a_poll() || is_readable(b.driver->fd(), kPatienceMs));
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
    ASSERT_TRUE(poll_until({&b}, [&] { return is_readable(a.driver->fd(), 0); }));
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

/// As a poller does: until the bell rings, or the driver wants to be polled. False: neither came.
bool rest(TestNode& node) {
  const std::uint64_t deadline_ns = node.driver->next_deadline_ns();
  if (deadline_ns == kNever) {
    return is_readable(node.driver->fd(), kPatienceMs);
  }
  const std::uint64_t now = now_ns();
  const std::uint64_t left_ns = deadline_ns > now ? deadline_ns - now : 0;
  static_cast<void>(is_readable(node.driver->fd(), static_cast<int>(left_ns / 1'000'000) + 1));
  return left_ns < std::uint64_t{kPatienceMs} * 1'000'000;
}

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
    ASSERT_TRUE(sleep(b));
    lasts = b.driver->next_deadline_ns() == kNever;
    if (!lasts) {
      EXPECT_TRUE(rest(b));
    }
    b.driver->end_sleep();
  }
  EXPECT_TRUE(lasts);
}

}  // namespace
}  // namespace sterna::net
