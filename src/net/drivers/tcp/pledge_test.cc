// Attempts to connect that are given up at the worst moment: the other side has admitted them and
// has said so, but nobody has heard. Both nodes agree on one connection all the same, and none is
// lost.
//
// A node that gives up is played by the test, step by step, with the secret of the job.
#include <array>

#include <poll.h>
#include <sys/socket.h>

#include "base/syscall.h"
#include "net/drivers/builtin.h"
#include "net/drivers/tcp/address.h"
#include "net/drivers/tcp/tunables.h"
#include "net/drivers/test_nodes.h"
#include "net/opening/auth.h"

namespace sterna::net {
namespace {

/// The side that connects, as far as the test lets it go.
class Played {
 public:
  Played(TestJob& job, std::uint32_t self, TestNode& peer, std::uint32_t node)
      : peer_{peer},
        handshake_{Handshake::initiate(job.map_of(self).secret,
                                       {.self = self, .peer = node, .node_count = 2},
                                       random_nonce())} {
    const auto told = tcp::decode(peer.driver->address()).value();
    const tcp::SocketAddress& address = told.addresses[0];
    socket_ = FileDescriptor{::socket(address.storage.ss_family, SOCK_STREAM, 0)};
    check(::connect(socket_.get(), address.get(), address.bytes) == 0, "the node listens");
    reply();
  }
  /// Up to the verdict, which waits to be read.
  [[nodiscard]] bool prove() {
    return await() && take() == Handshake::State::running && reply() && await();
  }
  Handshake::State take() {
    std::array<std::byte, Handshake::kMessageBytesMax> message;
    const std::size_t wanted = handshake_.bytes_wanted();
    const auto got = ::recv(socket_.get(), message.data(), wanted, MSG_DONTWAIT);
    return got == static_cast<ssize_t>(wanted) ? handshake_.take(std::span{message}.first(wanted))
                                               : Handshake::State::refused;
  }
  bool reply() {
    const auto bytes = handshake_.reply();
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  /// Until as much is there as the next message of the handshake has, or `bytes`.
  [[nodiscard]] bool await(std::size_t bytes = 0) {
    return poll_until({&peer_},
                      [&] { return bytes_here() >= std::max(bytes, handshake_.bytes_wanted()); });
  }
  [[nodiscard]] std::size_t bytes_here() const {
    std::array<std::byte, 256> place;
    const auto got = ::recv(socket_.get(), place.data(), place.size(), MSG_PEEK | MSG_DONTWAIT);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  /// With what it did not read: of a tcp connection the other side hears a reset.
  void give_up() { socket_ = FileDescriptor{}; }

 private:
  TestNode& peer_;
  Handshake handshake_;
  FileDescriptor socket_;
};

class Pledge : public testing::TestWithParam<const DriverEntry*> {
 protected:
  void expect_traffic_and_no_loss() {
    ASSERT_TRUE(send_patiently({&low, &high}, low.to(high, 1), "to the higher one"));
    ASSERT_TRUE(send_patiently({&low, &high}, high.to(low, 0), "to the lower one"));
    EXPECT_TRUE(poll_until(
        {&low, &high}, [&] { return !high.sink.packets.empty() && !low.sink.packets.empty(); }));
    EXPECT_TRUE(low.sink.losses.empty()) << low.sink.losses[0].second;
    EXPECT_TRUE(high.sink.losses.empty()) << high.sink.losses[0].second;
  }

  Settings settings{tcp::kTunables};
  TestJob job{2};
  TestNode low{*GetParam(), job, 0, DriverOptions{.settings = &settings}};
  TestNode high{*GetParam(), job, 1, DriverOptions{.settings = &settings}};
};

TEST_P(Pledge, WhoGaveUpBeforeTheVerdictComesAgain) {
  Played attempt{job, 0, high, 1};
  ASSERT_TRUE(attempt.prove());
  attempt.give_up();
  expect_traffic_and_no_loss();
}

TEST_P(Pledge, TheAttemptOfTheHigherNodeStaysWhenThatOfTheLowerWasGivenUp) {
  ASSERT_EQ(send_text(high.to(low, 0), "first"), SendState::accepted);
  high.poll();  // It has connected: the lower node does not look yet.
  Played attempt{job, 0, high, 1};
  ASSERT_TRUE(attempt.prove());
  attempt.give_up();
  expect_traffic_and_no_loss();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(low.sink.packets.front().second, "first");
}

TEST_P(Pledge, TheLowerNodeConnectsWhenTheAttemptOfTheHigherWasGivenUp) {
  Played attempt{job, 1, low, 0};
  ASSERT_TRUE(attempt.prove());
  ASSERT_EQ(send_text(low.to(high, 1), "first"), SendState::accepted);
  low.poll();
  attempt.give_up();
  expect_traffic_and_no_loss();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(high.sink.packets.front().second, "first");
}

TEST_P(Pledge, NothingIsSentBeforeTheConfirmationAndNoOtherConnectionTaken) {
  Played first{job, 0, high, 1};
  ASSERT_TRUE(first.prove());
  Played second{job, 0, high, 1};
  ASSERT_TRUE(second.prove());
  EXPECT_EQ(second.take(), Handshake::State::declined);
  ASSERT_EQ(first.take(), Handshake::State::admitted);
  static_cast<void>(send_text(high.to(low, 0), "to the one who has confirmed"));
  high.poll();
  EXPECT_EQ(first.bytes_here(), 0U);
  ASSERT_TRUE(first.reply());
  EXPECT_TRUE(first.await(1));
  EXPECT_TRUE(high.sink.losses.empty());
}

constexpr auto kName = [](const auto& entry) { return std::string{entry.param->name}; };
INSTANTIATE_TEST_SUITE_P(Drivers, Pledge, testing::Values(&kTcpDriver, &kUnixDriver), kName);

}  // namespace
}  // namespace sterna::net
