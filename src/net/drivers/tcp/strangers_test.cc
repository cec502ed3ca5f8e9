// Strangers at the listening socket: each is closed in bounded time with at most one line of log,
// and the nodes of the job still find each other.
#include <algorithm>
#include <cerrno>
#include <optional>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/drivers/builtin.h"
#include "net/drivers/tcp/address.h"
#include "net/drivers/tcp/tunables.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

class Strangers : public testing::TestWithParam<const DriverEntry*> {
 protected:
  Strangers() {
    check(settings.set("tcp_handshake_timeout", "1500ms", SettingSource::command_line, "test")
                  .has_value() &&
              settings.set("tcp_connect_timeout", "3s", SettingSource::command_line, "test")
                  .has_value() &&
              settings.set("tcp_strangers", "4", SettingSource::command_line, "test").has_value(),
          "the settings of the test are valid");
    check(::pipe2(log_pipe, O_NONBLOCK) == 0, "pipe");
    log.emplace(
        LogOptions{.prefix = {}, .level = LogLevel::warn, .subsystems = {}, .fd = log_pipe[1]});
    a.emplace(*GetParam(), job, 0, DriverOptions{.log = &*log, .settings = &settings});
    b.emplace(*GetParam(), job, 1, DriverOptions{.settings = &settings});
  }
  ~Strangers() override {
    for (const int fd : sockets) {
      ::close(fd);
    }
    ::close(log_pipe[0]);
    ::close(log_pipe[1]);
  }
  int dial() {
    const auto told = tcp::decode(a->driver->address()).value();
    const int fd = ::socket(told.addresses[0].storage.ss_family, SOCK_STREAM, 0);
    check(::connect(fd, told.addresses[0].get(), told.addresses[0].bytes) == 0, "connect");
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    sockets.push_back(fd);
    return fd;
  }
  bool is_closed(int fd) {
    char byte;
    const auto got = ::recv(fd, &byte, 1, 0);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  bool is_closed_in_time(int fd) {
    return poll_until({&*a}, [&] { return is_closed(fd); });
  }
  std::size_t log_lines() {
    std::string text(65536, '\0');
    const auto got = ::read(log_pipe[0], text.data(), text.size());
    logged = text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return static_cast<std::size_t>(std::ranges::count(logged, '\n'));
  }
  void expect_job_works() {
    ASSERT_TRUE(send_patiently({&*a, &*b}, b->to(*a, 0), "still here"));
    EXPECT_TRUE(poll_until({&*a, &*b}, [&] { return a->sink.packets.size() == 1; }));
    EXPECT_TRUE(a->sink.losses.empty());
  }

  Settings settings{tcp::kTunables};
  TestJob job{2};
  int log_pipe[2];
  std::optional<Log> log;
  std::optional<TestNode> a;
  std::optional<TestNode> b;
  std::vector<int> sockets;
  std::string logged;
};

TEST_P(Strangers, GarbageIsClosedAtOnceWithOneLine) {
  const int fd = dial();
  const std::string text = "GET / HTTP/1.1\r\nHost: you\r\nUser-Agent: somebody curious\r\n\r\n";
  ASSERT_EQ(::send(fd, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  EXPECT_TRUE(is_closed_in_time(fd));
  EXPECT_EQ(log_lines(), 1U);
  const bool is_tcp = GetParam()->name == "tcp";
  EXPECT_NE(logged.find(is_tcp ? "127.0.0.1:" : "unix"), std::string::npos) << logged;
  expect_job_works();
}

TEST_P(Strangers, PortScanIsNoTrouble) {
  for (int i = 0; i < 200; ++i) {
    const int fd = dial();
    if (i % 2 == 0) {
      const linger reset{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    ::close(fd);
    sockets.pop_back();
    a->poll();
  }
  expect_job_works();
  EXPECT_LE(log_lines(), 2U) << logged;
}

TEST_P(Strangers, SilentAndSlowOnesAreClosedInTime) {
  const int silent = dial();
  const int slow = dial();
  const std::string hello = "STN1aaaabbbbccccddddeeeeffffgggghhhhiiiijjjjkkkkllll";
  std::size_t sent = 0;
  EXPECT_TRUE(poll_until({&*a}, [&] {
    if (now_ns() / 50'000'000 % 2 == sent % 2 && sent < hello.size()) {
      static_cast<void>(::send(slow, &hello[sent++], 1, MSG_NOSIGNAL));
    }
    return is_closed(slow) && is_closed(silent);
  }));
  expect_job_works();
}

TEST_P(Strangers, AreFewAtATimeAndDoNotKeepPeersOut) {
  std::vector<int> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(dial());
    a->poll();
  }
  EXPECT_TRUE(poll_until(
      {&*a},
      [&] { return std::ranges::count_if(all, [&](int fd) { return is_closed(fd); }) >= 16; },
      1'000'000'000))
      << "the oldest give way at once, not when their time is over";
  expect_job_works();
}

TEST_P(Strangers, NodeWithAnotherSecretIsNeverHeard) {
  job.map_of(1).secret.fill(std::byte{1});
  b.emplace(*GetParam(), job, 1, DriverOptions{.settings = &settings});
  static_cast<void>(send_text(b->to(*a, 0), "let me in"));
  EXPECT_TRUE(poll_until({&*a, &*b}, [&] { return b->sink.losses.size() == 1; }));
  EXPECT_NE(b->sink.losses[0].second.find("secret"), std::string::npos) << b->sink.losses[0].second;
  EXPECT_TRUE(a->sink.packets.empty());
  EXPECT_GE(log_lines(), 1U);
}

TEST_P(Strangers, NobodyAtTheAddressIsALossInTime) {
  auto told = tcp::decode(b->driver->address()).value();
  b.reset();
  const std::vector<std::byte> address = tcp::encode(told);
  static_cast<void>(send_text(a->to(1, address), "anybody?"));
  EXPECT_TRUE(poll_until({&*a}, [&] { return a->sink.losses.size() == 1; }));
  EXPECT_NE(a->sink.losses[0].second.find("refused"), std::string::npos)
      << a->sink.losses[0].second;
  EXPECT_EQ(send_text(*a->channels[1], "x"), SendState::closed);
}

constexpr auto kName = [](const auto& entry) { return std::string{entry.param->name}; };
INSTANTIATE_TEST_SUITE_P(Drivers, Strangers, testing::Values(&kTcpDriver, &kUnixDriver), kName);

TEST(TcpAddress, WhatIsEncodedIsDecoded) {
  const auto found = tcp::local_addresses("", 4711);
  ASSERT_TRUE(found.has_value());
  tcp::Listening listening{.network_token = 7, .addresses = {}};
  listening.addresses = tcp::local_addresses("lo", 4711).value();
  auto blob = tcp::encode(listening);
  auto decoded = tcp::decode(blob);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded.value().addresses.size(), listening.addresses.size());
  EXPECT_EQ(decoded.value().addresses[0].text(), listening.addresses[0].text());
  EXPECT_EQ(tcp::usable_addresses(decoded.value(), 8).size(), 0U);
  EXPECT_EQ(tcp::usable_addresses(decoded.value(), 7).size(), listening.addresses.size());
  while (!blob.empty()) {
    blob.pop_back();
    EXPECT_FALSE(tcp::decode(blob).has_value());
  }
}

TEST(TcpAddress, UnknownInterfaceIsNamedInTheError) {
  const auto found = tcp::local_addresses("nosuch0", 1);
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().text.find("nosuch0"), std::string::npos);
}

}  // namespace
}  // namespace sterna::net
