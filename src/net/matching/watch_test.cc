// Probes that wait: which messages they are told of, and what else ends their wait.
#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/matching/matching.h"
#include "net/matching/short_pair.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 3;  // Of Pair.
constexpr std::int32_t kTag = 5;

class Watches : public testing::Test {
 protected:
  void SetUp() override { pair.meet(); }

  bool looks(const Pattern& wanted, MessageWatch& watch) {
    return pair.nodes[1]->probe(*pair.endpoints[1], wanted, found, &watch);
  }
  void come(std::int32_t tag, std::size_t bytes) {
    sent.resize(bytes);
    pair.send(0, sending, tag, sent);
    for (int i = 0; i < 3; ++i) {
      pair.poll();
    }
  }
  void take(std::int32_t tag) {
    std::vector<std::byte> got(sent.size());
    RecvRequest receive;
    pair.receive(1, receive, tag, got);
    ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && sending.done.done(); }));
  }

  Pair pair;
  std::vector<std::byte> sent;
  SendRequest sending;
  Envelope found;
};

TEST_F(Watches, AreToldOfAMessageThatFitsAndOfNoOther) {
  MessageWatch exact;
  MessageWatch any;
  MessageWatch other_context;
  ASSERT_FALSE(looks({0, kContext, kTag}, exact));
  ASSERT_FALSE(looks({0, kContext + 1, kTag}, other_context));
  come(kTag + 1, 8);
  EXPECT_FALSE(exact.done.done());
  EXPECT_FALSE(other_context.done.done());
  take(kTag + 1);
  ASSERT_FALSE(looks({kAnySource, kContext, kAnyTag}, any));
  come(kTag, 8);
  EXPECT_TRUE(exact.done.done());
  EXPECT_TRUE(any.done.done());
  EXPECT_FALSE(other_context.done.done());
  EXPECT_TRUE(looks({0, kContext, kTag}, exact));
  EXPECT_EQ(found.bytes, 8U);
  EXPECT_FALSE(exact.is_listed) << "who finds one need not be told";
  take(kTag);
  pair.nodes[1]->end_watch(*pair.endpoints[1], other_context);
}

TEST_F(Watches, AreToldOfLongMessagesToo) {
  for (const std::size_t bytes : {std::size_t{20'000}, std::size_t{60'000}, std::size_t{300'000}}) {
    MessageWatch watch;
    ASSERT_FALSE(looks({0, kContext, kTag}, watch));
    come(kTag, bytes);
    EXPECT_TRUE(watch.done.done());
    take(kTag);
  }
}

TEST_F(Watches, CompareTheBitsOfTheirMask) {
  MessageWatch watch;
  const MaskedPattern wanted{{0, kContext, 0x10}, 0xf0};
  ASSERT_FALSE(pair.nodes[1]->probe(*pair.endpoints[1], wanted, found, &watch));
  come(0x21, 8);
  EXPECT_FALSE(watch.done.done());
  take(0x21);
  come(0x13, 8);
  EXPECT_TRUE(watch.done.done());
  EXPECT_TRUE(pair.nodes[1]->probe(*pair.endpoints[1], wanted, found));
  take(0x13);
}

TEST_F(Watches, LeaveAMessageToTheReceiveThatIsPosted) {
  std::array<std::byte, 8> got{};
  RecvRequest receive;
  MessageWatch watch;
  pair.receive(1, receive, kTag, got);
  ASSERT_FALSE(looks({0, kContext, kTag}, watch));
  come(kTag, 8);
  EXPECT_TRUE(receive.done.done());
  EXPECT_FALSE(watch.done.done());
  pair.nodes[1]->end_watch(*pair.endpoints[1], watch);
  come(kTag, 8);
  EXPECT_FALSE(watch.done.done()) << "it was taken back";
  take(kTag);
}

TEST_F(Watches, AMatchedProbeIsToldAndTakesItOut) {
  MessageWatch watch;
  ASSERT_EQ(pair.nodes[1]->matched_probe(*pair.endpoints[1], Pattern{0, kContext, kTag}, found,
                                         &watch),
            nullptr);
  come(kTag, 100);
  ASSERT_TRUE(watch.done.done());
  Message* const message =
      pair.nodes[1]->matched_probe(*pair.endpoints[1], Pattern{0, kContext, kTag}, found);
  ASSERT_NE(message, nullptr);
  std::vector<std::byte> got(100);
  RecvRequest receive;
  pair.nodes[1]->receive_matched(*pair.endpoints[1], receive, *message,
                                 Buffer::of(got.data(), got.size()));
  EXPECT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
}

TEST_F(Watches, AreToldOfALossOnce) {
  MessageWatch named;
  MessageWatch any;
  ASSERT_FALSE(looks({0, kContext, kTag}, named));
  ASSERT_FALSE(looks({kAnySource, kContext, kAnyTag}, any));
  pair.nodes[1]->lose_peer(0, "the test says so");
  ASSERT_TRUE(pair.poll_until([&] { return named.done.done() && any.done.done(); }));
  EXPECT_TRUE(pair.nodes[1]->is_rank_lost(0)) << "told once that can be seen";
  EXPECT_EQ(pair.nodes[1]->loss_count(*pair.endpoints[1]), 1U);
  EXPECT_FALSE(looks({0, kContext, kTag}, named));
  EXPECT_FALSE(named.done.done());
  pair.nodes[1]->end_watch(*pair.endpoints[1], named);
}

// Where its rank comes to the loss it waits for may have been told of before.
TEST_F(Watches, LookAgainWhereTheirRankArrives) {
  TestJob job{1};
  const DriverChoice drivers[] = {{.entry = &kShmDriver}};
  auto node = std::move(Transport::open({.bootstrap = &job.node(0), .drivers = drivers}).value());
  Endpoint* const endpoint = create_endpoint(*memory::Heap::process(), 0);
  MessageWatch watch;
  list_watch(*endpoint, watch, {{0, kContext, kTag}, watch.mask});
  node->install(0, endpoint);
  EXPECT_TRUE(watch.done.done());
  EXPECT_EQ(endpoint->watches, nullptr);
  MessageWatch stays;
  list_watch(*endpoint, stays, {{0, kContext, kTag}, stays.mask});
  ASSERT_TRUE(node->begin_leave(0));
  EXPECT_FALSE(stays.done.done());
  node->cancel_leave(0);
  EXPECT_TRUE(stays.done.done()) << "or where it does not leave after all";
  node.reset();
  destroy_endpoint(endpoint);
}

// One that gives up in between takes its watch back while it is being told.
TEST(WatchesOfThreads, AreToldByWhoeverPolls) {
  constexpr int kCount = 1000;
  Pair pair;
  pair.meet();
  pair.share();
  std::thread sender{[&] {
    const std::array<std::byte, 300> bytes{};
    for (int i = 0; i < kCount; ++i) {
      SendRequest send;
      pair.send(0, send, i, bytes);
      send.done.wait(*pair.progress[0]);
    }
    std::array<std::byte, 1> end{};  // Until then it polls for what waits for room.
    RecvRequest receive;
    pair.receive(0, receive, kCount, end);
    receive.done.wait(*pair.progress[0]);
  }};
  std::array<std::byte, 300> got{};
  int times_late = 0;
  for (int i = 0; i < kCount; ++i) {
    Envelope found;
    MessageWatch watch;
    while (!pair.nodes[1]->probe(*pair.endpoints[1], Pattern{0, kContext, i}, found, &watch)) {
      const threads::WaitOptions briefly{.deadline_ns = i % 2 == 0 ? now_ns() + 1000 : kNever};
      if (watch.done.wait_for(*pair.progress[1], briefly) == threads::Wake::timed_out) {
        pair.nodes[1]->end_watch(*pair.endpoints[1], watch);
        ++times_late;
      }
    }
    EXPECT_EQ(found.bytes, got.size());
    RecvRequest receive;
    pair.receive(1, receive, i, got);
    receive.done.wait(*pair.progress[1]);
  }
  SendRequest end;
  pair.send(1, end, kCount, std::span{got}.first(1));
  end.done.wait(*pair.progress[1]);
  sender.join();
  EXPECT_EQ(pair.endpoints[1]->watches, nullptr);
  RecordProperty("times_late", times_late);
}

}  // namespace
}  // namespace sterna::net
