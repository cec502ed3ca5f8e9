// What connections of a job are told.
#include "net/drivers/tcp/sockets.h"

#include <string>

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace sterna::net::tcp {
namespace {

Options options_of_test() {
  Options options;
  options.silence_ns = 3'000'000'000;
  return options;
}

std::string congestion_control(int socket) {
  char name[32] = {};
  socklen_t bytes = sizeof name;
  EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &bytes), 0);
  return name;
}

TEST(TcpSockets, WithinAHostNothingIsPaced) {
  const Options options = options_of_test();
  Result<Listener> listener = listen_for_peers(options, true);
  ASSERT_TRUE(listener);
  Result<FileDescriptor> socket = start_connect(options, listener.value().told.addresses.front());
  ASSERT_TRUE(socket);
  ::pollfd poll{.fd = socket.value().get(), .events = POLLOUT, .revents = 0};
  ASSERT_EQ(::poll(&poll, 1, 5000), 1);
  SocketAddress from;
  int error = 0;
  const FileDescriptor accepted = accept_one(listener.value().socket.get(), from, error);
  ASSERT_TRUE(accepted.is_open()) << error;
  for (const int end : {socket.value().get(), accepted.get()}) {
    tune(end, options);
    EXPECT_EQ(congestion_control(end), "reno");
    int is_undelayed = 0;
    socklen_t bytes = sizeof is_undelayed;
    EXPECT_EQ(::getsockopt(end, IPPROTO_TCP, TCP_NODELAY, &is_undelayed, &bytes), 0);
    EXPECT_NE(is_undelayed, 0);
  }
}

// To another host the system's own stays: it knows the way.
TEST(TcpSockets, WhatIsNotWithinAHostKeepsTheWayOfTheSystem) {
  const FileDescriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
  const std::string before = congestion_control(socket.get());
  tune(socket.get(), options_of_test());  // Not connected: no end is on this host.
  EXPECT_EQ(congestion_control(socket.get()), before);
}

// Whoever connects to a unix socket chooses the name that the log tells.
TEST(TcpSockets, ANameIsToldInOneLine) {
  const std::string name = std::string{"a\nwarning: b"} + '\x1b' + '\0' + '\xff';
  SocketAddress address;
  address.storage.ss_family = AF_UNIX;
  char* const path = reinterpret_cast<char*>(&address.storage) + sizeof(sa_family_t);
  name.copy(path + 1, name.size());
  address.bytes = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
  EXPECT_EQ(address.text(), "unix a.warning: b...");
}

}  // namespace
}  // namespace sterna::net::tcp
