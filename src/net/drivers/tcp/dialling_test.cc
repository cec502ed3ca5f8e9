// Who is called, or calls, and then computes for longer than every limit is not lost.
#include <algorithm>
#include <optional>

#include <sys/socket.h>

#include "net/drivers/builtin.h"
#include "net/drivers/tcp/driver.h"
#include "net/drivers/tcp/tunables.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kLongNs = 2'500'000'000;  // Longer than both limits together.

class Dialling : public testing::TestWithParam<const DriverEntry*> {
 protected:
  Dialling() {
    for (const auto& [name, value] : {std::pair{"tcp_handshake_timeout", "300ms"},
                                      std::pair{"tcp_connect_timeout", "1s"}}) {
      check(settings.set(name, value, SettingSource::command_line, "test").has_value(),
            "the settings of the test are valid");
    }
    a.emplace(*GetParam(), job, 0, DriverOptions{.settings = &settings});
    b.emplace(*GetParam(), job, 1, DriverOptions{.settings = &settings});
  }
  void poll_only(TestNode& node) {
    EXPECT_FALSE(poll_until({&node}, [&] { return !node.sink.losses.empty(); }, kLongNs))
        << node.sink.losses.front().second;
  }
  void expect_arrival(TestNode& at) {
    EXPECT_TRUE(poll_until({&*a, &*b}, [&] {
      return !at.sink.packets.empty() || !a->sink.losses.empty() || !b->sink.losses.empty();
    }));
    EXPECT_FALSE(at.sink.packets.empty());
    EXPECT_TRUE(a->sink.losses.empty());
    EXPECT_TRUE(b->sink.losses.empty());
  }
  /// Of `node`, with a second one before or behind: `other`'s.
  static std::vector<std::byte> addresses(const TestNode& node, const tcp::SocketAddress& other,
                                          bool is_other_first) {
    tcp::Listening told = tcp::decode(node.driver->address()).value();
    told.addresses.resize(1);
    told.addresses.insert(is_other_first ? told.addresses.begin() : told.addresses.end(), other);
    return tcp::encode(told);
  }
  /// Listens, and says nothing; with `is_open` false nobody is there any more.
  tcp::SocketAddress someone_else(bool is_open) {
    tcp::Options options;
    options.is_unix = GetParam()->name == "unix";
    tcp::Listener listener = std::move(tcp::listen_for_peers(options, true).value());
    if (is_open) {
      other = std::move(listener.socket);
    }
    return listener.told.addresses.front();
  }

  Settings settings{tcp::kTunables};
  TestJob job{2};
  FileDescriptor other;
  std::optional<TestNode> a;
  std::optional<TestNode> b;
};

TEST_P(Dialling, APeerThatComputesIsReachedWhenItHasDone) {
  ASSERT_EQ(send_text(a->to(*b, 1), "first"), SendState::accepted);
  poll_only(*a);
  expect_arrival(*b);
}

TEST_P(Dialling, ThePeerThatComputedMayCallToo) {
  for (TestNode* caller : {&*a, &*b}) {
    TestNode& callee = caller == &*a ? *b : *a;
    ASSERT_EQ(send_text(caller->to(callee, caller == &*a ? 1 : 0), "x"), SendState::accepted);
  }
  poll_only(*a);
  expect_arrival(*a);
  expect_arrival(*b);
}

TEST_P(Dialling, TheHigherNodeWaitsAsWell) {
  ASSERT_EQ(send_text(b->to(*a, 0), "first"), SendState::accepted);
  poll_only(*b);
  expect_arrival(*a);
}

TEST_P(Dialling, WhoCallsAndComputesHasReachedNobodyAndLosesNobody) {
  ASSERT_EQ(send_text(a->to(*b, 1), "first"), SendState::accepted);
  a->poll();
  poll_only(*b);  // It answers, and closes when a does not go on.
  expect_arrival(*b);
}

TEST_P(Dialling, ASilentAddressDoesNotKeepTheOthersFromBeingTried) {
  const auto told = addresses(*b, someone_else(true), true);
  ASSERT_EQ(send_text(a->to(1, told), "first"), SendState::accepted);
  expect_arrival(*b);
}

TEST_P(Dialling, AnAddressThatIsDeadDoesNotEndThePatienceWithAnother) {
  const auto told = addresses(*b, someone_else(false), false);
  ASSERT_EQ(send_text(a->to(1, told), "first"), SendState::accepted);
  poll_only(*a);
  expect_arrival(*b);
}

TEST_P(Dialling, WhoDiesBeforeItAnswersIsLost) {
  ASSERT_EQ(send_text(a->to(*b, 1), "first"), SendState::accepted);
  poll_only(*a);
  b.reset();
  EXPECT_TRUE(poll_until({&*a}, [&] { return !a->sink.losses.empty(); }));
}

TEST_P(Dialling, OneConnectionIsMadeWhereThePeerHasMoreAddresses) {
  const tcp::SocketAddress own = tcp::decode(b->driver->address()).value().addresses.front();
  ASSERT_EQ(send_text(a->to(1, addresses(*b, own, true)), "first"), SendState::accepted);
  poll_only(*a);  // Two attempts are with the peer.
  expect_arrival(*b);
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(send_patiently({&*a, &*b}, a->to(*b, 1), "more"));
  }
  EXPECT_TRUE(poll_until({&*a, &*b}, [&] { return b->sink.packets.size() == 201; }));
  EXPECT_TRUE(a->sink.losses.empty());
  EXPECT_TRUE(b->sink.losses.empty());
}

class TcpDialling : public Dialling {};

TEST_P(TcpDialling, WhileOneWaitsForASilentAddressAnotherIsTriedAgain) {
  // The peer is refused until it listens, after several rounds.
  const tcp::SocketAddress refused = someone_else(false);
  const tcp::SocketAddress silent = someone_else(true);
  const auto told = tcp::encode(
      {.network_token = tcp::network_token(), .addresses = {silent, refused}});
  ASSERT_EQ(send_text(a->to(1, told), "first"), SendState::accepted);
  poll_only(*a);
  const std::string text = refused.text();
  ASSERT_TRUE(settings
                  .set("tcp_ports", text.substr(text.rfind(':') + 1), SettingSource::command_line,
                       "test")
                  .has_value());
  b.emplace(*GetParam(), job, 1, DriverOptions{.settings = &settings});
  expect_arrival(*b);
}

constexpr auto kName = [](const auto& entry) { return std::string{entry.param->name}; };
INSTANTIATE_TEST_SUITE_P(Drivers, TcpDialling, testing::Values(&kTcpDriver), kName);
INSTANTIATE_TEST_SUITE_P(Drivers, Dialling, testing::Values(&kTcpDriver, &kUnixDriver), kName);

}  // namespace
}  // namespace sterna::net
