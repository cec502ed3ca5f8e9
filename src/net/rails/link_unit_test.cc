// One end of a link over a driver of the test's own, which takes and refuses what the test says.
#include <array>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/function_ref.h"
#include "base/log.h"
#include "net/rails/link.h"
#include "net/rails/plan.h"

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

  std::uint32_t lent_bytes_max() const noexcept override { return 1U << 30; }

  SendState state = SendState::accepted;
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
  SideWork side;
  threads::HandOver hand_over;
};

/// A worker without work, on a kernel thread of its own.
struct Idle {
  explicit Idle(End& end) : hand_over{end.hand_over} {
    hand_over.serve([](void* side) noexcept { (void)static_cast<SideWork*>(side)->help(); },
                    &end.side);
    hand_over.begin_search();
    thread = std::thread{[this] {
      while (!is_over) {
        hand_over.take();
        std::this_thread::yield();
      }
    }};
  }
  ~Idle() {
    is_over = true;
    thread.join();
    hand_over.end_search();
    hand_over.stop();
  }
  threads::HandOver& hand_over;
  std::atomic<bool> is_over{false};
  std::thread thread;
};

TEST(LinkEnd, LendsIfItIsSaidToOverRailsThatDo) {
  End end{2};
  const Capabilities each[2] = {end.wires[0].capabilities(), end.wires[1].capabilities()};
  ASSERT_TRUE(each[0].can_lend);
  const bool does_lend = end.link->lent_bytes_max() != 0;
  EXPECT_EQ(link_capabilities(each).can_lend, does_lend);
  const WayDriver rails[2] = {{"one", each[0], true}, {"two", {.direct_mb_per_s = 9}, true}};
  EXPECT_EQ(tell_link_copies(rails, true).find("zero copy of messages that are lent"), 0U);
  EXPECT_EQ(tell_link_copies(rails, false),
            "no zero copy: packets of messages are copied, and kept until they are known to have "
            "come; without a link long ones would be lent, with no copy, by one; without a link "
            "long ones would be copied directly, once, by two");
}

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

using Data = std::set<std::pair<std::uint32_t, int>>;

TEST(LinkEnd, TwoPacketsAreSentByTwoThreadsAtOnce) {
  End end{2};
  const Idle idle{end};
  std::atomic<int> begun{0};
  std::atomic<bool> were_both{true};
  const auto wait_for_other = [&] {
    ++begun;
    for (int i = 0; begun < 2; ++i) {
      if (i == 20'000) {
        were_both = false;  // The other is not sent before this one is: nothing is at once.
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  };
  const FunctionRef<void()> meanwhile = wait_for_other;
  end.wires[0].meanwhile = end.wires[1].meanwhile = &meanwhile;
  const Link::Two two = end.send_two();
  EXPECT_TRUE(were_both);
  EXPECT_TRUE(two.was_beside);
  EXPECT_EQ(two.states[0], SendState::accepted);
  EXPECT_EQ(two.states[1], SendState::accepted);
  EXPECT_EQ(end.data(0), (Data{{0, 1}}));
  EXPECT_EQ(end.data(1), (Data{{1, 2}}));
  end.acknowledge(2);
  EXPECT_TRUE(end.link->is_quiet());
}

TEST(LinkEnd, WhereNobodyIsIdleBothAreSentByTheirSender) {
  End end{2};
  const Link::Two two = end.send_two();
  EXPECT_FALSE(two.was_beside);
  EXPECT_EQ(two.states[1], SendState::accepted);
  EXPECT_EQ(end.data(0), (Data{{0, 1}}));
  EXPECT_EQ(end.data(1), (Data{{1, 2}}));
}

TEST(LinkEnd, OfTwoPacketsThatWhichARailRefusesTakesTheOther) {
  for (const std::size_t refusing : {0U, 1U}) {
    for (const bool is_any_idle : {false, true}) {
      End end{2};
      const std::unique_ptr<Idle> idle = is_any_idle ? std::make_unique<Idle>(end) : nullptr;
      end.wires[refusing].state = SendState::full;
      const Link::Two two = end.send_two();
      EXPECT_EQ(two.states[0], SendState::accepted);
      EXPECT_EQ(two.states[1], SendState::accepted);
      EXPECT_EQ(end.data(1 - refusing), (Data{{0, 1}, {1, 2}}));
      end.acknowledge(2);
      EXPECT_TRUE(end.link->is_quiet());
    }
  }
}

TEST(LinkEnd, TwoPacketsThatNoRailTakesLeaveNothingBehind) {
  End end{2};
  end.wires[0].state = end.wires[1].state = SendState::full;
  const Link::Two two = end.send_two();
  EXPECT_EQ(two.states[0], SendState::full);
  EXPECT_EQ(two.states[1], SendState::full);
  EXPECT_TRUE(end.link->is_quiet());
  end.wires[0].state = end.wires[1].state = SendState::accepted;
  EXPECT_EQ(end.send(), SendState::accepted);
  EXPECT_EQ(end.data(0), (Data{{0, 0}})) << "the first number is still free";
}

TEST(LinkEnd, TheFirstOfTwoThatNoRailTakesWhileTheSecondGoesIsSentAgain) {
  End end{2};
  end.wires[0].state = SendState::full;
  const auto close_other = [&] { end.wires[1].state = SendState::full; };
  const FunctionRef<void()> second_time = close_other;
  const auto once_more = [&] { end.wires[0].meanwhile = &second_time; };
  const FunctionRef<void()> first_time = once_more;
  end.wires[0].meanwhile = &first_time;
  const Link::Two two = end.send_two();
  EXPECT_EQ(two.states[0], SendState::accepted) << "the link keeps it";
  EXPECT_EQ(two.states[1], SendState::accepted);
  EXPECT_EQ(end.data(1), (Data{{1, 2}}));
  end.wires[0].state = SendState::accepted;
  end.step_after(1'000'000);
  EXPECT_EQ(end.data(0), (Data{{0, 1}}));
  end.acknowledge(2);
  EXPECT_TRUE(end.link->is_quiet());
}

TEST(LinkEnd, APeerThatIsLostWhileTwoPacketsGoLeavesNothingBehind) {
  for (const SendState state : {SendState::accepted, SendState::full, SendState::closed}) {
    for (const std::size_t at : {0U, 1U}) {
      End end{2};
      end.wires[at].state = state;
      const auto lose = [&] { end.link->lose(); };
      const FunctionRef<void()> meanwhile = lose;
      end.wires[at].meanwhile = &meanwhile;
      (void)end.send_two();
      EXPECT_EQ(end.send(), SendState::closed);
      EXPECT_TRUE(end.link->is_quiet());
    }
  }
}

TEST(LinkEnd, ARailThatIsBusyGetsLessThanOneThatIsIdle) {
  const std::vector<std::byte> zeros(3000);
  const Piece piece = zeros;
  for (const bool is_busy : {false, true}) {
    End end{2};
    end.link->know(0, {.latency_ns = 1000, .packet_ns = 10, .packet_ps_per_byte = 1000});
    end.link->know(1, {.latency_ns = 1000, .packet_ns = 10, .packet_ps_per_byte = 4000});
    for (std::uint32_t i = 1; i <= 10; ++i) {
      EXPECT_EQ(end.link->try_send({&piece, 1}), SendState::accepted);
      if (!is_busy) {
        end.acknowledge(i);
      }
    }
    EXPECT_EQ(end.data(1).size(), is_busy ? 2U : 0U) << "it is a fourth as fast";
  }
}

}  // namespace
}  // namespace sterna::net
