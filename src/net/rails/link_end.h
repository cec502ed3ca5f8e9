// One end of a link over a driver of the test's own, which takes and refuses what the test says.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/function_ref.h"
#include "base/log.h"
#include "net/rails/link.h"

namespace sterna::net {

/// Keeps what it takes.
class Wire final : public Driver, public Channel {
 public:
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return {}; }
  bool reaches(std::uint32_t, Packet) const noexcept override { return true; }
  Result<Channel*> connect(std::uint32_t, Packet) noexcept override { return this; }
  Result<Channel*> revive(std::uint32_t) noexcept override {
    return revives ? Result<Channel*>{this} : refusal;
  }
  std::uint32_t poll(PacketSink&, std::uint32_t) noexcept override { return 0; }
  int fd() const noexcept override { return -1; }
  bool prepare_sleep() noexcept override { return false; }
  void end_sleep() noexcept override {}
  void close() noexcept override {}
  bool is_drained() const noexcept override { return true; }

  SendState try_send(std::span<const Piece> pieces) noexcept override {
    if (meanwhile != nullptr) {
      (*std::exchange(meanwhile, nullptr))();
    }
    if (state == SendState::accepted) {
      std::vector<std::byte>& packet = taken.emplace_back();
      for (const Piece& piece : pieces) {
        packet.insert(packet.end(), piece.begin(), piece.end());
      }
    }
    return state;
  }

  std::uint32_t lent_bytes_max() const noexcept override { return 1U << 30; }

  SendState state = SendState::accepted;
  bool revives = true;
  Errc refusal = Errc::unreachable;
  std::vector<std::vector<std::byte>> taken;
  const FunctionRef<void()>* meanwhile = nullptr;  // Once, while a packet is sent.

 private:
  Capabilities capabilities_{.can_lend = true};
};

struct End {
  explicit End(std::size_t rail_count = 1) : wires(rail_count) {
    shared = {.pool = &pool,
              .strategy = builtin_strategies().front()->strategy,
              .clock = &clock,
              .log = &logger,
              .wake = [](void* count) noexcept { ++*static_cast<int*>(count); },
              .core = &wakes};
    clock.advance(1'000'000'000);
    std::vector<Link::RailOpening> openings;
    for (std::size_t i = 0; i < rail_count; ++i) {
      openings.push_back({&wires[i], {}, static_cast<std::uint16_t>(i), "wire"});
    }
    link = std::make_unique<Link>(1, openings, shared);
    EXPECT_TRUE(link->open());
  }
  SendState send() {
    static constexpr std::array<std::byte, 8> kBytes{};
    const Piece piece = kBytes;
    return link->try_send({&piece, 1});
  }
  /// Two packets of one byte each, 1 and 2.
  Link::Two send_two() {
    static constexpr std::array<std::byte, 1> kBytes[2] = {{std::byte{1}}, {std::byte{2}}};
    const Piece first = kBytes[0];
    const Piece second = kBytes[1];
    return link->try_send_two({&first, 1}, {&second, 1}, side, hand_over);
  }
  /// The numbers of the data packets that a rail has taken, and with each its first byte.
  std::set<std::pair<std::uint32_t, int>> data(std::size_t rail) {
    std::set<std::pair<std::uint32_t, int>> numbers;
    for (const std::vector<std::byte>& packet : wires[rail].taken) {
      LinkHeader header;
      std::memcpy(&header, packet.data(), sizeof header);
      if (header.kind == LinkKind::data) {
        EXPECT_TRUE(
            numbers.emplace(header.sequence, static_cast<int>(packet[kLinkHeaderBytes])).second);
      }
    }
    return numbers;
  }
  /// The peer says that all before `expected` has come.
  void acknowledge(std::uint32_t expected) {
    LinkHeader header;
    header.kind = LinkKind::ack;
    header.flags = kLinkHasExpected;
    header.expected = expected;
    (void)link->take(0, std::as_bytes(std::span{&header, 1}));
  }
  /// The peer says that what follows `expected` has come, but not `expected` itself.
  void acknowledge_behind(std::uint32_t expected) {
    struct {
      LinkHeader header;
      std::uint64_t map = 1;
    } packet;
    packet.header.kind = LinkKind::ack;
    packet.header.flags = kLinkHasExpected;
    packet.header.expected = expected;
    packet.header.bytes = sizeof packet.map;
    (void)link->take(0, std::as_bytes(std::span{&packet, 1}).first(kLinkHeaderBytes + 8));
  }
  /// The peer's packet comes.
  void take(LinkKind kind, std::uint32_t sequence, std::uint16_t rail = 0) {
    struct {
      LinkHeader header;
      std::uint64_t payload = 0;
    } packet;
    packet.header.kind = kind;
    packet.header.rail = rail;
    packet.header.sequence = sequence;
    packet.header.bytes = kind == LinkKind::data ? 8 : 0;
    (void)link->take(
        rail, std::as_bytes(std::span{&packet, 1}).first(kLinkHeaderBytes + packet.header.bytes));
  }
  void step_after(std::uint64_t ns) {
    clock.advance(ns);
    (void)link->step(clock.now_ns());
  }
  /// How many acknowledgements the rail has taken, alone or with data, of all before `expected`.
  std::size_t acks(std::uint32_t expected, std::size_t rail = 0) {
    return static_cast<std::size_t>(
        std::ranges::count_if(wires[rail].taken, [&](const std::vector<std::byte>& packet) {
          LinkHeader header;
          std::memcpy(&header, packet.data(), sizeof header);
          return (header.flags & kLinkHasExpected) != 0 && header.expected == expected;
        }));
  }

  std::string state_of(std::size_t rail = 0) { return link->report()[rail].state; }

  int wakes = 0;
  ManualClock clock;
  Log log;
  Logger logger{log, "test"};
  PacketPool pool;
  LinkShared shared;
  std::vector<Wire> wires;
  std::unique_ptr<Link> link;
  SideWork side;
  threads::HandOver hand_over;
};

}  // namespace sterna::net
