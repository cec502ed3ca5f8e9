// Messages that a program which will compute leaves to whoever waits for them first.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/transfer/invitation_pair.h"

namespace sterna::net {
namespace {

using threads::SchedulingPoint;

/// Rank 1 finds an announced message as it posts the receive, and does not read it: it is in a call
/// that does not wait.
class LeftMessage : public InvitationPair {
 protected:
  void SetUp() override {
    InvitationPair::SetUp();
    if (!IsSkipped()) {
      pair.use_progress();
      pair.nodes[1]->absence().flag()->store(AbsenceFlag::kPresent);
    }
  }
  void leave(std::span<std::byte> into) {
    pair.send(0, send, kTag, sent);
    pair.poll_as(SchedulingPoint::enter, 1, 4);
    post(receive, into);
    ASSERT_TRUE(pair.nodes[1]->absence().has_left());
    ASSERT_FALSE(receive.done.done());
  }
  void go_away() { pair.nodes[1]->absence().flag()->store(AbsenceFlag::kAway); }
  bool ends() {
    return pair.poll_until([&] { return receive.done.done() && send.done.done(); });
  }
};

TEST_F(LeftMessage, IsReadByWhoWaitsThere) {
  leave(got);
  pair.poll_as(SchedulingPoint::idle, 1, 4);
  EXPECT_TRUE(receive.done.done());
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(ends());
  EXPECT_EQ(invited(), 0U);
}

TEST_F(LeftMessage, IsReadByWhoAsksAgainAndAgain) {
  leave(got);
  pair.poll_as(SchedulingPoint::enter, 1, 4);
  EXPECT_FALSE(receive.done.done());
  pair.poll_as(SchedulingPoint::enter, 1, 100);
  EXPECT_TRUE(receive.done.done());
  EXPECT_EQ(got, sent);
}

TEST_F(LeftMessage, IsWrittenByASenderThatWaits) {
  leave(got);
  go_away();
  pair.poll_as(SchedulingPoint::idle, 0, kPolls);
  EXPECT_TRUE(send.done.done());
  EXPECT_EQ(invited(), 1U);
  EXPECT_TRUE(ends());
  EXPECT_EQ(got, sent);
  EXPECT_FALSE(pair.nodes[1]->absence().has_left());
  EXPECT_FALSE(pair.nodes[1]->absence().has_work());
}

TEST_F(LeftMessage, IsWrittenByASenderThatAsksAgainAndAgain) {
  leave(got);
  go_away();
  pair.poll_as(SchedulingPoint::enter, 0, kPolls);
  EXPECT_TRUE(send.done.done());
  EXPECT_TRUE(ends());
  EXPECT_EQ(got, sent);
}

// It has seen nobody away whom it would have to ring for.
TEST_F(LeftMessage, IsReadWhenItsSenderHasFallenAsleep) {
  leave(got);
  pair.poll_as(SchedulingPoint::idle, 0, kPolls);
  std::atomic<std::uint32_t> word{0};
  std::atomic<bool> is_over{false};
  std::thread sleeper{[&] {
    while (!is_over.load()) {
      (void)pair.progress[0]->sleep(now_ns() + 2'000'000'000, word, 0);
    }
  }};
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  go_away();
  for (int look = 0; look < 20 && !receive.done.done(); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    pair.poll_as(SchedulingPoint::forced, 1);
  }
  EXPECT_TRUE(receive.done.done());
  is_over = true;
  pair.progress[0]->wake();
  sleeper.join();
  EXPECT_TRUE(ends());
  EXPECT_EQ(got, sent);
}

TEST_F(LeftMessage, IsNotLeftByWhoWaits) {
  post(receive, got);
  pair.send(0, send, kTag, sent);
  pair.poll_as(SchedulingPoint::idle, 1, 4);
  EXPECT_FALSE(pair.nodes[1]->absence().has_left());
  EXPECT_TRUE(receive.done.done());
}

TEST_F(LeftMessage, TruncatesAsEver) {
  std::vector<std::byte> guard(1000, std::byte{3});
  got.resize(200'000);
  leave(got);
  go_away();
  pair.poll_as(SchedulingPoint::idle, 0, kPolls);
  EXPECT_TRUE(ends());
  EXPECT_EQ(receive.fault, Fault::truncated);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
}

TEST_F(LeftMessage, EndsWithItsSender) {
  leave(got);
  pair.nodes[1]->lose_peer(0, "the test says so");
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(receive.fault, Fault::peer_lost);
  EXPECT_FALSE(pair.nodes[1]->absence().has_left());
}

}  // namespace
}  // namespace sterna::net
