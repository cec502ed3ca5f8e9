// Short messages that a thread leaves to a worker which is awake and has nothing to run.
#include <array>

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
