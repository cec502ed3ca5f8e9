// What an endpoint takes from whom: its peer is played by hand here. And what it leaves as it was.
#include <algorithm>
#include <array>
#include <csignal>

#include "net/drivers/fabric/boards.h"
#include "net/drivers/fabric/driver.h"
#include "net/drivers/test_nodes.h"

// Where sanitizers ask what of a library is not ours to mend.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libfabric\nleak:libpsm\nleak:libefa\n";
}
extern "C" const char* __tsan_default_suppressions() {
  // The destructor of the library itself has no name: its caller stands for it.
  return "called_from_lib:libfabric\nrace:libfabric\nmutex:libfabric\nmutex:_dl_call_fini\n";
}

namespace sterna::net::fabric {
namespace {

constexpr std::uint32_t kWindow = 128;  // The defaults.
constexpr std::uint32_t kMessageBytes = 16 << 10;

/// Node 1: a connection and an endpoint, and no driver.
class ByHand : public testing::Test, protected PacketSink {
 protected:
  void SetUp() override {
    if (!a.absent.empty()) {
      // Says which: libfabric, or a provider of it, is not on this machine.
      GTEST_SKIP() << a.absent;
    }
    auto control = tcp::open_sockets({.bootstrap = &job.node(1)}, false);
    ASSERT_TRUE(control.has_value());
    connection = std::move(control.value());
    auto opened = Endpoint::open({.provider = "tcp",
                                  .domain = {},
                                  .may_read = false,
                                  .message_bytes = kMessageBytes,
                                  .completions_max = 64});
    ASSERT_TRUE(opened.has_value()) << opened.error().text;
    endpoint = std::move(opened.value());
    ASSERT_TRUE(endpoint->make_buffers(4, false, 0, receives).has_value());
    for (Buffer* buffer : receives) {
      ASSERT_EQ(endpoint->receive(*buffer), Endpoint::Posted::done);
    }
    ASSERT_TRUE(endpoint->make_buffers(16, true, 0, sends).has_value());
    const auto control_address = decode_address(a.driver->address()).value().control;
    auto connected = connection->connect(0, control_address);
    ASSERT_TRUE(connected.has_value());
    way = connected.value();
    const Packet own = connection->address();
    const auto address = encode(Address{endpoint->provider(), {own.begin(), own.end()}});
    ASSERT_TRUE(a.driver->reaches(1, address));
    there = &a.to(1, address);
  }
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    EXPECT_EQ(from_node, 0U);
    auto read = decode_hello(packet);
    ASSERT_TRUE(read.has_value());
    hello = read.value();
  }
  void on_peer_lost(std::uint32_t, std::string_view) noexcept override { is_lost = true; }

  /// Moves everything on until `is_done()`.
  template <typename Done>
  bool run(Done is_done) {
    return poll_until({&a}, [&] {
      connection->poll(*this, 64);
      std::array<Endpoint::Completion, 4> completions;
      const std::uint32_t count = endpoint->poll(completions);
      for (const Endpoint::Completion& done : std::span{completions}.first(count)) {
        Frame frame;
        Packet packet;
        if (!done.buffer->is_send && done.error == 0 &&
            read_frame({done.buffer->memory, done.buffer->bytes}, frame, packet)) {
          told = frame.taken;
        }
        if (!done.buffer->is_send) {
          static_cast<void>(endpoint->receive(*done.buffer));
        }
      }
      return is_done();
    });
  }
  void say_hello(std::uint32_t window) {
    const auto name = endpoint->name();
    const auto bytes = encode(Hello{.token = kOwnToken,
                                    .window = window,
                                    .message_bytes = kMessageBytes,
                                    .can_read = false,
                                    .name = {name.begin(), name.end()}});
    const Piece piece{bytes};
    ASSERT_EQ(way->try_send({&piece, 1}), SendState::accepted);
  }
  void meet() {
    say_hello(kWindow);
    hear_hello();
  }
  void hear_hello() {
    ASSERT_TRUE(run([&] { return hello.token != 0; }));
    auto inserted = endpoint->insert(hello.name);
    ASSERT_TRUE(inserted.has_value());
    peer = inserted.value();
  }
  /// A message of these bytes, and then `text`.
  void send(const Frame& frame, const std::string& text) {
    Buffer& buffer = *sends.back();
    sends.pop_back();
    write_frame(frame, buffer.memory);
    std::memcpy(buffer.memory + kFrameBytes, text.data(), text.size());
    buffer.bytes = static_cast<std::uint32_t>(kFrameBytes + text.size());
    bool was_injected;
    ASSERT_TRUE(
        run([&] { return endpoint->send(buffer, peer, was_injected) == Endpoint::Posted::done; }));
    if (was_injected) {
      sends.push_back(&buffer);
    }
  }
  Frame right(std::uint32_t order) const {
    return {
        .kind = FrameKind::data, .from_node = 1, .token = hello.token, .order = order, .taken = 0};
  }

  static constexpr std::uint64_t kOwnToken = 4711;
  TestJob job{3};
  TestNode a{choice_of("fabric@tcp"), job, 0};
  std::unique_ptr<tcp::TcpDriver> connection;
  std::unique_ptr<Endpoint> endpoint;
  std::vector<Buffer*> receives;
  std::vector<Buffer*> sends;
  Channel* way = nullptr;
  Channel* there = nullptr;
  Hello hello;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  bool is_lost = false;
  std::uint32_t told = 0;  // How many of our messages node 0 has taken, as it says.
};

TEST_F(ByHand, MessagesOfNobodyAreDropped) {
  meet();
  Frame wrong = right(0);
  wrong.token ^= 1;
  send(wrong, "a token that nobody has");
  wrong = right(0);
  wrong.from_node = 2;
  send(wrong, "a node that has not said hello");
  wrong.from_node = 3;
  send(wrong, "a node that is not of the job");
  wrong = right(0);
  wrong.kind = static_cast<FrameKind>(77);
  send(wrong, "a message of no kind");
  wrong.kind = FrameKind::taken;
  send(wrong, "a word that is too long");
  send(right(0), "");
  send(right(0), "right");
  send(right(1), "and right");
  ASSERT_TRUE(run([&] { return a.sink.packets.size() == 2; }));
  EXPECT_EQ(a.sink.packets[0].second, "right");
  EXPECT_EQ(a.sink.packets[1].second, "and right");
  EXPECT_NE(a.driver->figures().find("; 6 messages came that were of nobody"), std::string::npos)
      << a.driver->figures();
  EXPECT_TRUE(a.sink.losses.empty() && !is_lost);
}

TEST_F(ByHand, MessagesThatDoNotFollowOneAnotherLoseThePeer) {
  meet();
  send(right(0), "first");
  send(right(2), "third");
  ASSERT_TRUE(run([&] { return !a.sink.losses.empty() && is_lost; }));
  EXPECT_NE(a.sink.losses[0].second.find("do not follow"), std::string::npos);
  EXPECT_EQ(a.sink.packets.size(), 1U);
  EXPECT_EQ(send_text(*there, "x"), SendState::closed);
}

TEST_F(ByHand, NobodyHasTakenMoreThanWasSent) {
  meet();
  Frame wrong = right(0);
  wrong.taken = 1;
  send(wrong, "I have taken one");
  ASSERT_TRUE(run([&] { return !a.sink.losses.empty(); }));
  EXPECT_TRUE(a.sink.packets.empty());
}

/// A frame that lends, with these words of its loan.
std::string loan_text(std::uint32_t bytes) {
  const Loan loan{.id = 1, .address = 0, .key = 4711, .bytes = bytes, .unused = 0, .head = {}};
  return {reinterpret_cast<const char*>(&loan), kLoanBytes};
}

TEST_F(ByHand, WhoLendsNothingOrTooMuchLosesThePeer) {
  meet();
  Frame lends = right(0);
  lends.kind = FrameKind::lend;
  send(lends, loan_text(0));
  ASSERT_TRUE(run([&] { return !a.sink.losses.empty(); }));
  EXPECT_NE(a.sink.losses[0].second.find("lends"), std::string::npos) << a.sink.losses[0].second;
}

TEST_F(ByHand, WhatNobodyHasLentMayComeBack) {
  meet();
  const LoanEnd end{.id = 99, .is_whole = 1, .unused = 0};
  Frame returned = right(0);
  returned.kind = FrameKind::returned;
  send(returned, {reinterpret_cast<const char*>(&end), kLoanEndBytes});
  send(right(1), "and a packet");
  ASSERT_TRUE(run([&] { return a.sink.packets.size() == 1; }));
  EXPECT_TRUE(a.sink.losses.empty() && !is_lost);
}

TEST_F(ByHand, AnotherWindowIsRefused) {
  say_hello(kWindow / 2);
  ASSERT_TRUE(run([&] { return !a.sink.losses.empty() && is_lost; }));
  EXPECT_NE(a.sink.losses[0].second.find("fabric_window"), std::string::npos);
}

TEST_F(ByHand, WhoDoesNotTakeIsSentNoMoreThanAWindow) {
  meet();
  std::uint32_t accepted = 0;
  while (send_text(*there, "x") == SendState::accepted) {
    ASSERT_LE(++accepted, kWindow);
  }
  EXPECT_EQ(accepted, kWindow);
  Frame taken = right(0);
  taken.kind = FrameKind::taken;
  taken.taken = 10;
  // As many as it says are free again, once they have left.
  send(taken, "");
  ASSERT_TRUE(run([&] { return send_text(*there, "y") == SendState::accepted; }));
}

// Its messages and its hello take different ways. It may send no more until it hears of these.
TEST_F(ByHand, AWindowThatComesBeforeTheHelloIsSaidToBeTaken) {
  hear_hello();
  for (std::uint32_t i = 0; i < kWindow; ++i) {
    send(right(i), "early");
  }
  ASSERT_TRUE(run([&] { return a.sink.packets.size() == kWindow; }));
  EXPECT_EQ(told, 0U);  // It has not heard where we are.
  say_hello(kWindow);
  EXPECT_TRUE(run([&] { return told == kWindow; }));
  EXPECT_TRUE(a.sink.losses.empty() && !is_lost);
}

TEST_F(ByHand, APeerIsLostWhileAnotherOneSendsAllTheTime) {
  meet();
  auto opened = tcp::open_sockets({.bootstrap = &job.node(2)}, false);
  ASSERT_TRUE(opened.has_value());
  std::unique_ptr<tcp::TcpDriver> other = std::move(opened.value());
  ASSERT_TRUE(other->connect(0, decode_address(a.driver->address()).value().control).has_value());
  ASSERT_TRUE(poll_until({&a}, [&] {
    other->poll(*this, 1);
    return other->known_channel(0)->state() == tcp::TcpChannel::State::open;
  }));
  std::uint32_t sent = 0;
  while (sent < kWindow / 2) {
    send(right(sent++), "x");
  }
  other.reset();
  // A message is there whenever it looks, and it takes one at a time.
  constexpr std::uint64_t kLongNs = 60'000'000'000;
  EXPECT_TRUE(poll_until(
      {},
      [&] {
        send(right(sent++), "x");
        a.poll(1);
        return !a.sink.losses.empty();
      },
      kLongNs));
  ASSERT_EQ(a.sink.losses.size(), 1U);
  EXPECT_EQ(a.sink.losses[0].first, 2U) << a.sink.losses[0].second;
}

/// How many of the longest packets go to a peer that does not take them.
std::uint32_t count_accepted(TestNode& a, TestNode& b) {
  Channel& way = a.to(b, 1);
  const std::string text(a.driver->capabilities().packet_bytes_max, 'x');
  EXPECT_TRUE(send_patiently({&a, &b}, way, "first"));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return !b.sink.packets.empty(); }));
  std::uint32_t accepted = 0;
  while (accepted <= kWindow && send_text(way, text) == SendState::accepted) {
    ++accepted;
  }
  return accepted;
}

// See Endpoint::bytes_under_way_max().
TEST(Fabric, OfLongPacketsTheProviderSocketsGetsFewAtOnce) {
  for (const char* provider : {"tcp", "sockets"}) {
    TestJob job{2};
    TestNode a{choice_of(std::string{"fabric@"} + provider), job, 0};
    TestNode b{choice_of(std::string{"fabric@"} + provider), job, 1};
    if (!a.absent.empty()) {
      // Says which: libfabric, or a provider of it, is not on this machine.
      GTEST_SKIP() << a.absent;
    }
    const std::uint32_t accepted = count_accepted(a, b);
    EXPECT_GE(accepted, 4U) << provider;
    if (std::string_view{provider} == "sockets") {
      EXPECT_LE(accepted * kMessageBytes, 128U << 10);
    } else {
      EXPECT_GE(accepted, kWindow / 2);
    }
  }
}

TEST(Fabric, SignalsStayOurs) {
  const auto actions = [] {
    std::vector<void (*)(int)> found;
    for (int signal = 1; signal < 32; ++signal) {
      struct sigaction action{};
      ::sigaction(signal, nullptr, &action);
      found.push_back(action.sa_handler);
    }
    return found;
  };
  const auto before = actions();
  for (const char* provider : {"tcp", "shm", "sockets"}) {
    TestJob job{2};
    const TestNode node{choice_of(std::string{"fabric@"} + provider), job, 0};
    if (!node.absent.empty()) {
      // Says which: libfabric, or a provider of it, is not on this machine.
      GTEST_SKIP() << node.absent;  // Libfabric, or a provider of it.
    }
    EXPECT_EQ(actions(), before) << provider;
  }
  EXPECT_EQ(actions(), before);
}

TEST(Fabric, AProviderThatIsAbsentIsSaid) {
  TestJob job{2};
  const DriverChoice choice = choice_of("fabric@pigeon");
  const auto opened = open_driver(choice, {.bootstrap = &job.node(0)});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::unsupported);
  EXPECT_NE(opened.error().text.find("fabric@pigeon"), std::string::npos) << opened.error().text;
}

TEST(Fabric, ADomainThatIsAbsentIsAnsweredWithThoseThatAreThere) {
  TestJob job{2};
  const TestNode node{choice_of("fabric@tcp"), job, 0};
  if (!node.absent.empty()) {
    // Says which: libfabric, or a provider of it, is not on this machine.
    GTEST_SKIP() << node.absent;  // Libfabric, or a provider of it.
  }
  const DriverChoice choice = choice_of("fabric@tcp:moon0");
  const auto opened = open_driver(choice, {.bootstrap = &job.node(1)});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::unsupported);
  for (const char* part : {"fabric@tcp:moon0", "provider tcp on moon0", "the domains", "lo"}) {
    EXPECT_NE(opened.error().text.find(part), std::string::npos) << opened.error().text;
  }
}

TEST(Fabric, BoardsAreNamedSoThatTheDriverOpensOnThem) {
  const std::vector<std::string> found = boards();
  TestJob job{2};
  const TestNode node{choice_of("fabric@tcp:lo"), job, 0};
  EXPECT_EQ(std::ranges::find(found, "tcp:lo") != found.end(), node.absent.empty()) << node.absent;
  for (const std::string& board : found) {
    EXPECT_TRUE(choose_drivers("fabric@" + board).has_value()) << board;
    EXPECT_EQ(std::ranges::count(found, board), 1) << board;
  }
}

TEST(Fabric, AnInstanceNamesABoard) {
  TestJob job{2};
  const TestNode node{choice_of("fabric@tcp:lo"), job, 0};
  if (!node.absent.empty()) {
    // Says which: libfabric, or a provider of it, is not on this machine.
    GTEST_SKIP() << node.absent;  // Libfabric, or a provider of it.
  }
  EXPECT_NE(node.driver->figures().find(" on lo:"), std::string::npos) << node.driver->figures();
  auto both = choose_drivers("fabric@verbs:mlx5_0,fabric@verbs:mlx5_1");
  ASSERT_TRUE(both.has_value()) << both.error().text;
  EXPECT_EQ(both.value()[1].instance, "verbs:mlx5_1");
}

}  // namespace
}  // namespace sterna::net::fabric
