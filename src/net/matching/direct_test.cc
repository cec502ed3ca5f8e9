// Messages between two ranks of one worker, from their own code: what a section of the worker does,
// and what it leaves to the usual way.
#include "net/matching/direct.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "net/matching/matching.h"
#include "net/simulation/sim_cluster.h"
#include "threads/team_fixture.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 5;
constexpr std::int32_t kTag = 7;

/// Rank 0 sends to rank 1, whose worker, the one that runs the test, owns the lock of its rank.
class DirectMessages : public testing::Test {
 protected:
  void SetUp() override {
    if (!threads::DirectSection::kIsPossible) {
      // Says why: a sanitizer's switch keeps its state in thread-local storage.
      GTEST_SKIP() << "sanitized builds have no direct messages";
    }
  }
  /// As it is once both have talked for some time.
  void meet() {
    slot.thread = threads::self();
    slot.endpoint = cluster.endpoints[0];
    node.direct_way().lead(slot);
    send();
    ASSERT_TRUE(receive()) << "its memory and its lane are there for the next one";
    auto& entry = static_cast<RankEntry*>(slot.rank_entries)[1];
    const threads::OwnedGuard guard{entry.lock};
    entry.lock.claim(*slot.thread->worker.load());
  }
  bool try_send_direct() {
    threads::Waiter receiver;
    const bool is_sent =
        node.direct_way().try_send(slot, {1, kContext, kTag}, sent.data(), sent.size(), receiver);
    EXPECT_FALSE(receiver) << "no receive was posted";
    return is_sent;
  }
  void send() {
    SendRequest request;
    node.send(*cluster.endpoints[0], request, {1, kContext, kTag},
              Buffer::of(sent.data(), sent.size()));
    EXPECT_TRUE(request.done.done());
  }
  bool receive() {
    std::array<std::byte, 8> got{};
    RecvRequest request;
    node.receive(*cluster.endpoints[1], request, {0, kContext, kTag},
                 Buffer::of(got.data(), got.size()));
    return request.done.done() && got == sent;
  }

  SimCluster cluster{{.node_count = 1}, 2};
  Transport& node = *cluster.nodes[0];
  memory::RankSlot slot;  // Of rank 0.
  std::array<std::byte, 8> sent{std::byte{1}, std::byte{2}};
};

// To wake it takes the lock of the worker, which the section holds, and thread-local storage.
TEST_F(DirectMessages, AreLeftToTheUsualWayWhereAProbeWaits) {
  const threads::TestTeam team{1};
  team.run([&] {
    meet();
    ASSERT_TRUE(try_send_direct());
    ASSERT_TRUE(receive());
    MessageWatch watch;
    Envelope found;
    const Pattern wanted{0, kContext, kTag};
    ASSERT_FALSE(node.probe(*cluster.endpoints[1], wanted, found, &watch));
    EXPECT_FALSE(try_send_direct());
    EXPECT_FALSE(watch.done.done()) << "nothing has happened";
    send();
    EXPECT_TRUE(watch.done.done());
    EXPECT_TRUE(node.probe(*cluster.endpoints[1], wanted, found));
    EXPECT_TRUE(receive());
    EXPECT_TRUE(try_send_direct()) << "nobody waits any more";
    EXPECT_TRUE(receive());
  });
}

}  // namespace
}  // namespace sterna::net
