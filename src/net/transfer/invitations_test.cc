// Messages that their sender writes into a receive whose program computes, over shared memory.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.h"
#include "net/transfer/invitation_pair.h"

namespace sterna::net {
namespace {

/// Up to 64 KB a message is sent at once, whatever the cost model thinks of it.
class Invitation : public InvitationPair {
 protected:
  Invitation() : InvitationPair{{{"net_eager_bytes", "64K"}}} {}
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

// The next receive is told of once a short message, of one or of several packets, has taken the one
// before it.
TEST_F(Invitation, TheNextReceiveAfterAShortMessageIsToldOf) {
  for (const std::size_t bytes : {8, 14'000, 24'000, 60'000}) {
    const std::uint64_t before = invited();
    RecvRequest first;
    SendRequest brief;
    brief.is_awaited = true;  // It goes eagerly.
    std::vector<std::byte> other(kBytes);
    post(first, other);
    post(receive, got);
    pair.send(0, brief, kTag, std::span{sent}.first(bytes));
    ASSERT_TRUE(pair.poll_until([&] { return first.done.done() && brief.done.done(); }));
    pair.send(0, send, kTag, sent);
    poll_sender();
    EXPECT_EQ(invited(), before + 1) << bytes;
    ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
    EXPECT_EQ(first.envelope.bytes, bytes);
    EXPECT_EQ(got, sent);
  }
}

// An urgent message overtakes two others that wait, and all of them change numbers.
TEST_F(Invitation, PrioritiesChangeNumbers) {
  constexpr int kFill = 600;  // More than the inbox has room for.
  std::vector<SendRequest> fill(kFill);
  std::vector<RecvRequest> filled(kFill);
  std::array<std::byte, 8> brief{};
  for (SendRequest& one : fill) {
    pair.send(0, one, kTag + 1, brief);
  }
  SendRequest first;
  SendRequest urgent;
  RecvRequest second;
  RecvRequest hurried;
  std::vector<std::byte> other(kBytes, std::byte{1});
  std::vector<std::byte> others(kBytes);
  pair.send(0, first, kTag, other);
  pair.send(0, send, kTag, sent);
  pair.send(0, urgent, kTag + 2, brief, 1);
  for (RecvRequest& one : filled) {
    pair.receive(1, one, kTag + 1, brief);
  }
  pair.receive(1, hurried, kTag + 2, brief);
  for (int round = 0; round < kPolls && !hurried.done.done(); ++round) {
    pair.poll(0);
    pair.poll(1);
  }
  post(receive, got);
  post(second, others);
  poll_sender();
  EXPECT_EQ(invited(), 0U);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && second.done.done(); }));
  ASSERT_TRUE(pair.poll_until([&] { return first.done.done() && send.done.done(); }));
  EXPECT_EQ(got, other);
  EXPECT_EQ(others, sent);
  EXPECT_TRUE(
      pair.poll_until([&] { return fill.back().done.done() && filled.back().done.done(); }));
}

// As many as there are slots are told of; the others are received as ever.
TEST_F(Invitation, ThereAreNoMoreSlotsThanThat) {
  constexpr std::size_t kMany = 20;
  std::vector<RecvRequest> receives(kMany);
  std::vector<SendRequest> sends(kMany);
  std::vector<std::vector<std::byte>> buffers(kMany, std::vector<std::byte>(kBytes));
  for (std::size_t i = 0; i < kMany; ++i) {
    post(receives[i], buffers[i], kTag + static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < kMany; ++i) {
    pair.send(0, sends[i], kTag + static_cast<std::int32_t>(i), sent);
  }
  poll_sender();
  EXPECT_EQ(invited(), 16U);
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(pair.poll_until([&] { return receives[i].done.done() && sends[i].done.done(); }));
    EXPECT_EQ(buffers[i], sent);
  }
}

TEST_F(Invitation, CancelledReceivesGiveTheirSlotsBack) {
  for (int round = 0; round < 100; ++round) {
    post(receive, got);
    ASSERT_TRUE(pair.nodes[1]->cancel_receive(*pair.endpoints[1], receive));
  }
  post(receive, got);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 1U);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
}

// More messages of other kinds came between than a sender remembers.
TEST_F(Invitation, ThatIsTooOldIsNotTaken) {
  constexpr std::size_t kMany = 70;
  std::vector<SendRequest> sends(kMany);
  std::vector<RecvRequest> receives(kMany);
  std::vector<std::byte> other(kBytes);
  post(receive, got);
  for (SendRequest& one : sends) {
    pair.send(0, one, kTag + 1, sent);
  }
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 0U);
  for (RecvRequest& one : receives) {
    pair.receive(1, one, kTag + 1, other);
    ASSERT_TRUE(pair.poll_until([&] { return one.done.done(); }));
  }
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && send.done.done(); }));
  EXPECT_EQ(got, sent);
}

TEST_F(Invitation, ReceivesOfALostSenderEnd) {
  RecvRequest taken;
  std::vector<std::byte> other(kBytes);
  post(taken, other);
  post(receive, got, kTag + 1);
  pair.send(0, send, kTag, sent);
  poll_sender();
  EXPECT_EQ(invited(), 1U);
  pair.nodes[1]->lose_peer(0, "the test says so");
  ASSERT_TRUE(pair.poll_until([&] { return taken.done.done() && receive.done.done(); }));
  EXPECT_EQ(receive.fault, Fault::peer_lost);
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
