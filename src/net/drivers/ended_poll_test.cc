// PacketSink::end_poll over every driver, whether it asks or not: what a poll leaves is there for
// the next one, in order, and nobody sleeps over it.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/drivers/contract.h"

namespace sterna::net {
namespace {

/// Has enough with the first packet of each poll.
struct EndingSink final : PacketSink {
  void on_packet(std::uint32_t /*from_node*/, Packet packet) noexcept override {
    packets.emplace_back(reinterpret_cast<const char*>(packet.data()), packet.size());
    end_poll();
  }
  void on_peer_lost(std::uint32_t /*node*/, std::string_view /*reason*/) noexcept override {}
  /// How many packets it brought.
  std::size_t poll(Driver& driver) {
    const std::size_t before = packets.size();
    begin_poll();
    driver.poll(*this, 64);
    return packets.size() - before;
  }
  std::vector<std::string> packets;
};

class EndedPoll : public DriverContract {
 protected:
  /// Packets that are there at once, mostly.
  void send_all(int count) {
    for (int i = 0; i < count; ++i) {
      sent.push_back("packet " + std::to_string(i));
      ASSERT_TRUE(send_patiently({&a}, a_to_b(), sent.back()));
    }
  }
  EndingSink sink;
  std::vector<std::string> sent;
};

TEST_P(EndedPoll, LeavesTheRestToTheNext) {
  ASSERT_NO_FATAL_FAILURE(join());
  send_all(20);
  std::size_t most = 0;
  ASSERT_TRUE(poll_until({&a}, [&] {
    most = std::max(most, sink.poll(*b.driver));
    return sink.packets.size() == sent.size();
  }));
  EXPECT_EQ(sink.packets, sent);
  const auto asking = {"shm", "count(shm)", "tcp", "trace(tcp)", "sim"};
  if (std::ranges::find(asking, GetParam()) != asking.end()) {
    EXPECT_EQ(most, 1U);
  }
}

TEST_P(EndedPoll, LetsNobodySleepOverTheRest) {
  ASSERT_NO_FATAL_FAILURE(join());
  if (!can_sleep()) {
    return;
  }
  send_all(3);
  ASSERT_TRUE(poll_until({&a}, [&] { return sink.poll(*b.driver) != 0; }));
  // What has come since the poll may be in the system still, whose descriptor says so then.
  while (sink.packets.size() != sent.size()) {
    if (!b.driver->prepare_sleep()) {
      sink.poll(*b.driver);
      continue;
    }
    ASSERT_TRUE(poll_until({&a}, [&] { return is_over(b, 1); }))
        << sink.packets.size() << " have come";
    b.driver->end_sleep();
    sink.poll(*b.driver);
  }
  EXPECT_EQ(sink.packets, sent);
}

std::vector<std::string> drivers_that_poll() {
  std::vector<std::string> names = drivers_to_test();
  names.insert(names.end(), {"sim", "trace(tcp)", "count(shm)", "delay(tcp,latency=20us)"});
  return names;
}

INSTANTIATE_TEST_SUITE_P(Drivers, EndedPoll, testing::ValuesIn(drivers_that_poll()),
                         [](const auto& param) { return test_name_of(param.param); });

}  // namespace
}  // namespace sterna::net
