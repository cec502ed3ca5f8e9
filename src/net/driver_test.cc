// The contract of net/driver.h, run on every built-in driver, on the simulated one, which the tests
// of the layers above trust, and on what is put around them: a new driver gets these tests by being
// listed in net/drivers/builtin.cc. Nodes are objects of this process; driver_process_test.cc has
// the tests that need processes.
#include "net/driver.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <poll.h>

#include "base/clock.h"
#include "base/random.h"
#include "net/drivers/contract.h"

namespace sterna::net {
namespace {

TEST_P(DriverContract, PacketsArriveWholeAndInOrder) {
  std::vector<std::string> sent;
  for (const std::uint32_t bytes : {1U, 8U, 56U, 57U, 120U, 121U, 1000U, packet_bytes_max()}) {
    sent.emplace_back(bytes, static_cast<char>('a' + sent.size()));
    ASSERT_TRUE(send_patiently({&a, &b}, a_to_b(), sent.back()));
  }
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == sent.size(); }));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(b.sink.packets[i].first, 0U);
    EXPECT_EQ(b.sink.packets[i].second, sent[i]);
  }
}

TEST_P(DriverContract, PiecesAreGathered) {
  for (const std::size_t piece_bytes : {1, 3, 100}) {
    const std::string text = std::string(piece_bytes, 'p') + std::string(piece_bytes, 'q');
    std::vector<Piece> pieces;
    std::string whole;
    for (std::uint32_t i = 0; i < kPacketPiecesMax; ++i) {
      const std::size_t bytes = i % 3 == 0 ? 0 : piece_bytes;
      pieces.push_back(std::as_bytes(std::span{text}).subspan(i % (piece_bytes + 1), bytes));
      whole += text.substr(i % (piece_bytes + 1), bytes);
    }
    SendState state;
    ASSERT_TRUE(poll_until({&a, &b},
                           [&] { return (state = a_to_b().try_send(pieces)) != SendState::full; }));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
    EXPECT_EQ(b.sink.packets[0].second, whole);
    b.sink.packets.clear();
  }
}

TEST_P(DriverContract, SeveralAtOnceAreAsOneAfterTheOther) {
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < 10 * kPacketsAtOnceMax; ++i) {
    sent.emplace_back(i % 3 == 0 ? packet_bytes_max() / (1 + i % 5)
                                 : std::min<std::size_t>(1 + i * i, packet_bytes_max()),
                      static_cast<char>('a' + i % 26));
  }
  std::size_t accepted = 0;
  ASSERT_TRUE(poll_until({&a, &b}, [&] {
    std::vector<std::array<Piece, 2>> pieces;
    std::vector<std::span<const Piece>> packets;
    pieces.reserve(kPacketsAtOnceMax);
    for (std::size_t i = accepted; i < sent.size() && packets.size() < kPacketsAtOnceMax; ++i) {
      const Piece whole = std::as_bytes(std::span{sent[i]});
      pieces.push_back({whole.first(whole.size() / 2), whole.subspan(whole.size() / 2)});
      packets.emplace_back(pieces.back());
    }
    SendState state = SendState::accepted;
    const std::size_t count = packets.empty() ? 0 : a_to_b().try_send_several(packets, state);
    EXPECT_EQ(count == packets.size(), state == SendState::accepted);
    EXPECT_NE(state, SendState::closed);
    accepted += count;
    return b.sink.packets.size() == sent.size();
  }));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(b.sink.packets[i].second == sent[i]) << i;
  }
}

TEST_P(DriverContract, SenderMayReuseItsBuffer) {
  for (const std::size_t bytes : {8, 2000}) {
    std::string text(bytes, 'o');
    const Piece piece = std::as_bytes(std::span{text});
    ASSERT_EQ(a_to_b().try_send({&piece, 1}), SendState::accepted);
    std::ranges::fill(text, 'n');
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.sink.packets.empty(); }));
    EXPECT_EQ(b.sink.packets[0].second, std::string(bytes, 'o'));
    b.sink.packets.clear();
  }
}

TEST_P(DriverContract, FullChannelAcceptsAgainAfterPoll) {
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{packet_bytes_max()}}) {
    join();
    std::size_t sent = 0;
    std::string text(bytes, 'x');
    const auto stamp = [&] { std::memcpy(text.data(), &sent, sizeof sent); };
    for (stamp(); send_text(a_to_b(), text) == SendState::accepted; stamp()) {
      ASSERT_LT(++sent, 10'000'000U) << "a channel is bounded";
    }
    ASSERT_TRUE(send_patiently({&a, &b}, a_to_b(), text));
    ++sent;
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == sent; }));
    for (std::size_t i = 0; i < sent; ++i) {
      ASSERT_EQ(std::memcmp(b.sink.packets[i].second.data(), &i, sizeof i), 0);
    }
    a.sink.packets.clear();
    b.sink.packets.clear();
  }
}

TEST_P(DriverContract, PollHandsAboutWhatIsAsked) {
  join();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(send_patiently({&a}, a_to_b(), "x"));
  }
  std::uint32_t polled = 0;
  ASSERT_TRUE(poll_until({&a}, [&] {
    const std::uint32_t count = b.poll(3);
    EXPECT_LE(count, 8U);
    return (polled += count) == 100;
  }));
}

TEST_P(DriverContract, PacketsOfManySendersKeepTheirOrder) {
  TestJob own_job{3};
  TestNode x{choice_of(GetParam()), own_job, 0};
  TestNode y{choice_of(GetParam()), own_job, 1};
  TestNode z{choice_of(GetParam()), own_job, 2};
  const int count = count_of(2000);
  for (int i = 0; i < count; ++i) {
    const std::string text = std::to_string(i) + std::string(i % 300, '.');
    ASSERT_TRUE(send_patiently({&x, &y, &z}, x.to(z, 2), text));
    ASSERT_TRUE(send_patiently({&x, &y, &z}, y.to(z, 2), text));
  }
  ASSERT_TRUE(poll_until(
      {&x, &y, &z}, [&] { return z.sink.packets.size() == static_cast<std::size_t>(2 * count); }));
  int next[2] = {0, 0};
  for (const auto& [from, text] : z.sink.packets) {
    ASSERT_LT(from, 2U);
    ASSERT_EQ(std::stoi(text), next[from]++);
  }
}

TEST_P(DriverContract, BothSidesMayBeginAtOnce) {
  for (int round = 0; round < 20; ++round) {
    TestJob own_job{2};
    TestNode x{choice_of(GetParam()), own_job, 0};
    TestNode y{choice_of(GetParam()), own_job, 1};
    static_cast<void>(send_text(x.to(y, 1), "from 0"));
    static_cast<void>(send_text(y.to(x, 0), "from 1"));
    ASSERT_TRUE(poll_until(
        {&x, &y}, [&] { return x.sink.packets.size() == 1 && y.sink.packets.size() == 1; }));
    EXPECT_TRUE(x.sink.losses.empty() && y.sink.losses.empty());
  }
}

TEST_P(DriverContract, SenderAndPollerMayRunTogether) {
  join();
  const int count = count_of(20'000);
  Channel& there = a_to_b();
  std::atomic<bool> gives_up{false};
  std::thread sender{[&] {
    Random random{7};
    for (int i = 0; i < count; ++i) {
      std::string text = std::to_string(i) + " ";
      text.resize(text.size() + random.below(random.below(200) == 0 ? 1500 : 150), '.');
      while (send_text(there, text) == SendState::full && !gives_up) {
        std::this_thread::yield();
      }
    }
  }};
  const bool has_come = poll_until(
      {&a, &b},
      [&] {
        std::this_thread::yield();  // Where processors are few, the sender needs this one.
        return b.sink.packets.size() == static_cast<std::size_t>(count);
      },
      10 * kPatienceNs);
  gives_up = !has_come;
  sender.join();
  ASSERT_TRUE(has_come);
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(std::stoi(b.sink.packets[static_cast<std::size_t>(i)].second), i);
  }
}

TEST_P(DriverContract, TheShortWayIsOneOfTheTwo) {
  join();
  Driver::Sight seen;
  if (!a.driver->capabilities().has_short_way) {
    EXPECT_EQ(a_to_b().try_place(8), nullptr);
    ASSERT_TRUE(send_patiently({&a, &b}, a_to_b(), "poll"));
    EXPECT_FALSE(b.driver->sight(10, seen));
    return;
  }
  bool must_ring = false;
  // Packets placed and sent, seen and handed over, in all combinations: one order.
  const auto text_of = [](Packet packet) {
    return std::string{reinterpret_cast<const char*>(packet.data()), packet.size()};
  };
  std::vector<std::string> sent;
  for (const std::uint32_t bytes : {1U, 56U, 376U, 377U, 5000U, packet_bytes_max()}) {
    for (const char way : {'p', 's'}) {
      sent.emplace_back(bytes, static_cast<char>(way + sent.size() % 2));
      if (way == 'p') {
        std::byte* const place = a_to_b().try_place(bytes);
        ASSERT_NE(place, nullptr);
        std::memcpy(place, sent.back().data(), bytes);
        ASSERT_EQ(a_to_b().send_placed(must_ring), SendState::accepted);
      } else {
        ASSERT_EQ(send_text(a_to_b(), sent.back()), SendState::accepted);
      }
    }
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ASSERT_TRUE(b.driver->sight(10, seen)) << i;
    EXPECT_EQ(seen.from_node, 0U);
    EXPECT_EQ(text_of(seen.packet), sent[i]);
    if (i % 3 == 0) {
      EXPECT_EQ(b.poll(1), 1U);
      EXPECT_EQ(b.sink.packets.back().second, sent[i]);
    } else {
      b.driver->pass_sight();
    }
  }
  EXPECT_FALSE(must_ring) << "nobody slept";
  EXPECT_FALSE(b.driver->sight(10, seen));
  EXPECT_EQ(b.poll(), 0U);
}

TEST_P(DriverContract, TheShortWayLeavesTheBellToItsSender) {
  join();
  if (!a.driver->capabilities().has_short_way) {
    return;
  }
  Channel& channel = a_to_b();
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.driver->prepare_sleep(); }));
  const auto is_rung = [&] {
    pollfd bell{.fd = b.driver->fd(), .events = POLLIN, .revents = 0};
    return ::poll(&bell, 1, 0) == 1;
  };
  bool must_ring = false;
  std::byte* const place = channel.try_place(8);
  ASSERT_NE(place, nullptr);
  std::memset(place, 'x', 8);
  const std::uint64_t before_ns = now_ns();
  ASSERT_EQ(channel.send_placed(must_ring), SendState::accepted);
  EXPECT_TRUE(must_ring);
  EXPECT_FALSE(is_rung());
  channel.ring();
  EXPECT_TRUE(is_rung());
  channel.ring();  // It was woken already.
  EXPECT_GE(b.driver->rung_ns(), before_ns);
  EXPECT_LE(b.driver->rung_ns(), now_ns());
  b.driver->end_sleep();
  EXPECT_FALSE(is_rung());
  EXPECT_TRUE(poll_until({&b}, [&] { return !b.sink.packets.empty(); }));
}

TEST_P(DriverContract, TheShortWayIsFullOrClosedAsTheOther) {
  join();
  if (!a.driver->capabilities().has_short_way) {
    return;
  }
  bool must_ring = false;
  for (const std::uint32_t bytes : {8U, 1000U}) {
    int sent = 0;
    const auto send_one = [&] {
      if (std::byte* const place = a_to_b().try_place(bytes); place != nullptr) {
        std::memset(place, sent, bytes);
        return a_to_b().send_placed(must_ring) == SendState::accepted;
      }
      return false;
    };
    for (; sent < 100'000 && send_one(); ++sent) {
    }
    ASSERT_LT(sent, 100'000);
    EXPECT_EQ(send_text(a_to_b(), std::string(bytes, 'x')), SendState::full);
    Driver::Sight seen;
    for (int i = 0; i < sent; ++i) {
      ASSERT_TRUE(b.driver->sight(0, seen));
      ASSERT_EQ(seen.packet.size(), bytes);
      ASSERT_EQ(std::to_integer<int>(seen.packet[bytes - 1]), i % 256);
      b.driver->pass_sight();
    }
    EXPECT_TRUE(send_one());
    b.sink.packets.clear();
    ASSERT_TRUE(poll_until({&b}, [&] { return !b.sink.packets.empty(); }));
  }
  a.driver->close();
  EXPECT_EQ(a_to_b().try_place(8), nullptr);
  EXPECT_EQ(b_to_a().try_place(8), nullptr);
}

TEST_P(DriverContract, OrderlyCloseIsNoLoss) {
  join();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(send_patiently({&a, &b}, a_to_b(), std::string(1000, 'x')));
  }
  a.driver->close();
  EXPECT_EQ(send_text(a_to_b(), "late"), SendState::closed);
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.driver->is_drained(); }));
  Channel& back = b_to_a();
  a.driver.reset();
  EXPECT_TRUE(poll_until({&b}, [&] { return b.sink.packets.size() == 50; }));
  EXPECT_TRUE(poll_until({&b}, [&] { return send_text(back, "x") == SendState::closed; }));
  EXPECT_TRUE(b.sink.losses.empty());
}

TEST_P(DriverContract, APeerThatNobodyEverTalkedToIsLostWhenTheLauncherSaysSo) {
  a.driver->lose_peer(1);
  EXPECT_TRUE(poll_until({&a}, [&] { return !a.sink.losses.empty(); }));
  ASSERT_EQ(a.sink.losses.size(), 1U);
  EXPECT_EQ(a.sink.losses[0].first, 1U);
  a.driver->lose_peer(1);
  a.poll();
  EXPECT_EQ(a.sink.losses.size(), 1U) << "it is told once";
}

TEST_P(DriverContract, ForeignAddressIsNotReached) {
  const std::string text = "not an address";
  const Packet address = std::as_bytes(std::span{text});
  EXPECT_FALSE(a.driver->reaches(1, address));
  EXPECT_FALSE(a.driver->connect(1, address).has_value());
}

TEST_P(DriverContract, WrongSizesBreakARule) {
  Channel& channel = a_to_b();
  const std::string text(packet_bytes_max() + 1, 'x');
  EXPECT_DEATH(static_cast<void>(send_text(channel, text)), "packet_bytes_max");
  EXPECT_DEATH(static_cast<void>(send_text(channel, "")), "between 1 and packet_bytes_max");
}

constexpr auto kName = [](const auto& entry) { return test_name_of(entry.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, DriverContract, testing::ValuesIn(drivers_to_test()), kName);
INSTANTIATE_TEST_SUITE_P(Simulated, DriverContract, testing::Values("sim"), kName);
// What is around a driver keeps all its rules; those that lose packets when they lose none
// (decorators_test.cc has what they do else).
INSTANTIATE_TEST_SUITE_P(Decorators, DriverContract,
                         testing::Values("count(shm)", "delay(shm,latency=20us)",
                                         "delay(tcp,latency=20us,bandwidth=2G)", "drop(tcp,rate=0)",
                                         "corrupt(shm,rate=0)", "duplicate(tcp,rate=0)",
                                         "reorder(shm,rate=0)", "cut(tcp)", "tcp@lo",
                                         "count(delay(sim,latency=0))", "count(fabric@tcp)",
                                         "trace(shm)", "trace(tcp)", "record(tcp)", "record(shm)"),
                         kName);

}  // namespace
}  // namespace sterna::net
