// Short messages that a thread leaves to a worker which is awake and has nothing to run.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

Settings set_to(const char* offload) {
  Settings settings{transport_tunables()};
  check(settings.set("net_offload", offload, SettingSource::command_line, "test").has_value(),
        "the setting is known");
  return settings;
}

class Left : public testing::Test {
 protected:
  explicit Left(const char* offload = "on") : settings{set_to(offload)} {
    cluster.nodes[0]->add_to(*progress);
  }
  ~Left() override { cluster.nodes[0]->remove_from(*progress); }

  void send(std::uint8_t number, bool may_be_left) {
    SendRequest& request = sends[number];
    bytes[number] = number;
    request.may_be_left = may_be_left;
    cluster.nodes[0]->send(*cluster.endpoints[0], request, {1, 0, 0},
                           Buffer::of(&bytes[number], 1));
    EXPECT_TRUE(request.done.done()) << "its bytes were taken";
    bytes[number] = 99;
  }
  /// -1: nothing has come.
  int receive() {
    RecvRequest request;
    std::uint8_t got = 0;
    cluster.nodes[1]->receive(*cluster.endpoints[1], request, {0, 0, 0}, Buffer::of(&got, 1));
    cluster.settle();
    if (!request.done.done()) {
      EXPECT_TRUE(cluster.nodes[1]->cancel_receive(*cluster.endpoints[1], request));
      return -1;
    }
    return got;
  }
  std::uint64_t handed() { return cluster.nodes[0]->statistics().frames_handed; }

  Settings settings;
  SimCluster cluster{{.node_count = 2}, 2, &settings};
  std::unique_ptr<progress::Progress> progress = std::move(progress::Progress::open().value());
  std::array<SendRequest, 8> sends;
  std::array<std::uint8_t, 8> bytes = {};
};

TEST_F(Left, MessageIsSentByTheNextTurnOfASearch) {
  progress->hand_over().begin_search();
  send(0, true);
  EXPECT_EQ(handed(), 1U);
  EXPECT_EQ(receive(), -1) << "sent by nobody yet";
  progress->hand_over().take();
  EXPECT_EQ(receive(), 0);
  progress->hand_over().end_search();
}

TEST_F(Left, MessageIsSentByAWorkerThatStopsSearching) {
  progress->hand_over().begin_search();
  send(0, true);
  progress->hand_over().end_search();
  EXPECT_EQ(receive(), 0);
}

TEST_F(Left, MessageIsSentByAPollOfItsSender) {
  progress->hand_over().begin_search();
  send(0, true);
  (void)progress->poll(threads::SchedulingPoint::enter);
  EXPECT_EQ(receive(), 0);
  progress->hand_over().end_search();
}

TEST_F(Left, MessagesAreNotOvertakenByOnesThatAreAwaited) {
  progress->hand_over().begin_search();
  send(0, true);
  send(1, true);
  send(2, false);
  EXPECT_EQ(handed(), 2U);
  EXPECT_EQ(receive(), 0);
  EXPECT_EQ(receive(), 1);
  EXPECT_EQ(receive(), 2);
  progress->hand_over().end_search();
}

TEST_F(Left, NothingIsLeftWhereNobodySearches) {
  send(0, true);
  EXPECT_EQ(handed(), 0U);
  EXPECT_EQ(receive(), 0);
}

TEST(BesideModel, GivesPiecesAwayThatTakeLongerThanToHandThemOverOnceThatWasMeasured) {
  CostModel model{Capabilities{.cpu_ps_per_byte = 100}, false, {}};
  EXPECT_EQ(model.beside_from_bytes(), CostModel::kNever);
  for (int i = 0; i < 200; ++i) {
    model.measured_piece(10'000, 5000);  // 500 ps a byte.
  }
  EXPECT_NEAR(static_cast<double>(model.beside_from_bytes()), 2000, 20) << "a microsecond";
  EXPECT_EQ((CostModel{Capabilities{}, false, {.always_hands_over = true}}.beside_from_bytes()),
            0U);
}

/// Over two rails; a kernel thread of its own looks for work.
struct Pieces : testing::Test {
  static SimOptions wire() {
    return {.delay_ns_min = 1000,
            .delay_ns_max = 1000,
            .ps_per_byte = 100,
            .packet_bytes_max = 64 << 10};
  }
  Pieces() {
    check(settings.set("net_eager_bytes", "64K", SettingSource::command_line, "test").has_value(),
          "the setting is known");
    cluster.nodes[0]->add_to(*progress);
    progress->hand_over().begin_search();
    thread = std::thread{[this] {
      while (!is_over) {
        progress->hand_over().take();
      }
    }};
  }
  ~Pieces() override {
    is_over = true;
    thread.join();
    progress->hand_over().end_search();
    cluster.nodes[0]->remove_from(*progress);
  }

  Settings settings = set_to("on");
  SimCluster cluster{SimCluster::Rails{}, {wire(), wire()}, 2, &settings};
  std::unique_ptr<progress::Progress> progress = std::move(progress::Progress::open().value());
  std::atomic<bool> is_over{false};
  std::thread thread;
};

TEST_F(Pieces, OfMessagesComeOnceAndInOrderWhoeverSendsThem) {
  std::vector<unsigned char> bytes(40'000);
  std::vector<unsigned char> got(bytes.size());
  for (int i = 0; i < 500; ++i) {
    const std::size_t size = 16'384 + static_cast<std::size_t>(i) * 47;
    for (std::size_t at = 0; at < size; ++at) {
      bytes[at] = static_cast<unsigned char>(at * 7 + static_cast<std::size_t>(i));
    }
    SendRequest send;
    RecvRequest receive;
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 0, 0}, Buffer::of(bytes.data(), size));
    ASSERT_TRUE(send.done.done()) << "it went at once";
    const std::vector<unsigned char> sent = bytes;
    std::ranges::fill(bytes, 0);  // They were taken.
    cluster.nodes[1]->receive(*cluster.endpoints[1], receive, {0, 0, 0},
                              Buffer::of(got.data(), got.size()));
    cluster.settle();
    ASSERT_TRUE(receive.done.done()) << i;
    ASSERT_EQ(receive.envelope.bytes, size);
    ASSERT_TRUE(
        std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(size), got.begin()))
        << i;
  }
  const std::vector<RailReport> rails = cluster.nodes[0]->rails(1);
  EXPECT_EQ(rails[0].packets, 500U);
  EXPECT_EQ(rails[1].packets, 500U);
  EXPECT_EQ(rails[0].sent_again + cluster.nodes[1]->rails(0)[0].came_twice, 0U);
}

struct NotLeft : Left {
  NotLeft() : Left{"off"} {}
};

TEST_F(NotLeft, AnythingWithTheSettingOff) {
  progress->hand_over().begin_search();
  send(0, true);
  EXPECT_EQ(handed(), 0U);
  EXPECT_EQ(receive(), 0);
  progress->hand_over().end_search();
}

}  // namespace
}  // namespace sterna::net
