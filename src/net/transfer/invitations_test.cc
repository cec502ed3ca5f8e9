// Messages that their sender writes into a receive whose program computes, over shared memory.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.h"
#include "net/driver.h"
#include "net/matching/short_pair.h"

namespace sterna::net {
namespace {

constexpr std::int32_t kTag = 5;
constexpr std::size_t kBytes = 300'000;
constexpr int kPolls = 1000;

/// Rank 0 sends; the program of rank 1 is away, and nobody polls there unless a test does.
class Invitation : public testing::Test {
 protected:
  void SetUp() override {
    pair.meet();
    if (!pair.nodes[0]->cost(1).is_direct()) {
      GTEST_SKIP() << "this system does not let a process write another one's memory";
    }
    pair.nodes[1]->leave_reads(true);
    pair.nodes[1]->absence_flag()->store(AbsenceFlag::kAway);
    for (std::size_t i = 0; i < kBytes; ++i) {
      sent[i] = static_cast<std::byte>(i * 7 + 1);
    }
  }
  void post(RecvRequest& request, std::span<std::byte> into, std::int32_t tag = kTag,
            std::uint32_t source = 0) {
    request.may_be_written = true;
    pair.receive(1, request, tag, into, source);
  }
  void poll_sender() {
    for (int i = 0; i < kPolls; ++i) {
      pair.poll(0);
    }
  }
  std::uint64_t invited() { return pair.nodes[0]->statistics().messages_invited; }

  Pair pair;
  std::vector<std::byte> sent = std::vector<std::byte>(kBytes);
  std::vector<std::byte> got = std::vector<std::byte>(kBytes);
  SendRequest send;
  RecvRequest receive;
};

TEST_F(Invitation, TheSenderWritesWhileNobodyLooks) {
  post(receive, got);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_TRUE(send.done.done());
  EXPECT_EQ(invited(), 1U);
  EXPECT_EQ(got, sent);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(receive.fault, Fault::none);
  EXPECT_EQ(receive.envelope.bytes, kBytes);
}

TEST_F(Invitation, AReceiverThatLooksFirstReadsByItself) {
  post(receive, got);
  pair.send(0, send, kTag, sent);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && send.done.done(); }));
  EXPECT_EQ(invited(), 0U);
  EXPECT_EQ(got, sent);
}

TEST_F(Invitation, AShorterReceiveIsFilledAndTold) {
  got.resize(200'000);
  std::vector<std::byte> guard(kBytes);
  post(receive, got);
  pair.send(0, send, kTag, sent);
  poll_sender();
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(invited(), 1U);
  EXPECT_EQ(receive.fault, Fault::truncated);
  EXPECT_EQ(std::memcmp(got.data(), sent.data(), got.size()), 0);
}

// The first message of the kind is a short one, which went its own way.
TEST_F(Invitation, AMessageBehindAnotherOfItsKindIsNotMeant) {
  std::array<std::byte, 16> brief{};
  brief.fill(std::byte{9});
  SendRequest first;
  RecvRequest second;
  std::vector<std::byte> other(kBytes);
  post(receive, got);
  pair.send(0, first, kTag, brief);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 0U);
  post(second, other);
  ASSERT_TRUE(pair.poll_until([&] { return second.done.done() && send.done.done(); }));
  EXPECT_EQ(receive.envelope.bytes, brief.size());
  EXPECT_EQ(got[0], brief[0]);
  EXPECT_EQ(other, sent);
}

TEST_F(Invitation, MessagesOfOtherKindsMayComeBetween) {
  RecvRequest second;
  SendRequest later;
  std::vector<std::byte> other(kBytes);
  post(receive, got);
  post(second, other, kTag + 1);
  pair.send(0, later, kTag + 1, sent);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_TRUE(send.done.done() && later.done.done());
  EXPECT_EQ(invited(), 2U);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && second.done.done(); }));
  EXPECT_EQ(got, sent);
  EXPECT_EQ(other, sent);
}

TEST_F(Invitation, AReceiveBehindOneOfAnySourceIsNotToldOf) {
  RecvRequest any;
  std::vector<std::byte> other(kBytes);
  post(any, other, kAnyTag, kAnySource);
  post(receive, got);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 0U);
  ASSERT_TRUE(pair.poll_until([&] { return any.done.done(); }));
  EXPECT_EQ(other, sent);
  EXPECT_FALSE(receive.done.done());
  EXPECT_TRUE(pair.nodes[1]->cancel_receive(*pair.endpoints[1], receive));
}

TEST_F(Invitation, AReceiveIsTakenBackBeforeItsSenderTakesItAndNotAfter) {
  post(receive, got);
  EXPECT_TRUE(pair.nodes[1]->cancel_receive(*pair.endpoints[1], receive));
  EXPECT_EQ(receive.fault, Fault::cancelled);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 0U);
  EXPECT_EQ(got[1], std::byte{});
  RecvRequest again;
  ASSERT_TRUE(pair.poll_until([&] { return pair.endpoints[1]->message_count != 0; }));
  post(again, got);
  ASSERT_TRUE(pair.poll_until([&] { return again.done.done() && send.done.done(); }));

  post(receive, got);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 1U);
  EXPECT_FALSE(pair.nodes[1]->cancel_receive(*pair.endpoints[1], receive));
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(receive.fault, Fault::none);
}

// The two sides at once, each in its thread: who comes first changes all the time.
TEST_F(Invitation, BothSidesAtOnce) {
  constexpr int kRounds = 3000;
  std::atomic<bool> has_failed{false};
  std::thread sender{[&] {
    std::vector<std::byte> bytes(kBytes);
    for (int round = 0; round < kRounds && !has_failed.load(); ++round) {
      std::memset(bytes.data(), round & 0xff, kBytes / 3);
      SendRequest request;
      pair.send(0, request, kTag + round % 3, std::span{bytes}.first(kBytes / 3));
      while (!request.done.done() && !has_failed.load()) {
        pair.poll(0);
      }
    }
  }};
  for (int round = 0; round < kRounds && !has_failed.load(); ++round) {
    RecvRequest request;
    std::memset(got.data(), ~round & 0xff, kBytes / 3);
    post(request, std::span{got}.first(kBytes / 3), kTag + round % 3);
    for (int i = 0; i < round % 400; ++i) {
      cpu_pause();
    }
    int patience = 0;
    while (!request.done.done() && ++patience < 100'000'000) {
      pair.poll(1);
    }
    const auto is_right = [&](std::byte byte) {
      return byte == static_cast<std::byte>(round & 0xff);
    };
    has_failed =
        !request.done.done() || !std::all_of(got.begin(), got.begin() + kBytes / 3, is_right);
  }
  sender.join();
  EXPECT_FALSE(has_failed.load());
}

TEST_F(Invitation, ManyOneAfterTheOtherWhoeverCopiesThem) {
  for (int round = 0; round < 200; ++round) {
    std::fill(got.begin(), got.end(), std::byte{});
    sent[0] = static_cast<std::byte>(round);
    post(receive, got);
    pair.send(0, send, kTag, sent);
    for (int i = 0; i < round % 64; ++i) {
      pair.poll(0);
    }
    ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && send.done.done(); }));
    ASSERT_EQ(got, sent);
  }
  EXPECT_GT(invited(), 50U);
  EXPECT_LT(invited(), 200U);
}

}  // namespace
}  // namespace sterna::net
