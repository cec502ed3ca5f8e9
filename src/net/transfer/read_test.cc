// Messages that the receiver's node reads from the sender's memory, over shared memory.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "net/matching/short_pair.h"
#include "net/transfer/absence.h"

namespace sterna::net {
namespace {

constexpr std::int32_t kTag = 5;

/// How often direct copies have corrected the figures of the way from `node` to the other one.
std::uint32_t corrections(const Pair& pair, std::uint32_t node) {
  std::uint32_t count = 0;
  for (const CostModel::Row& row : pair.nodes[node]->cost(1 - node).figures()) {
    count += std::string_view{row.name}.starts_with("direct") ? row.figure.corrections : 0;
  }
  return count;
}

/// From rank 0 to rank 1, by a sender that does not wait, but computes first or polls at once; as
/// one of several callers it waits at once, and leaves its processor to others if not `is_alone`.
void pass(Pair& pair, std::size_t bytes, bool computes, bool is_alone = true) {
  std::vector<std::byte> sent(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    sent[i] = static_cast<std::byte>(i * 7);
  }
  std::vector<std::byte> got(bytes);
  SendRequest send_request;
  send_request.is_awaited = false;
  RecvRequest receive_request;
  pair.receive(1, receive_request, kTag, got);
  pair.send(0, send_request, kTag, sent);
  if (computes) {
    pair.nodes[0]->absence().was_away(1'000'000, 2'000'000);
  } else if (pair.progress[0] != nullptr) {
    pair.progress[0]->waits(is_alone);
  }
  ASSERT_TRUE(
      pair.poll_until([&] { return send_request.done.done() && receive_request.done.done(); }));
  EXPECT_EQ(std::memcmp(got.data(), sent.data(), bytes), 0);
}

class Reads : public testing::TestWithParam<std::size_t> {};

// Who sends chooses between reads and packets, who receives knows what a read costs.
TEST_P(Reads, TheSenderLearnsWhatReadingCostTheReceiver) {
  Pair pair;
  pair.meet();
  // Such a system's messages go in packets, which the sender times itself: there is nothing to
  // tell.
  if (!pair.nodes[0]->cost(1).is_direct()) {
    GTEST_SKIP() << "this system does not let a process read another one's memory";
  }
  for (std::uint32_t times = 1; times <= 3; ++times) {
    pass(pair, GetParam(), true);
    EXPECT_EQ(corrections(pair, 0), times) << "the sender, once a message";
    EXPECT_GE(corrections(pair, 1), times) << "the receiver, at each of its parts";
  }
}

/// Of what the peer of `node` takes to read packets.
std::uint32_t reading_corrections(const Pair& pair, std::uint32_t node) {
  for (const CostModel::Row& row : pair.nodes[node]->cost(1 - node).figures()) {
    if (std::string_view{row.name} == "reading_ps_per_byte") {
      return row.figure.corrections;
    }
  }
  return 0;
}

// What goes eagerly has no answer: else nothing would be known where all messages do.
TEST_P(Reads, TheirAnswersTellTheSenderWhatReadingPacketsTakes) {
  Pair pair;
  pair.meet();
  if (!pair.nodes[0]->cost(1).is_direct()) {
    GTEST_SKIP() << "this system does not let a process read another one's memory";
  }
  for (int i = 0; i < 6; ++i) {
    pass(pair, 100'000, true);  // Node 1 only receives.
  }
  const std::vector<std::byte> eager(20'000);
  for (int i = 0; i < 40; ++i) {
    std::vector<std::byte> got(eager.size());
    SendRequest send_request;
    send_request.is_awaited = true;
    RecvRequest receive_request;
    pair.receive(1, receive_request, kTag, got);
    pair.send(0, send_request, kTag, eager);
    ASSERT_TRUE(
        pair.poll_until([&] { return send_request.done.done() && receive_request.done.done(); }));
  }
  const std::uint32_t before = reading_corrections(pair, 0);
  pass(pair, GetParam(), true);
  EXPECT_EQ(reading_corrections(pair, 0), before + 1);
}

// Meanwhile its messages go as if they were awaited, in packets or directly, as the costs say.
TEST_P(Reads, WhoWaitsAtOnceForAWhileAndThenComputesIsReadAgain) {
  Pair pair;
  pair.meet();
  if (!pair.nodes[0]->cost(1).is_direct()) {
    GTEST_SKIP() << "this system does not let a process read another one's memory";
  }
  for (int i = 0; i < 50; ++i) {
    pass(pair, GetParam(), false);
  }
  pass(pair, GetParam(), true);
  const std::uint32_t before = corrections(pair, 0);
  pass(pair, GetParam(), true);
  EXPECT_EQ(corrections(pair, 0), before + 1) << "it computes, the receiver reads";
}

// Where several call each has a habit of its own (progress/wait_habits.h).
TEST_P(Reads, OfSeveralCallersWhoWaitsAtOnceSendsAsIfAwaited) {
  Pair pair;
  pair.meet();
  if (!pair.nodes[0]->cost(1).is_direct()) {
    GTEST_SKIP() << "this system does not let a process read another one's memory";
  }
  pair.share();
  const auto is_read = [&](bool is_alone) {
    const std::uint64_t before = pair.nodes[1]->statistics().bytes_direct;
    pass(pair, GetParam(), false, is_alone);
    return pair.nodes[1]->statistics().bytes_direct != before;
  };
  EXPECT_TRUE(is_read(true)) << "not known to wait";
  (void)is_read(true);
  constexpr int kTimes = 20;  // Some of them may try the other way.
  int reads = 0;
  const bool is_longer = GetParam() < pair.nodes[0]->cost(1).direct_from_bytes();
  for (int i = 0; i < kTimes; ++i) {
    reads += is_read(true) ? 1 : 0;
  }
  EXPECT_TRUE(reads < kTimes || !is_longer);
  (void)is_read(false);
  EXPECT_TRUE(is_read(false)) << "it leaves its processor to others";
}

// Its peer may wait for what goes behind the receive, in the same call.
TEST_P(Reads, WhatHadComeBeforeAReceiveBesideSendsIsReadByAPoll) {
  Pair pair;
  pair.meet();
  if (!pair.nodes[0]->cost(1).is_direct()) {
    GTEST_SKIP() << "this system does not let a process read another one's memory";
  }
  const std::vector<std::byte> sent(GetParam(), std::byte{7});
  for (const bool is_beside_sends : {true, false}) {
    std::vector<std::byte> got(sent.size());
    SendRequest send_request;
    send_request.is_awaited = false;
    RecvRequest receive_request;
    receive_request.is_beside_sends = is_beside_sends;
    pair.send(0, send_request, kTag, sent);
    pair.poll(1);
    const std::uint64_t before = pair.nodes[1]->statistics().bytes_direct;
    pair.receive(1, receive_request, kTag, got);
    const bool is_read = pair.nodes[1]->statistics().bytes_direct != before;
    EXPECT_EQ(is_read, !is_beside_sends && sent.size() <= (256 << 10));
    pair.nodes[0]->absence().was_away(1'000'000, 2'000'000);  // It computes, by its habit.
    ASSERT_TRUE(
        pair.poll_until([&] { return send_request.done.done() && receive_request.done.done(); }));
    EXPECT_EQ(got, sent);
  }
}

// In the poll that matches it, and in parts by later ones.
INSTANTIATE_TEST_SUITE_P(OfSizes, Reads, testing::Values(100'000, 256 << 10, 3'000'001));

}  // namespace
}  // namespace sterna::net
