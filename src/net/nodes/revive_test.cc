// A way that is cut and opened anew, on every driver that can (Capabilities::can_revive): links of
// the decorator `cut`, and tcp connections that break, at both ends or at one.
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

/// Breaks the connections of this process that were made to a listening socket, at the end that
/// made them. `silently`: the other end is not told. False: the system forbids it.
bool break_connections(bool silently) {
  bool is_done = true;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) {
      continue;
    }
    if (peer.ss_family == AF_UNIX) {
      // A name that the system has chosen: nobody else has such a peer.
      const bool is_ours = bytes > sizeof peer.ss_family + 1 &&
                           reinterpret_cast<const char*>(&peer)[sizeof peer.ss_family] == 0;
      is_done = (!is_ours || ::shutdown(fd, SHUT_RDWR) == 0) && is_done;
      continue;
    }
    tcp_info info{};
    bytes = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        info.tcpi_state != TCP_ESTABLISHED) {
      continue;
    }
    const int one = 1;
    if (silently) {
      is_done = ::setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &one, sizeof one) == 0 && is_done;
    }
    const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
    is_done = is_done && ::connect(fd, &nobody, sizeof nobody) == 0;
    if (silently) {
      break;  // One end of one connection.
    }
  }
  ::closedir(folder);
  return is_done;
}

class Revival : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!a.absent.empty()) {
      // Says which: libfabric, or a provider of it, is not on this machine.
      GTEST_SKIP() << a.absent;
    }
  }
  /// Sockets that can be broken from outside.
  bool has_connection() const { return GetParam().find('(') == std::string::npos; }
  void cut() {
    if (has_connection()) {
      ASSERT_TRUE(break_connections(false));
    } else {
      job.links().cut(0, 1);
    }
  }
  bool lost(const TestNode& node, std::size_t count) { return node.sink.losses.size() == count; }
  void revive(TestNode& node, std::uint32_t peer_node) {
    auto revived = node.driver->revive(peer_node);
    ASSERT_TRUE(revived.has_value()) << revived.error().text;
    EXPECT_EQ(revived.value(), node.channels.at(peer_node));
  }
  void join(const std::string& text) {
    ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), text));
    ASSERT_TRUE(send_patiently({&a, &b}, b.to(a, 0), text));
    ASSERT_TRUE(poll_until({&a, &b}, [&] {
      return !a.sink.packets.empty() && !b.sink.packets.empty() &&
             a.sink.packets.back().second == text && b.sink.packets.back().second == text;
    }));
  }

  TestJob job{2};
  TestNode a{choice_of(GetParam()), job, 0};
  TestNode b{choice_of(GetParam()), job, 1};
};

TEST_P(Revival, PacketsGoOverALinkThatWasCutAndIsWhole) {
  ASSERT_TRUE(a.driver->capabilities().can_revive);
  join("before");
  for (std::size_t round = 1; round <= 3; ++round) {
    cut();
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return lost(a, round) && lost(b, round); }));
    EXPECT_EQ(send_text(a.to(b, 1), "lost"), SendState::closed);
    EXPECT_EQ(send_text(b.to(a, 0), "lost"), SendState::closed);
    // In either order; what is sent meanwhile waits, or finds no room.
    revive(a, 1);
    job.links().restore(0, 1);
    for (int i = 0; i < 500; ++i) {
      a.poll();
      b.poll();
    }
    revive(b, 0);
    const std::size_t known = b.sink.packets.size();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), std::to_string(i)));
    }
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == known + 100; }));
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(b.sink.packets[known + i].second, std::to_string(i));
    }
    join("after " + std::to_string(round));
    EXPECT_TRUE(lost(a, round) && lost(b, round));
  }
}

TEST_P(Revival, WhoIsNotLostIsLeftAlone) {
  join("before");
  revive(a, 1);
  revive(b, 0);
  join("after");
  EXPECT_TRUE(lost(a, 0) && lost(b, 0));
}

TEST_P(Revival, WhoHasClosedStaysClosed) {
  join("before");
  cut();
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return lost(a, 1) && lost(b, 1); }));
  a.driver->close();
  const auto revived = a.driver->revive(1);
  ASSERT_FALSE(revived.has_value());
  EXPECT_EQ(revived.error().code, Errc::closed);
}

constexpr auto kName = [](const auto& entry) { return test_name_of(entry.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, Revival,
                         testing::Values("tcp", "unix", "cut(tcp)", "cut(shm)", "cut(sim)",
                                         "count(cut(delay(tcp,latency=20us)))", "cut(fabric@tcp)"),
                         kName);

// One end has lost the connection, and the other one has no reason to look: it is told by the new
// connection, which names the one that it replaces.
TEST(TcpRevival, TheOtherEndHearsOfALossFromTheNewConnection) {
  TestJob job{2};
  TestNode a{choice_of("tcp"), job, 0};
  TestNode b{choice_of("tcp"), job, 1};
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "hello"));
  ASSERT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "hello"));
  ASSERT_TRUE(poll_until({&a, &b},
                         [&] { return a.sink.packets.size() == 1 && b.sink.packets.size() == 1; }));
  if (!break_connections(true)) {
    // Without a word to the other end a connection goes only by TCP_REPAIR, which wants
    // CAP_NET_ADMIN. Broken with a word, which anybody may, it is in Revival above.
    GTEST_SKIP() << "only a privileged process can break a connection silently (TCP_REPAIR)";
  }
  ASSERT_TRUE(
      poll_until({&a, &b}, [&] { return a.sink.losses.size() + b.sink.losses.size() == 1; }));
  const bool is_a = !a.sink.losses.empty();
  TestNode& first = is_a ? a : b;
  TestNode& second = is_a ? b : a;
  ASSERT_TRUE(first.driver->revive(is_a ? 1 : 0).has_value());
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return second.sink.losses.size() == 1; }));
  EXPECT_NE(second.sink.losses[0].second.find("anew"), std::string::npos);
  ASSERT_TRUE(second.driver->revive(is_a ? 0 : 1).has_value());
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "again"));
  ASSERT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "again"));
  EXPECT_TRUE(poll_until({&a, &b},
                         [&] { return a.sink.packets.size() == 2 && b.sink.packets.size() == 2; }));
}

TEST(TcpRevival, AProcessThatHasEndedIsNotCalledForEver) {
  TestJob job{2};
  TestNode a{choice_of("tcp"), job, 0};
  auto b = std::make_unique<TestNode>(choice_of("tcp"), job, 1);
  ASSERT_TRUE(send_patiently({&a, &*b}, a.to(*b, 1), "hello"));
  ASSERT_TRUE(poll_until({&a, &*b}, [&] { return b->sink.packets.size() == 1; }));
  b.reset();
  ASSERT_TRUE(poll_until({&a}, [&] { return a.sink.losses.size() == 1; }));
  ASSERT_TRUE(a.driver->revive(1).has_value());
  a.poll();
  a.driver->lose_peer(1);
  EXPECT_TRUE(poll_until({&a}, [&] { return a.sink.losses.size() == 2; }));
  EXPECT_NE(a.sink.losses[1].second.find("process has ended"), std::string::npos);
}

}  // namespace
}  // namespace sterna::net
