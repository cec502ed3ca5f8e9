// For the tests of the contract of net/driver.h: two nodes of a job, as objects of this process,
// with the driver under test.
#pragma once

#include <string>

#include "base/clock.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {

class DriverContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!a.absent.empty()) {
      // Says which: libfabric, or a provider of it, is not on this machine.
      GTEST_SKIP() << a.absent;
    }
  }
  std::uint32_t packet_bytes_max() const { return a.driver->packet_bytes_to(1); }
  Channel& a_to_b() { return a.to(b, 1); }
  Channel& b_to_a() { return b.to(a, 0); }
  /// Both ways work: connections stand.
  void join() {
    ASSERT_TRUE(send_patiently({&a, &b}, a_to_b(), "hello"));
    ASSERT_TRUE(send_patiently({&a, &b}, b_to_a(), "hello"));
    ASSERT_TRUE(poll_until(
        {&a, &b}, [&] { return a.sink.packets.size() == 1 && b.sink.packets.size() == 1; }));
    a.sink.packets.clear();
    b.sink.packets.clear();
  }
  /// How many packets a test sends. The provider sockets moves them in kernel threads of its own,
  /// which wait for a processor while both sides poll.
  int count_of(int count) const {
    return GetParam().find("sockets") == std::string::npos ? count : count / 20;
  }
  /// A driver without a descriptor never lets anybody sleep: that is all of its contract.
  bool can_sleep() {
    if (a.driver->fd() >= 0) {
      return true;
    }
    EXPECT_FALSE(a.driver->prepare_sleep());
    return false;
  }
  /// Nothing rings for a packet where the network cannot: the sleeper looks again at its deadline.
  bool rings() const { return GetParam().find("fabric@shm") == std::string::npos; }
  /// Whether a sleep of `node`, which has begun, is over by now: something rang, or the deadline.
  bool is_over(TestNode& node, int timeout_ms) {
    if (!rings() && node.driver->next_deadline_ns() <= now_ns()) {
      return true;
    }
    return is_readable(node.driver->fd(), rings() ? timeout_ms : 0);
  }
  /// A packet leaves when its time has come and its sender polls.
  bool waits_for_a_poll() const { return GetParam().find("delay") != std::string::npos; }
  bool sleep(TestNode& node) {
    return poll_until({&node}, [&] { return node.driver->prepare_sleep(); });
  }

  TestJob job{2};  // Not more than processors, mostly: their sleeps are those with a fence for all.
  TestNode a{choice_of(GetParam()), job, 0};
  TestNode b{choice_of(GetParam()), job, 1};
};

}  // namespace sterna::net
