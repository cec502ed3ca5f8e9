// PacketSink::place over every driver, whether it asks or not: what was sent arrives in order, each
// packet in one of the two ways; and what tcp makes of it, which asks.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/drivers/builtin.h"
#include "net/drivers/contract.h"
#include "net/drivers/tcp/tunables.h"

namespace sterna::net {
namespace {

/// The first byte of a packet says whether it has a place: 'p' has, 'l' only when asked first.
struct PlacingSink final : PacketSink {
  void on_packet(std::uint32_t /*from_node*/, Packet packet) noexcept override {
    packets.push_back(text(packet));
  }
  void on_peer_lost(std::uint32_t /*node*/, std::string_view /*reason*/) noexcept override {
    ++losses;
  }
  std::span<std::byte> place(std::uint32_t from_node, Packet head,
                             std::uint32_t packet_bytes) noexcept override {
    check(from_node == 0 && head.size() == kPacketHeadBytes, "the head of a packet is known");
    ++asked;
    const auto first = static_cast<char>(head[0]);
    const bool is_again = asked_for == text(head);
    asked_for = text(head);
    if (first != 'p' && (first != 'l' || is_again)) {
      return {};
    }
    memory.resize(packet_bytes - kPacketHeadBytes);
    return memory;
  }
  void on_placed(std::uint32_t /*from_node*/, Packet head,
                 std::uint32_t packet_bytes) noexcept override {
    check(memory.size() == packet_bytes - kPacketHeadBytes, "the packet is the one asked for");
    packets.push_back(text(head) + text(memory));
    ++placed;
  }
  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::vector<std::byte> memory;
  std::vector<std::string> packets;
  std::string asked_for;  // The head.
  std::size_t asked = 0;
  std::size_t placed = 0;
  std::size_t losses = 0;
};

std::string packet_of(char first, int number, std::size_t bytes) {
  std::string text = first + std::to_string(number) + " ";
  Random random{static_cast<std::uint64_t>(number) + 1};
  while (text.size() < bytes) {
    text.push_back(static_cast<char>('a' + random.below(26)));
  }
  return text;
}

class Placed : public DriverContract {
 protected:
  void poll() {
    a.poll();
    b.driver->poll(sink, 64);
  }
  template <typename Done>
  bool poll_both_until(Done is_done) {
    const std::uint64_t deadline = now_ns() + 6 * kPatienceNs;
    while (!is_done()) {
      poll();
      if (now_ns() > deadline) {
        return false;
      }
    }
    return true;
  }
  bool send(const std::string& text) {
    SendState state = SendState::full;
    return poll_both_until(
               [&] { return (state = send_text(a_to_b(), text)) != SendState::full; }) &&
           state == SendState::accepted;
  }
  PlacingSink sink;
};

TEST_P(Placed, EveryPacketArrivesOnceAndInOrder) {
  std::vector<std::string> sent;
  Random random{11};
  for (int i = 0; i < count_of(400); ++i) {
    const std::size_t most = i % 3 == 0 ? packet_bytes_max() : packet_bytes_max() / 10;
    const std::size_t bytes = 12 + random.below(most - 12);
    sent.push_back(packet_of(random.below(3) == 0 ? 'w' : 'p', i, bytes));
    ASSERT_TRUE(send(sent.back()));
  }
  ASSERT_TRUE(poll_both_until([&] { return sink.packets.size() == sent.size(); }));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_TRUE(sink.packets[i] == sent[i]) << "packet " << i << " of " << sent[i].size();
  }
}

TEST_P(Placed, WhatFollowsAPlaceThatCeasesArrives) {
  std::vector<std::string> sent;
  for (int i = 0; i < 60; ++i) {
    sent.push_back(packet_of(i % 3 == 0 ? 'l' : "wp"[i % 2], i, packet_bytes_max() - 7));
    ASSERT_TRUE(send(sent.back()));
  }
  ASSERT_TRUE(
      poll_both_until([&] { return !sink.packets.empty() && sink.packets.back() == sent.back(); }));
  std::size_t next = 0;  // Of an 'l' all or nothing has come.
  for (const std::string& packet : sink.packets) {
    while (next < sent.size() && sent[next] != packet) {
      ASSERT_EQ(sent[next++][0], 'l');
    }
    ASSERT_LT(next, sent.size()) << "what came was sent, in this order";
    ++next;
  }
}

constexpr auto kName = [](const auto& info) { return test_name_of(info.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, Placed, testing::ValuesIn(drivers_to_test()), kName);
INSTANTIATE_TEST_SUITE_P(Decorators, Placed, testing::Values("sim", "count(tcp)"), kName);

/// Small buffers in the system: of a long packet the first poll never has all.
class TcpPlaced : public testing::Test {
 protected:
  static Settings small_buffers() {
    Settings settings{tcp::kTunables};
    check(settings.set("tcp_buffer_bytes", "16K", SettingSource::command_line, "test").has_value(),
          "the setting is there");
    return settings;
  }
  void send_and_poll(const std::string& text) {
    ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "joined"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
    ASSERT_EQ(send_text(a.to(b, 1), text), SendState::accepted);
    ASSERT_TRUE(poll_b_until([&] { return sink.asked == 1; }));
  }
  template <typename Done>
  bool poll_b_until(Done is_done) {
    const std::uint64_t deadline = now_ns() + 6 * kPatienceNs;
    while (!is_done()) {
      b.driver->poll(sink, 64);
      if (now_ns() > deadline) {
        return false;
      }
    }
    return true;
  }
  template <typename Done>
  bool poll_both_until(Done is_done) {
    return poll_b_until([&] {
      a.poll();
      return is_done();
    });
  }

  const Settings settings = small_buffers();
  TestJob job{2};
  TestNode a{kTcpDriver, job, 0, DriverOptions{.settings = &settings}};
  TestNode b{kTcpDriver, job, 1, DriverOptions{.settings = &settings}};
  PlacingSink sink;
};

TEST_F(TcpPlaced, LongPacketsGoToTheirPlace) {
  const std::string text = packet_of('p', 1, 250'000);
  send_and_poll(text);
  ASSERT_TRUE(poll_both_until([&] { return !sink.packets.empty(); }));
  EXPECT_EQ(sink.placed, 1U);
  EXPECT_GT(sink.asked, 1U) << "it asks in every poll";
  EXPECT_TRUE(sink.packets[0] == text);
}

TEST_F(TcpPlaced, WithoutItsPlaceTheRestIsDropped) {
  send_and_poll(packet_of('l', 1, 250'000));
  const std::string next = packet_of('p', 2, 100'000);
  SendState state = SendState::full;
  ASSERT_TRUE(poll_both_until(
      [&] { return (state = send_text(a.to(b, 1), next)) == SendState::accepted; }));
  ASSERT_TRUE(poll_both_until([&] { return !sink.packets.empty(); }));
  EXPECT_TRUE(sink.packets[0] == next) << "and not the one before";
  EXPECT_EQ(sink.placed, 1U);
}

TEST_F(TcpPlaced, AnEndInBetweenIsALossAfterWhatCame) {
  send_and_poll(packet_of('p', 1, 250'000));
  a.driver.reset();
  ASSERT_TRUE(poll_b_until([&] { return sink.losses == 1; }));
  EXPECT_TRUE(sink.packets.empty());
}

}  // namespace
}  // namespace sterna::net
