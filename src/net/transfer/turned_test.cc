// Messages of which part is written into the memory of a peer that computes, or read from it, and
// the rest goes in packets, as the peer waits by now and helps.
#include <algorithm>
#include <vector>

#include "net/transfer/invitation_pair.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

// More than the memory of a node holds on its way.
constexpr std::size_t kLongBytes = (4 << 20) + 12'345;

class TurnedMessage : public InvitationPair {
 protected:
  void SetUp() override {
    InvitationPair::SetUp();
    if (IsSkipped()) {
      return;
    }
    // By the profile, which no machine changes: packets are the faster way.
    ASSERT_GT(pair.nodes[0]->cost(1).direct_from_bytes(), kLongBytes);
    for (std::size_t i = 0; i < kLongBytes; ++i) {
      long_sent[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
  }
  /// The sender waits, the receiver computes; until part of the message has been written.
  void write_part(std::span<std::byte> into) {
    post(receive, into);
    pair.send(0, send, kTag, long_sent);
    for (int polls = 0; direct_bytes() == 0 && polls < kPolls; ++polls) {
      pair.poll(0);
    }
    ASSERT_GT(direct_bytes(), 0U);
    ASSERT_LT(direct_bytes(), long_got.size());
    ASSERT_FALSE(receive.done.done());
  }
  void come_back() { pair.nodes[1]->absence().flag()->store(AbsenceFlag::kPresent); }
  bool ends() {
    return pair.poll_until([&] { return receive.done.done() && send.done.done(); });
  }
  std::uint64_t direct_bytes() { return pair.nodes[0]->statistics().bytes_direct; }
  std::uint64_t data_bytes() { return pair.nodes[0]->statistics().bytes_data; }

  std::vector<std::byte> long_sent = std::vector<std::byte>(kLongBytes);
  std::vector<std::byte> long_got = std::vector<std::byte>(kLongBytes);
};

TEST_F(TurnedMessage, IsWrittenAsAWholeToWhoComputes) {
  write_part(long_got);
  poll_sender();
  EXPECT_EQ(direct_bytes(), kLongBytes);
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(data_bytes(), 0U);
}

// Each part is a call of the kernel.
TEST_F(TurnedMessage, IsWrittenInFewerPartsWhereThePeerHasStayedAwayTwice) {
  const auto parts_of_one = [&] {
    post(receive, long_got);
    pair.send(0, send, kTag, long_sent);
    int parts = 0;
    for (int polls = 0; !send.done.done() && polls < kPolls; ++polls) {
      const std::uint64_t before = direct_bytes();
      pair.poll(0);
      parts += direct_bytes() != before ? 1 : 0;
    }
    EXPECT_TRUE(ends());
    return parts;
  };
  const int at_first = parts_of_one();
  EXPECT_EQ(parts_of_one(), at_first);
  constexpr int kMegabytes = kLongBytes >> 20;
  EXPECT_LE(parts_of_one(), kMegabytes + 3) << "of up to net_chunk_bytes";
  EXPECT_GT(at_first, 4 * kMegabytes);
  EXPECT_EQ(long_got, long_sent);
}

TEST_F(TurnedMessage, GoesOnInPacketsToWhoWaits) {
  write_part(long_got);
  const std::uint64_t written = direct_bytes();
  come_back();
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(direct_bytes(), written);
  EXPECT_EQ(data_bytes(), kLongBytes - written);
  EXPECT_EQ(receive.envelope.bytes, kLongBytes);
}

TEST_F(TurnedMessage, TruncatesAsEver) {
  std::vector<std::byte> small(600'000);
  write_part(small);
  come_back();
  EXPECT_TRUE(ends());
  EXPECT_EQ(receive.fault, Fault::truncated);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), long_sent.begin()));
}

TEST_F(TurnedMessage, EndsWithItsSender) {
  write_part(long_got);
  come_back();
  for (int i = 0; i < 3; ++i) {
    pair.poll(0);
  }
  pair.nodes[1]->lose_peer(0, "the test says so");
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(receive.fault, Fault::peer_lost);
}

TEST_F(TurnedMessage, ThatIsFollowedByAnotherOneKeepsTheOrder) {
  write_part(long_got);
  SendRequest next;
  RecvRequest next_receive;
  post(next_receive, got);
  pair.send(0, next, kTag, sent);
  come_back();
  EXPECT_TRUE(ends());
  ASSERT_TRUE(pair.poll_until([&] { return next_receive.done.done() && next.done.done(); }));
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(got, sent);
}

/// The announcement is there before the receive, so that no invitation leads to it: the answer says
/// whether the receiver will compute.
class AnsweredMessage : public TurnedMessage {
 protected:
  void announce_and_post() {
    send.is_awaited = true;  // By who could fill packets: it tells no address.
    pair.send(0, send, kTag, long_sent);
    for (int i = 0; i < 3; ++i) {
      pair.poll(0);
      pair.poll(1);
    }
    post(receive, long_got);
    pair.poll(1);  // The last thing before it computes.
    poll_sender();
  }
  /// The receive is there first, and its program waits.
  void exchange_in_time(bool is_awaited) {
    come_back();
    pair.receive(1, receive, kTag, long_got);
    send.is_awaited = is_awaited;
    pair.send(0, send, kTag, long_sent);
    EXPECT_TRUE(ends());
    EXPECT_EQ(long_got, long_sent);
  }
};

TEST_F(AnsweredMessage, IsWrittenToWhoWillCompute) {
  announce_and_post();
  EXPECT_EQ(invited(), 0U);
  EXPECT_EQ(direct_bytes(), kLongBytes);
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(data_bytes(), 0U);
}

TEST_F(AnsweredMessage, GoesInPacketsToWhoComesBackAtOnce) {
  pair.nodes[1]->absence().leave_reads(false);
  announce_and_post();
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(direct_bytes(), 0U);
  EXPECT_EQ(data_bytes(), kLongBytes);
}

// What goes in packets because those are faster has a head, though it could be written.
TEST_F(AnsweredMessage, HasAHeadThatIsNotSentAgain) {
  pair.nodes[1]->absence().leave_reads(false);
  exchange_in_time(true);
  EXPECT_EQ(pair.nodes[0]->statistics().heads_sent, 1U);
  EXPECT_EQ(pair.nodes[1]->statistics().heads_dropped, 0U);
  EXPECT_EQ(data_bytes(), kLongBytes);
  EXPECT_EQ(direct_bytes(), 0U);
}

// The answer says that the receiver will compute: it gets all of the message, also what it has.
TEST_F(AnsweredMessage, IsWrittenBehindItsHead) {
  const auto progress = std::move(progress::Progress::open().value());
  pair.nodes[1]->add_to(*progress);
  post(receive, long_got);
  send.is_awaited = true;
  pair.send(0, send, kTag, long_sent);
  // The last thing before it computes, and not of somebody who waits.
  (void)progress->poll(threads::SchedulingPoint::switching);
  poll_sender();
  pair.nodes[1]->remove_from(*progress);
  EXPECT_EQ(invited(), 0U);
  EXPECT_EQ(pair.nodes[0]->statistics().heads_sent, 1U);
  EXPECT_EQ(direct_bytes(), kLongBytes);
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(receive.fault, Fault::none);
  EXPECT_LT(data_bytes(), kLongBytes / 100) << "its head";
  EXPECT_EQ(pair.nodes[1]->statistics().frames_malformed, 0U);
}

// Who computes is not kept from it by a copy.
TEST_F(AnsweredMessage, HasNoHeadWhoseSenderComputes) {
  exchange_in_time(false);
  EXPECT_EQ(pair.nodes[0]->statistics().heads_sent, 0U);
}

// The other way round: the receiver reads what its sender, who computes, has announced.
class TurnedRead : public TurnedMessage {
 protected:
  void SetUp() override {
    TurnedMessage::SetUp();
    if (IsSkipped()) {
      return;
    }
    come_back();
    pair.nodes[0]->absence().flag()->store(AbsenceFlag::kAway);
    send.is_awaited = false;
  }
  void read_part(std::span<std::byte> into) {
    pair.receive(1, receive, kTag, into);
    pair.send(0, send, kTag, long_sent);
    pair.nodes[0]->absence().was_away(1'000'000, 2'000'000);
    for (int polls = 0; !has_read_part() && polls < kPolls; ++polls) {
      pair.poll(1);
    }
    ASSERT_TRUE(has_read_part());
    ASSERT_FALSE(receive.done.done());
  }
  /// Of a read only its end is counted: the costs of the way tell of its parts.
  bool has_read_part() {
    for (const CostModel::Row& row : pair.nodes[1]->cost(0).figures()) {
      if (std::string_view{row.name}.starts_with("direct") && row.figure.corrections != 0) {
        return true;
      }
    }
    return false;
  }
  void sender_comes_back() { pair.nodes[0]->absence().flag()->store(AbsenceFlag::kPresent); }
  std::uint64_t read_bytes() { return pair.nodes[1]->statistics().bytes_direct; }
};

TEST_F(TurnedRead, IsReadAsAWholeFromWhoComputes) {
  read_part(long_got);
  for (int i = 0; i < kPolls; ++i) {
    pair.poll(1);
  }
  EXPECT_TRUE(receive.done.done());
  EXPECT_EQ(read_bytes(), kLongBytes);
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_EQ(data_bytes(), 0U);
}

TEST_F(TurnedRead, GoesOnInPacketsFromWhoWaits) {
  read_part(long_got);
  sender_comes_back();
  EXPECT_TRUE(ends());
  EXPECT_EQ(long_got, long_sent);
  EXPECT_GT(read_bytes(), 0U);
  EXPECT_LT(read_bytes(), kLongBytes);
  EXPECT_EQ(data_bytes(), kLongBytes - read_bytes());
  EXPECT_EQ(direct_bytes(), 0U) << "the rest is not written, either";
  EXPECT_EQ(receive.envelope.bytes, kLongBytes);
}

TEST_F(TurnedRead, TruncatesAsEver) {
  std::vector<std::byte> small(1'600'000);
  read_part(small);
  sender_comes_back();
  EXPECT_TRUE(ends());
  EXPECT_EQ(receive.fault, Fault::truncated);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), long_sent.begin()));
}

TEST_F(TurnedRead, EndsWithItsSender) {
  read_part(long_got);
  sender_comes_back();
  for (int i = 0; i < 3; ++i) {
    pair.poll(1);
  }
  pair.nodes[1]->lose_peer(0, "the test says so");
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(receive.fault, Fault::peer_lost);
}

// For trials, too, a message is read though its sender waits.
TEST_F(TurnedRead, StaysAReadWhereItsSenderWaitedFromTheStart) {
  sender_comes_back();
  read_part(long_got);
  EXPECT_TRUE(ends());
  EXPECT_EQ(read_bytes(), kLongBytes);
  EXPECT_EQ(data_bytes(), 0U);
  EXPECT_EQ(long_got, long_sent);
}

}  // namespace
}  // namespace sterna::net
