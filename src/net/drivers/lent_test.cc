// Lent packets (Channel::try_lend) over every driver, whether it takes any or not: each arrives
// once where the sink said, or comes back; and their memory is nobody else's meanwhile.
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/drivers/contract.h"

namespace sterna::net {
namespace {

/// Holds a place for each packet whose head begins with 'p'.
struct HoldingSink final : PacketSink {
  void on_packet(std::uint32_t /*from_node*/, Packet packet) noexcept override {
    packets.emplace_back(reinterpret_cast<const char*>(packet.data()), packet.size());
  }
  void on_peer_lost(std::uint32_t /*node*/, std::string_view /*reason*/) noexcept override {
    ++losses;
  }
  std::span<std::byte> hold_place(std::uint32_t from_node, Packet head,
                                  std::uint32_t packet_bytes) noexcept override {
    check(from_node == 0 && head.size() == kPacketHeadBytes, "the head of a packet is known");
    if (static_cast<char>(head[0]) != 'p') {
      ++refused;
      return {};
    }
    held.emplace_back(text(head), std::vector<std::byte>(packet_bytes - kPacketHeadBytes));
    return held.back().second;
  }
  void on_lent_end(std::uint32_t /*from_node*/, Packet head, std::uint32_t packet_bytes,
                   bool is_whole) noexcept override {
    for (const auto& [its_head, bytes] : held) {
      if (its_head == text(head)) {
        check(bytes.size() == packet_bytes - kPacketHeadBytes, "the packet is the one held for");
        ended.push_back(its_head);
        whole += is_whole ? 1 : 0;
        return;
      }
    }
    check(false, "what ends was held");
  }
  static std::string text(Packet head) {
    return {reinterpret_cast<const char*>(head.data()), head.size()};
  }
  [[nodiscard]] const std::vector<std::byte>& of(const std::string& head) const {
    for (const auto& one : held) {
      if (one.first == head) {
        return one.second;
      }
    }
    static const std::vector<std::byte> kNone;
    return kNone;
  }

  std::deque<std::pair<std::string, std::vector<std::byte>>> held;
  std::vector<std::string> ended;
  std::vector<std::string> packets;
  std::size_t whole = 0;
  std::size_t refused = 0;
  std::size_t losses = 0;
};

std::string head_of(char first, int number) {
  std::string head = first + std::to_string(number) + " ";
  head.resize(kPacketHeadBytes, '.');
  return head;
}

std::vector<std::byte> bytes_of(std::size_t count, int number) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(number));
  }
  return bytes;
}

class LentPackets : public DriverContract {
 protected:
  using State = Lent::State;
  void poll() {
    a.poll();
    b.driver->poll(sink, 64);
  }
  template <typename Done>
  bool poll_both_until(Done is_done) {
    const std::uint64_t deadline = now_ns() + kPatienceNs;
    while (!is_done()) {
      poll();
      if (now_ns() > deadline) {
        return false;
      }
    }
    return true;
  }
  /// What was said so far was a packet each way. False: this driver takes none.
  bool lends() {
    join();
    if (a_to_b().lent_bytes_max() != 0) {
      EXPECT_TRUE(a.driver->capabilities().can_lend) << "who explains a way asks this";
      return true;
    }
    const std::string head = head_of('p', 0);
    Lent lent;
    const auto bytes = bytes_of(10, 0);
    EXPECT_EQ(a_to_b().try_lend(std::as_bytes(std::span{head}), bytes, lent), SendState::closed);
    a_to_b().take_back(lent);
    return false;
  }
  SendState lend(const std::string& head, Piece bytes, Lent& lent) {
    SendState state = SendState::full;
    EXPECT_TRUE(poll_both_until([&] {
      state = a_to_b().try_lend(std::as_bytes(std::span{head}), bytes, lent);
      return state != SendState::full;
    }));
    return state;
  }
  static bool is_over(const Lent& lent) {
    const State state = lent.state.load(std::memory_order_acquire);
    return state == State::taken || state == State::returned;
  }
  HoldingSink sink;
};

TEST_P(LentPackets, EachArrivesOnceAtItsPlace) {
  if (!lends()) {
    return;
  }
  ASSERT_GE(a_to_b().lent_bytes_max(), 1U << 20);
  int number = 0;
  for (const std::size_t bytes : {1U, 4097U, 65'536U, 1'000'003U, 5U << 20}) {
    const auto data = bytes_of(bytes, ++number);
    const std::string head = head_of('p', number);
    Lent lent;
    ASSERT_EQ(lend(head, data, lent), SendState::accepted);
    ASSERT_TRUE(poll_both_until([&] { return is_over(lent); })) << bytes;
    EXPECT_EQ(lent.state.load(), State::taken) << bytes;
    EXPECT_TRUE(sink.of(head) == data) << bytes;
    EXPECT_EQ(sink.ended.size(), static_cast<std::size_t>(number));
  }
  EXPECT_EQ(sink.whole, static_cast<std::size_t>(number));
  EXPECT_EQ(sink.losses + a.sink.losses.size(), 0U);
}

TEST_P(LentPackets, OneWithoutAPlaceComesBack) {
  if (!lends()) {
    return;
  }
  const auto data = bytes_of(300'000, 1);
  Lent refused;
  Lent taken;
  ASSERT_EQ(lend(head_of('n', 1), data, refused), SendState::accepted);
  ASSERT_EQ(lend(head_of('p', 2), data, taken), SendState::accepted);
  ASSERT_TRUE(poll_both_until([&] { return is_over(refused) && is_over(taken); }));
  EXPECT_EQ(refused.state.load(), State::returned);
  EXPECT_EQ(taken.state.load(), State::taken);
  EXPECT_EQ(sink.refused, 1U);
  EXPECT_EQ(sink.ended.size(), 1U);
}

TEST_P(LentPackets, ManyAtOnceAndPacketsBetweenThemArrive) {
  if (!lends()) {
    return;
  }
  const int count = count_of(200);
  std::vector<std::byte> data = bytes_of(200'000, 0);
  std::deque<Lent> lent(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(lend(head_of('p', i), Piece{data}.subspan(static_cast<std::size_t>(i) * 11, 150'000),
                   lent[static_cast<std::size_t>(i)]),
              SendState::accepted);
    SendState state = SendState::full;
    ASSERT_TRUE(poll_both_until(
        [&] { return (state = send_text(a_to_b(), std::to_string(i))) == SendState::accepted; }));
  }
  ASSERT_TRUE(poll_both_until([&] { return std::ranges::all_of(lent, is_over); }));
  ASSERT_TRUE(poll_both_until([&] { return sink.packets.size() == std::size_t(count); }));
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(sink.packets[static_cast<std::size_t>(i)], std::to_string(i));
    const auto& found = sink.of(head_of('p', i));
    EXPECT_TRUE(
        std::ranges::equal(found, Piece{data}.subspan(static_cast<std::size_t>(i) * 11, 150'000)));
  }
  EXPECT_EQ(sink.whole, static_cast<std::size_t>(count));
}

/// The peer has heard of it, or not yet: what is held there ends, whole or not.
TEST_P(LentPackets, WhatIsTakenBackIsOverOnBothSides) {
  if (!lends()) {
    return;
  }
  std::deque<Lent> lent(3);
  int number = 0;
  {
    const auto data = bytes_of(400'000, 1);
    for (Lent& one : lent) {
      ASSERT_EQ(lend(head_of('p', ++number), data, one), SendState::accepted);
      b.driver->poll(sink, 64);
    }
    for (Lent& one : lent) {
      a_to_b().take_back(one);
      EXPECT_EQ(one.state.load(), State::none);
    }
  }
  a.driver->close();
  EXPECT_TRUE(poll_both_until([&] {
    return sink.held.size() + sink.refused == lent.size() && sink.ended.size() == sink.held.size();
  }));
  EXPECT_EQ(sink.ended.size(), sink.held.size());
}

TEST_P(LentPackets, OneOfAClosedPeerComesBack) {
  if (!lends()) {
    return;
  }
  const auto data = bytes_of(400'000, 1);
  Lent lent;
  ASSERT_EQ(lend(head_of('n', 1), data, lent), SendState::accepted);
  b.driver->close();
  ASSERT_TRUE(poll_both_until([&] { return is_over(lent); }));
  EXPECT_EQ(lent.state.load(), State::returned);
  Lent late;
  const std::string head = head_of('p', 2);
  EXPECT_TRUE(poll_both_until([&] {
    return a_to_b().try_lend(std::as_bytes(std::span{head}), data, late) == SendState::closed;
  }));
}

constexpr auto kName = [](const auto& entry) { return test_name_of(entry.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, LentPackets, testing::ValuesIn(drivers_to_test()), kName);
INSTANTIATE_TEST_SUITE_P(Decorators, LentPackets,
                         testing::Values("sim", "count(fabric@tcp)", "trace(shm)",
                                         "drop(tcp,rate=0)"),
                         kName);

}  // namespace
}  // namespace sterna::net
