// One end of a link over a driver of the test's own, which takes and refuses what the test says.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/function_ref.h"
#include "base/log.h"
#include "net/rails/link.h"

namespace sterna::net {
namespace {

/// Keeps what it takes.
class Wire final : public Driver, public Channel {
 public:
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return {}; }
  bool reaches(std::uint32_t, Packet) const noexcept override { return true; }
  Result<Channel*> connect(std::uint32_t, Packet) noexcept override { return this; }
  Result<Channel*> revive(std::uint32_t) noexcept override { return this; }
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

  SendState state = SendState::accepted;
  std::vector<std::vector<std::byte>> taken;
  const FunctionRef<void()>* meanwhile = nullptr;  // Once, while a packet is sent.

 private:
  Capabilities capabilities_;
};

struct End {
  explicit End(std::size_t rail_count = 1) : wires(rail_count) {
    shared = {.pool = &pool,
              .strategy = builtin_strategies().front()->strategy,
              .clock = &clock,
              .log = &logger,
              .wake = [](void*) noexcept {}};
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

  ManualClock clock;
  Log log;
  Logger logger{log, "test"};
  PacketPool pool;
  LinkShared shared;
  std::vector<Wire> wires;
  std::unique_ptr<Link> link;
};

TEST(LinkEnd, AnAcknowledgementThatFoundNoRoomGoesLater) {
  End end;
  end.take(LinkKind::data, 0);
  end.wires[0].state = SendState::full;
  end.step_after(1'000'000);
  EXPECT_FALSE(end.link->is_quiet());
  end.wires[0].state = SendState::accepted;
  EXPECT_NE(end.link->due_ns(), kNever);
  end.step_after(2'000'000);
  EXPECT_EQ(end.acks(1), 1U);
  EXPECT_TRUE(end.link->is_quiet());
}

TEST(LinkEnd, DataThatFoundNoRoomHasToldNothing) {
  End end;
  end.take(LinkKind::data, 0);
  end.wires[0].state = SendState::full;
  EXPECT_EQ(end.send(), SendState::full);
  end.wires[0].state = SendState::accepted;
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1), 1U);
}

TEST(LinkEnd, WhatCameWhileItWasToldIsToldToo) {
  End end;
  end.take(LinkKind::data, 0);
  const auto take_one = [&] { end.take(LinkKind::data, 1); };
  const FunctionRef<void()> meanwhile = take_one;
  end.wires[0].meanwhile = &meanwhile;
  EXPECT_EQ(end.send(), SendState::accepted);
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(2), 1U);
}

TEST(LinkEnd, WhatABrokenRailWasToTellTheOthersTell) {
  End end{2};
  end.take(LinkKind::data, 0, 0);
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1, 0), 1U);
  end.link->lose_rail(0, "the test says so");
  end.wires[0].state = SendState::full;
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1, 1), 1U);
}

TEST(LinkEnd, APacketThatComesAgainIsAcknowledgedByTheRailItTook) {
  End end{2};
  end.take(LinkKind::data, 0, 0);
  end.step_after(1'000'000);  // This news stays in a rail that is silent, which only the peer sees.
  end.take(LinkKind::data, 0, 1);
  end.step_after(1'000'000);
  EXPECT_EQ(end.acks(1, 1), 1U);
}

TEST(LinkEnd, APeerThatIsLostWhileAPacketGoesLeavesNothingBehind) {
  for (const SendState state : {SendState::accepted, SendState::full, SendState::closed}) {
    End end;
    EXPECT_EQ(end.send(), SendState::accepted);
    end.wires[0].state = state;
    const auto lose = [&] { end.link->lose(); };
    const FunctionRef<void()> meanwhile = lose;
    end.wires[0].meanwhile = &meanwhile;
    EXPECT_EQ(end.send(), state == SendState::full ? SendState::closed : state);
    EXPECT_EQ(end.send(), SendState::closed);
    EXPECT_TRUE(end.link->is_quiet());
  }
}

}  // namespace
}  // namespace sterna::net
