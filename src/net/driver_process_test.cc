// The contract of net/driver.h between two processes, one of which ends without a word. Not for the
// simulated network, which is inside one process.
#include <atomic>
#include <csignal>
#include <deque>
#include <optional>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "net/driver.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

class DriverProcesses : public testing::TestWithParam<std::string> {
 protected:
  /// Runs `body` as node 1 in another process, which ends by a signal, without closing anything.
  /// This one is node 0, from then on: a library that has kernel threads of its own (the provider
  /// sockets) may have locked anything while we fork, and the child would wait for ever. False:
  /// there is no such driver, a.absent says why.
  template <typename Body>
  [[nodiscard]] bool fork_node(Body body) {
    shared = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    child = ::fork();
    if (child == 0) {
      {
        TestNode node{choice_of(GetParam()), job, 1};
        if (node.absent.empty()) {
          exchange_addresses(node, 1);
          body(node);
        }
        ::kill(::getpid(), SIGKILL);
      }
    }
    a.emplace(choice_of(GetParam()), job, 0);
    if (!a->absent.empty()) {
      ::kill(child, SIGKILL);
      return false;
    }
    exchange_addresses(*a, 0);
    return true;
  }
  void exchange_addresses(TestNode& node, std::uint32_t index) {
    const Packet address = node.driver->address();
    std::memcpy(shared->address[index], address.data(), address.size());
    shared->bytes[index].store(address.size());
    while (shared->bytes[1 - index].load() == 0) {
      ::usleep(100);
    }
    peer = {shared->address[1 - index], shared->bytes[1 - index].load()};
  }
  void TearDown() override {
    if (child < 0) {
      return;
    }
    if (HasFatalFailure()) {
      ::kill(child, SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
  }

  struct Shared {
    std::byte address[2][1024];
    std::atomic<std::size_t> bytes[2];
    std::atomic<std::uint32_t> word;
  };
  TestJob job{2};
  std::optional<TestNode> a;
  Shared* shared = nullptr;
  Packet peer;
  pid_t child = -1;
};

TEST_P(DriverProcesses, DeadPeerIsReportedOnceAfterItsPackets) {
  const bool is_there = fork_node([&](TestNode& node) {
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(send_patiently({&node}, node.to(0, peer), std::to_string(i)));
    }
    static_cast<void>(poll_until({&node}, [&] { return shared->word.load() == 1; }));
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  ASSERT_TRUE(poll_until({&*a}, [&] { return a->sink.packets.size() == 100; }));
  shared->word = 1;
  ASSERT_TRUE(poll_until({&*a}, [&] { return !a->sink.losses.empty(); }));
  for (int i = 0; i < 5000; ++i) {
    a->poll();
  }
  ASSERT_EQ(a->sink.losses.size(), 1U);
  EXPECT_EQ(a->sink.losses[0].first, 1U);
  EXPECT_FALSE(a->sink.losses[0].second.empty());
  EXPECT_EQ(a->sink.packets_before_loss, 100U);
  EXPECT_EQ(send_text(a->to(1, peer), "x"), SendState::closed);
}

TEST_P(DriverProcesses, SleeperIsWokenByTheEndOfAPeer) {
  const bool is_there = fork_node([&](TestNode& node) {
    static_cast<void>(send_patiently({&node}, node.to(0, peer), "here"));
    static_cast<void>(poll_until({&node}, [&] { return shared->word.load() == 1; }));
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  ASSERT_TRUE(poll_until({&*a}, [&] { return a->sink.packets.size() == 1; }));
  const bool can_sleep = a->driver->fd() >= 0;
  ASSERT_TRUE(!can_sleep || poll_until({&*a}, [&] { return a->driver->prepare_sleep(); }));
  shared->word = 1;
  if (can_sleep) {
    ASSERT_TRUE(is_readable(a->driver->fd(), kPatienceMs));
    a->driver->end_sleep();
  }
  EXPECT_TRUE(poll_until({&*a}, [&] { return a->sink.losses.size() == 1; }));
}

TEST_P(DriverProcesses, FullChannelToADeadPeerCloses) {
  const bool is_there = fork_node([&](TestNode& node) {
    static_cast<void>(send_patiently({&node}, node.to(0, peer), "here"));
    static_cast<void>(poll_until({&node}, [&] { return !node.sink.packets.empty(); }));
    shared->word = 2;
    while (shared->word.load() == 2) {  // Does not poll: what is sent to it stays.
      ::usleep(100);
    }
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  ASSERT_TRUE(poll_until({&*a}, [&] { return a->sink.packets.size() == 1; }));
  const std::string text(1000, 'x');
  ASSERT_TRUE(send_patiently({&*a}, a->to(1, peer), text));
  ASSERT_TRUE(poll_until({&*a}, [&] { return shared->word.load() == 2; }));
  // The network may take some more a little later; in the end nothing moves.
  for (int full = 0; full < 50; ++full) {
    const SendState state = send_text(a->to(1, peer), text);
    ASSERT_NE(state, SendState::closed);
    if (state == SendState::accepted) {
      full = 0;
    } else {
      ::usleep(1'000);
    }
  }
  shared->word = 1;
  EXPECT_TRUE(
      poll_until({&*a}, [&] { return send_text(a->to(1, peer), text) == SendState::closed; }));
  EXPECT_TRUE(poll_until({&*a}, [&] { return a->sink.losses.size() == 1; }));
}

TEST_P(DriverProcesses, RandomPacketsSurviveBothWays) {
  // The provider sockets moves its messages in kernel threads of its own, which wait for a
  // processor while both sides poll.
  const std::size_t count = GetParam() == "fabric@sockets" ? 300 : 5000;
  const auto text_of = [](Random& random, std::uint32_t bytes_max) {
    std::string text(1 + random.below(random.chance(0.1) ? bytes_max : 200), '\0');
    for (char& c : text) {
      c = static_cast<char>(random.next());
    }
    return text;
  };
  const auto run = [&](TestNode& node, std::uint32_t self) {
    const std::uint32_t bytes_max = node.driver->capabilities().packet_bytes_max;
    Random sending{self + 1};
    Random expecting{2 - self};
    std::size_t checked = 0;
    const auto check_arrived = [&] {
      for (; checked < node.sink.packets.size(); ++checked) {
        if (node.sink.packets[checked].second != text_of(expecting, bytes_max)) {
          return false;
        }
        node.sink.packets[checked].second = {};
      }
      return true;
    };
    for (std::size_t i = 0; i < count; ++i) {
      if (!send_patiently({&node}, node.to(1 - self, peer), text_of(sending, bytes_max)) ||
          !check_arrived()) {
        return false;
      }
    }
    // However long all of them take: none keeps us waiting for ever.
    for (std::size_t before = 0; (before = node.sink.packets.size()) < count;) {
      if (!poll_until({&node}, [&] { return node.sink.packets.size() > before; })) {
        return false;
      }
    }
    return check_arrived();
  };
  const bool is_there = fork_node([&](TestNode& node) {
    if (run(node, 1)) {
      shared->word = 1;
    }
    static_cast<void>(poll_until({&node}, [&] { return shared->word.load() == 2; }));
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  EXPECT_TRUE(run(*a, 0));
  EXPECT_TRUE(poll_until({&*a}, [&] { return shared->word.load() == 1; }));
  shared->word = 2;
}

TEST_P(DriverProcesses, RemoteWritesArriveBeforeTheNextPacket) {
  // Made before fork: at the same address in both, private to each.
  constexpr std::size_t kBytes = 300'000;
  auto* target = static_cast<std::byte*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const bool is_there = fork_node([&](TestNode& node) {
    static_cast<void>(send_patiently({&node}, node.to(0, peer), "ready"));
    static_cast<void>(poll_until({&node}, [&] { return node.sink.packets.size() == 1; }));
    bool is_right = true;
    for (std::size_t i = 0; i < kBytes; ++i) {
      is_right = is_right && target[i] == static_cast<std::byte>(i * 7);
    }
    shared->word = is_right ? 1 : 2;
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  ASSERT_TRUE(poll_until({&*a}, [&] { return a->sink.packets.size() == 1; }));
  Channel& channel = a->to(1, peer);
  if (!channel.can_write_remote()) {
    ASSERT_TRUE(send_patiently({&*a}, channel, "nothing written"));
    // A driver that delays packets sends this one when it is polled.
    EXPECT_TRUE(poll_until({&*a}, [&] { return shared->word.load() == 2; }));
    // Only shared memory has one, and a system may forbid to write another process's memory; then
    // messages go in packets, which every other test of this suite looks at.
    GTEST_SKIP() << "this driver has no direct copy, or the system forbids it";
  }
  std::vector<std::byte> data(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) {
    data[i] = static_cast<std::byte>(i * 7);
  }
  const std::span<const std::byte> all{data};
  std::vector<Piece> local{all.first(1), all.subspan(1, 0), all.subspan(1, 99'999)};
  for (std::size_t at = 100'000; at < kBytes; at += 1000) {
    local.push_back(all.subspan(at, 1000));
  }
  const auto base = reinterpret_cast<std::uint64_t>(target);
  const RemotePiece remote[] = {{base, 150'001}, {base + 150'001, 0}, {base + 150'001, 149'999}};
  EXPECT_TRUE(channel.write_remote(local, remote).has_value());
  const RemotePiece nowhere[] = {{8, 1}};
  const auto refused = channel.write_remote({local.data(), 1}, nowhere);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::refused);
  ASSERT_TRUE(send_patiently({&*a}, channel, "written"));
  EXPECT_TRUE(poll_until({&*a}, [&] { return shared->word.load() != 0; }));
  EXPECT_EQ(shared->word.load(), 1U);
}

/// Holds a place for what is lent, and counts.
struct HoldingSink final : PacketSink {
  void on_packet(std::uint32_t /*from_node*/, Packet /*packet*/) noexcept override { ++packets; }
  void on_peer_lost(std::uint32_t /*node*/, std::string_view /*reason*/) noexcept override {
    ++losses;
    held_at_loss = held - ended;
  }
  std::span<std::byte> hold_place(std::uint32_t /*from_node*/, Packet /*head*/,
                                  std::uint32_t packet_bytes) noexcept override {
    ++held;
    memory.emplace_back(packet_bytes - kPacketHeadBytes);
    return memory.back();
  }
  void on_lent_end(std::uint32_t /*from_node*/, Packet /*head*/, std::uint32_t /*packet_bytes*/,
                   bool is_whole) noexcept override {
    ++ended;
    whole += is_whole ? 1 : 0;
  }
  std::deque<std::vector<std::byte>> memory;
  std::uint32_t packets = 0;
  std::uint32_t losses = 0;
  std::uint32_t held = 0;
  std::uint32_t ended = 0;
  std::uint32_t whole = 0;
  std::uint32_t held_at_loss = 0;
};

/// Lends as much as the channel takes.
void lend_all(TestNode& node, Channel& channel, std::deque<Lent>& lent, Piece bytes) {
  const std::string head(kPacketHeadBytes, 'p');
  do {
    node.poll();
    lent.emplace_back();
  } while (channel.try_lend(std::as_bytes(std::span{head}), bytes, lent.back()) ==
           SendState::accepted);
  lent.pop_back();
}

/// Nobody writes into a place that was held once the loss of its sender is told.
TEST_P(DriverProcesses, WhatADeadPeerHasLentEndsBeforeItsLossIsTold) {
  const bool is_there = fork_node([&](TestNode& node) {
    Channel& channel = node.to(0, peer);
    static_cast<void>(send_patiently({&node}, channel, "here"));
    static_cast<void>(poll_until({&node}, [&] { return !node.sink.packets.empty(); }));
    const std::vector<std::byte> bytes(8 << 20);
    std::deque<Lent> lent;
    shared->word = channel.lent_bytes_max() == 0 ? 3 : 2;
    while (shared->word.load() == 2) {
      lend_all(node, channel, lent, bytes);
    }
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  HoldingSink sink;
  ASSERT_TRUE(send_patiently({&*a}, a->to(1, peer), "here"));
  const auto poll_here_until = [&](auto is_done) {
    const std::uint64_t deadline = now_ns() + kPatienceNs;
    while (!is_done() && now_ns() < deadline) {
      a->driver->poll(sink, 64);
    }
    return is_done();
  };
  ASSERT_TRUE(poll_here_until([&] { return shared->word.load() >= 2 && sink.packets == 1; }));
  if (shared->word.load() == 2) {
    ASSERT_TRUE(poll_here_until([&] { return sink.whole >= 2 && sink.held > sink.ended; }));
    shared->word = 1;
  }
  ASSERT_TRUE(poll_here_until([&] { return sink.losses == 1; }));
  EXPECT_EQ(sink.held_at_loss, 0U);
  EXPECT_EQ(sink.held, sink.ended);
}

TEST_P(DriverProcesses, WhatADeadPeerWasLentComesBack) {
  const bool is_there = fork_node([&](TestNode& node) {
    Channel& channel = node.to(0, peer);
    static HoldingSink sink;  // What is being read into it is so until this process is killed.
    static_cast<void>(send_patiently({&node}, channel, "here"));
    while (shared->word.load() != 1) {
      node.driver->poll(sink, 64);
      shared->word = sink.whole >= 2 && sink.held > sink.ended ? 1 : 0;
    }
  });
  if (!is_there) {
    GTEST_SKIP() << a->absent;  // Libfabric, or a provider of it.
  }
  Channel& channel = a->to(1, peer);
  ASSERT_TRUE(send_patiently({&*a}, channel, "here"));
  ASSERT_TRUE(poll_until({&*a}, [&] { return a->sink.packets.size() == 1; }));
  if (channel.lent_bytes_max() == 0) {
    ::kill(child, SIGKILL);
    return;
  }
  const std::vector<std::byte> bytes(8 << 20);
  std::deque<Lent> lent;
  ASSERT_TRUE(poll_until({&*a}, [&] {
    lend_all(*a, channel, lent, bytes);
    return a->sink.losses.size() == 1;
  }));
  for (const Lent& one : lent) {
    const Lent::State state = one.state.load();
    EXPECT_TRUE(state == Lent::State::taken || state == Lent::State::returned);
  }
  EXPECT_TRUE(std::ranges::any_of(
      lent, [](const Lent& one) { return one.state.load() == Lent::State::returned; }));
}

constexpr auto kName = [](const auto& entry) { return test_name_of(entry.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, DriverProcesses, testing::ValuesIn(drivers_to_test()), kName);
INSTANTIATE_TEST_SUITE_P(Decorators, DriverProcesses,
                         testing::Values("count(shm)", "delay(tcp,latency=20us)", "trace(tcp)",
                                         "record(tcp)", "drop(tcp,rate=0)", "corrupt(shm,rate=0)"),
                         kName);

}  // namespace
}  // namespace sterna::net
