// Long messages that go unannounced once the heads of many were taken (transfer/head.cc): whole,
// into their receive or where they wait, and never for long against what the receiver does.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "net/transfer/absence.h"
#include "net/transfer/head_pair.h"
#include "progress/progress.h"

namespace sterna::net::heads {
namespace {

/// The next seven messages go unannounced.
struct Sure : Short {
  explicit Sure(const Settings& settings = announcing(), std::uint32_t packet_bytes = kPacketBytes,
                std::uint32_t packets_max = 64)
      : Short{settings, packet_bytes, packets_max} {
    for (int i = 0; i < 9; ++i) {
      exchange(true);
    }
  }
  [[nodiscard]] std::uint64_t placed() const { return cluster.network->placed_count(); }
  [[nodiscard]] std::uint64_t announced() {
    return cluster.nodes[0]->statistics().messages_rendezvous;
  }
  void poll_receiver(int times) {
    for (int i = 0; i < times; ++i) {
      cluster.nodes[1]->poll();
      cluster.clock.advance(100);
    }
  }
  /// Until a part of the message lies in `memory`, which was zero, and its end is missing.
  [[nodiscard]] bool comes_half_way(const std::vector<std::byte>& memory) {
    const std::size_t near = kShortBytes / 4;
    while (memory[near] != sent[near]) {
      poll_receiver(1);
    }
    return memory[kShortBytes - 1] != sent[kShortBytes - 1];
  }
};

/// By the longest packets: some messages are one packet, some several.
class UnannouncedPackets : public testing::TestWithParam<std::uint32_t> {
 protected:
  Sure nodes{Short::announcing(), GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Of, UnannouncedPackets, testing::Values(64 << 10, 16 << 10));

TEST_P(UnannouncedPackets, TheirSenderGoesOnAtOnce) {
  const std::uint64_t announced = nodes.announced();
  for (int i = 0; i < 7; ++i) {
    std::fill(nodes.got.begin(), nodes.got.end(), std::byte{0});
    nodes.post();
    nodes.begin_send();
    EXPECT_TRUE(nodes.send.done.done()) << i;
    nodes.poll_receiver(100);
    ASSERT_TRUE(nodes.receive.done.done()) << i;
    EXPECT_TRUE(nodes.got == nodes.sent) << i;
  }
  EXPECT_EQ(nodes.announced(), announced);
  nodes.exchange(true);
  EXPECT_EQ(nodes.announced(), announced + 1) << "one of eight tells of the others";
}

TEST(Unannounced, TheyAreReceivedWhereTheyBelong) {
  Sure nodes;
  const std::uint64_t before = nodes.placed();
  for (int i = 0; i < 7; ++i) {
    nodes.exchange(true);
  }
  // The simulated driver asks for the place of every second packet: of those that are long.
  EXPECT_EQ(nodes.placed(), before + 7);
}

TEST(Unannounced, TheyWaitWholeForAReceiveThatIsLate) {
  Sure nodes;
  const std::uint64_t before = nodes.placed();
  for (int i = 0; i < 7; ++i) {
    nodes.exchange(false);
  }
  EXPECT_EQ(nodes.placed(), before + 7) << "received where they wait";
  EXPECT_EQ(nodes.heads_dropped(), 0U);
  nodes.exchange(false);
  EXPECT_EQ(nodes.heads_dropped(), 1U) << "of the one that was announced";
  const std::uint64_t announced = nodes.announced();
  for (int i = 0; i < 8; ++i) {
    nodes.exchange(true);
  }
  EXPECT_EQ(nodes.announced(), announced + 8) << "until many in a row were expected again";
}

TEST_P(UnannouncedPackets, AReceiveThatComesInTheMiddleGetsAllOfIt) {
  for (int polls = 0; polls < 40; ++polls) {
    Sure fresh{Short::announcing(), GetParam()};
    for (int i = 0; i < 2; ++i) {  // Of two one has its place.
      std::fill(fresh.got.begin(), fresh.got.end(), std::byte{0});
      fresh.begin_send();
      fresh.poll_receiver(polls);
      fresh.post();
      fresh.cluster.settle();
      ASSERT_TRUE(fresh.receive.done.done()) << polls;
      ASSERT_TRUE(fresh.got == fresh.sent) << polls;
    }
  }
}

TEST_P(UnannouncedPackets, AShortReceiveGetsAPart) {
  for (const std::size_t room : {0UL, 1UL, 63UL, 64UL, 65UL, 1000UL, Short::kShortBytes - 1}) {
    Sure fresh{Short::announcing(), GetParam()};
    for (int i = 0; i < 2; ++i) {
      std::vector<std::byte> part(room + 1, std::byte{77});
      fresh.post(Buffer::of(part.data(), room));
      fresh.begin_send();
      fresh.cluster.settle();
      ASSERT_TRUE(fresh.receive.done.done()) << room;
      EXPECT_EQ(fresh.receive.fault, Fault::truncated);
      EXPECT_EQ(fresh.receive.envelope.bytes, room);
      EXPECT_TRUE(std::equal(part.begin(), part.end() - 1, fresh.sent.begin())) << room;
      EXPECT_EQ(part.back(), std::byte{77}) << "behind its memory";
    }
    fresh.exchange(true);
    EXPECT_EQ(fresh.cluster.nodes[1]->statistics().frames_malformed, 0U);
  }
}

TEST_P(UnannouncedPackets, ARankStaysUntilTheRestHasCome) {
  std::fill(nodes.got.begin(), nodes.got.end(), std::byte{0});
  nodes.post();
  nodes.begin_send();
  ASSERT_TRUE(nodes.comes_half_way(nodes.got));
  const Result<> left = nodes.cluster.nodes[1]->begin_leave(1);
  ASSERT_FALSE(left.has_value());
  EXPECT_EQ(left.error().code, Errc::refused);
  nodes.cluster.settle();
  ASSERT_TRUE(nodes.receive.done.done());
  EXPECT_TRUE(nodes.got == nodes.sent);
  nodes.move_to(0);  // It may leave now.
  nodes.cluster.settle();
}

TEST_P(UnannouncedPackets, TheLossOfTheirSenderEndsThem) {
  std::fill(nodes.got.begin(), nodes.got.end(), std::byte{0});
  nodes.post();
  nodes.begin_send();
  ASSERT_TRUE(nodes.comes_half_way(nodes.got));
  nodes.cluster.network->lose(0);
  nodes.cluster.settle();
  ASSERT_TRUE(nodes.receive.done.done());
  EXPECT_EQ(nodes.receive.fault, Fault::peer_lost);
  std::vector<std::byte>{}.swap(nodes.got);  // Nobody writes there any more (address sanitizer).
  nodes.cluster.settle();
  EXPECT_TRUE(nodes.cluster.nodes[1]->begin_leave(1)) << "nothing keeps the rank";
  nodes.cluster.nodes[1]->cancel_leave(1);
}

// Each frame that has no room waits, and those behind it.
TEST(Unannounced, AllOfTheirPacketsComeWhereThereIsRoomForSome) {
  for (std::uint32_t room = 1; room <= 5; ++room) {
    Sure nodes{Short::announcing(), 16 << 10, room};
    const std::uint64_t announced = nodes.announced();
    for (int i = 0; i < 7; ++i) {
      nodes.exchange(i % 2 == 0);
    }
    EXPECT_EQ(nodes.announced(), announced) << room;
    EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 0U);
  }
}

TEST(Unannounced, OfMorePacketsThanGoAtOnceTheyAreNot) {
  Sure nodes{Short::announcing(), 8 << 10};
  const std::uint64_t announced = nodes.announced();
  for (int i = 0; i < 7; ++i) {
    nodes.exchange(true);
  }
  EXPECT_EQ(nodes.announced(), announced + 7);
}

// To copy them to the network would keep who does not wait for them from what it does.
TEST(Unannounced, VeryLongOnesGoSoWhereTheirSenderWaits) {
  for (const std::size_t bytes : {200UL << 10, 300UL << 10, 1UL << 20, (1UL << 20) + 1}) {
    Sure nodes{Short::announcing(), 1 << 20};
    nodes.sent.resize(bytes);
    nodes.got.resize(bytes);
    const std::uint64_t announced = nodes.announced();
    nodes.exchange(true);
    nodes.exchange(false);
    EXPECT_EQ(nodes.announced(), announced + (bytes <= 1 << 20 ? 0 : 2)) << bytes;
    nodes.post();
    nodes.send.is_awaited = false;
    nodes.cluster.nodes[0]->send(*nodes.cluster.endpoints[0], nodes.send, {1, 0, 0},
                                 Buffer::of(nodes.sent.data(), bytes));
    nodes.cluster.settle();
    ASSERT_TRUE(nodes.send.done.done() && nodes.receive.done.done());
    EXPECT_EQ(nodes.announced(),
              announced + (bytes <= 256 << 10 ? 0 : bytes <= 1 << 20 ? 1 : 3))
        << bytes;
  }
}

// Long ones that are never announced, either: one frame would be received whole before its receive
// is found.
TEST(Unannounced, LongEagerOnesAreReceivedWhereTheyBelong) {
  Settings settings{transport_tunables()};
  ASSERT_TRUE(settings.set("net_eager_bytes", "64K", SettingSource::command_line, "test"));
  for (const std::size_t bytes : {39UL << 10, 40UL << 10, 64UL << 10}) {
    TwoNodes nodes{
        {.node_count = 2, .delay_ns_max = 1000, .packet_bytes_max = 128 << 10}, &settings};
    const std::vector<std::byte> all = nodes.sent;
    // The simulated driver asks for the place of every second packet: here of what follows others.
    for (const std::size_t now : {1UL, 1UL, bytes, bytes, bytes}) {
      nodes.sent.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(now));
      nodes.got.resize(now);
      nodes.exchange(now != bytes || nodes.cluster.network->placed_count() != 1);
    }
    EXPECT_EQ(nodes.cluster.network->placed_count(), bytes < 40 << 10 ? 0U : 3U) << bytes;
    EXPECT_EQ(nodes.cluster.nodes[0]->statistics().messages_eager, 5U);
    EXPECT_EQ(nodes.cluster.nodes[1]->statistics().frames_malformed, 0U);
  }
}

TEST(Unannounced, SynchronousOnesAreNot) {
  Sure nodes;
  const std::uint64_t announced = nodes.announced();
  nodes.post();
  nodes.cluster.nodes[0]->send(*nodes.cluster.endpoints[0], nodes.send, {1, 0, 0},
                               Buffer::of(nodes.sent.data(), nodes.sent.size()),
                               SendMode::synchronous);
  EXPECT_FALSE(nodes.send.done.done());
  nodes.cluster.settle();
  EXPECT_TRUE(nodes.send.done.done() && nodes.receive.done.done());
  EXPECT_EQ(nodes.announced(), announced + 1);
}

// Its copy would keep the program from its computation: see Heads, TransportCore::is_left_whole.
TEST(Unannounced, AProgramThatComputesLeavesThemToWhoProgressesInItsPlace) {
  Sure nodes;
  Transport& from = *nodes.cluster.nodes[0];
  from.serve_one_caller(true);
  from.absence().leave_reads(true);
  const auto progress = std::move(progress::Progress::open().value());
  from.add_to(*progress);
  const std::uint64_t announced = nodes.announced();
  const std::uint64_t heads = nodes.heads_sent();
  for (int i = 0; i < 5; ++i) {
    nodes.post();
    nodes.send.is_awaited = false;
    from.send(*nodes.cluster.endpoints[0], nodes.send, {1, 0, 0},
              Buffer::of(nodes.sent.data(), nodes.sent.size()));
    nodes.cluster.clock.advance(1'000'000);
    (void)progress->poll(threads::SchedulingPoint::idle);  // It waits now.
    nodes.cluster.settle();
    ASSERT_TRUE(nodes.send.done.done() && nodes.receive.done.done());
    // Twice makes a habit.
    EXPECT_EQ(nodes.announced(), announced + (i < 2 ? 0 : i - 1)) << i;
  }
  EXPECT_EQ(nodes.heads_sent(), heads);
  from.remove_from(*progress);
}

TEST(Unannounced, NoMoreThanTheWindowHolds) {
  Settings settings = Short::announcing();
  ASSERT_TRUE(settings.set("net_eager_window", "128K", SettingSource::command_line, "test"));
  Sure nodes{settings};
  const std::uint64_t announced = nodes.announced();
  std::vector<SendRequest> sends(6);
  for (SendRequest& send : sends) {
    send.is_awaited = true;
    nodes.cluster.nodes[0]->send(*nodes.cluster.endpoints[0], send, {1, 0, 0},
                                 Buffer::of(nodes.sent.data(), nodes.sent.size()));
  }
  nodes.cluster.settle();
  EXPECT_EQ(nodes.announced(), announced + 4) << "two fit";
  EXPECT_LE(nodes.cluster.endpoints[1]->unexpected_bytes, 128U << 10);
  for (SendRequest& send : sends) {
    std::fill(nodes.got.begin(), nodes.got.end(), std::byte{0});
    nodes.post();
    nodes.cluster.settle();
    ASSERT_TRUE(nodes.receive.done.done() && send.done.done());
    EXPECT_TRUE(nodes.got == nodes.sent);
  }
}

// Who waits for a long one knows about when it ends: see Progress::expect_within.
TEST(Unannounced, OfLongOnesTheEndIsExpected) {
  for (const std::size_t bytes : {100UL << 10, 511UL << 10, 512UL << 10}) {
    Sure nodes{Short::announcing(), 1 << 20};
    Transport& from = *nodes.cluster.nodes[0];
    const auto progress = std::move(progress::Progress::open().value());
    from.add_to(*progress);
    nodes.sent.resize(bytes);
    nodes.got.resize(bytes);
    for (int i = 0; i < 8; ++i) {  // Announced, and not.
      const std::uint64_t before = progress->counters().expected_until_ns;
      nodes.exchange(true);
      EXPECT_EQ(progress->counters().expected_until_ns > before, bytes >= 512 << 10) << bytes;
    }
    from.remove_from(*progress);
  }
}

}  // namespace
}  // namespace sterna::net::heads
