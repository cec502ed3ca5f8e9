// Probes that see a message where it has arrived, before anybody has taken it in (probe.cc),
// between two nodes of this process that share memory: what they see, that it stays for the next
// receive or poll, and, from seeds, that what a probe has found is what its receive gets.
#include <array>
#include <cstring>
#include <list>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/matching/short_pair.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 3;

class Peek : public testing::Test {
 protected:
  void SetUp() override { pair.meet(); }

  bool probe(std::int32_t tag, std::uint32_t source = kAnySource) {
    return pair.nodes[1]->probe(*pair.endpoints[1], Pattern{source, kContext, tag}, found);
  }

  Pair pair;
  std::array<std::byte, 64> out{std::byte{1}, std::byte{2}};
  std::array<std::byte, 64> in{};
  Envelope found;
};

TEST_F(Peek, AMessageIsSeenWhereItIsAndStaysForTheNextReceive) {
  EXPECT_FALSE(probe(5));
  ASSERT_TRUE(pair.send_short(0, 5, out));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(probe(5, 0));
    EXPECT_EQ(found.source, 0U);
    EXPECT_EQ(found.context, kContext);
    EXPECT_EQ(found.tag, 5);
    EXPECT_EQ(found.bytes, out.size());
  }
  EXPECT_EQ(pair.endpoints[1]->message_count, 0U) << "nobody has taken it in";
  ASSERT_TRUE(pair.receive_short(1, 5, in, found, 0));
  EXPECT_EQ(in, out);
  EXPECT_FALSE(probe(5)) << "it came once";
}

TEST_F(Peek, OnlyWhatFitsIsSeen) {
  ASSERT_TRUE(pair.send_short(0, 6, out));
  EXPECT_FALSE(probe(5));
  EXPECT_FALSE(probe(6, 1)) << "another source";
  EXPECT_FALSE(pair.nodes[1]->probe(*pair.endpoints[1], Pattern{0, kContext + 1, 6}, found));
  EXPECT_TRUE(pair.nodes[1]->probe(*pair.endpoints[1], MaskedPattern{{0, kContext, 4}, 4}, found));
  EXPECT_FALSE(pair.nodes[1]->probe(*pair.endpoints[1], MaskedPattern{{0, kContext, 5}, 5}, found));
  EXPECT_TRUE(probe(kAnyTag));
  EXPECT_EQ(found.tag, 6);
}

TEST_F(Peek, APollTakesInWhatWasSeen) {
  ASSERT_TRUE(pair.send_short(0, 5, out));
  ASSERT_TRUE(probe(5));
  pair.poll();
  EXPECT_EQ(pair.endpoints[1]->message_count, 1U);
  ASSERT_TRUE(probe(5));
  RecvRequest receive;
  pair.receive(1, receive, 5, in);
  EXPECT_TRUE(receive.done.done());
  EXPECT_EQ(in, out);
  EXPECT_FALSE(probe(5));
}

TEST_F(Peek, AMessageThatWaitsIsFoundFirst) {
  const std::array<std::byte, 8> second{std::byte{3}};
  ASSERT_TRUE(pair.send_short(0, 5, out));
  pair.poll();
  ASSERT_TRUE(pair.send_short(0, 5, second));
  ASSERT_TRUE(probe(5));
  EXPECT_EQ(found.bytes, out.size());
}

TEST_F(Peek, AMatchedProbeTakesItOutOnceItHasBeenTakenIn) {
  ASSERT_TRUE(pair.send_short(0, 5, out));
  ASSERT_TRUE(probe(5));
  Message* message = nullptr;
  ASSERT_TRUE(pair.poll_until([&] {
    if (message == nullptr) {
      message = pair.nodes[1]->matched_probe(*pair.endpoints[1], Pattern{0, kContext, 5}, found);
    }
    return message != nullptr;
  }));
  EXPECT_FALSE(probe(5));
  RecvRequest receive;
  pair.nodes[1]->receive_matched(*pair.endpoints[1], receive, *message,
                                 Buffer::of(in.data(), in.size()));
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(in, out);
}

/// Beside a receive that is posted the message is for that, if it fits.
TEST_F(Peek, WhatIsForAReceiveThatWaitsIsNotSeen) {
  RecvRequest waiting;
  pair.receive(1, waiting, 5, in);
  ASSERT_TRUE(pair.send_short(0, 5, out));
  EXPECT_FALSE(probe(5));
  ASSERT_TRUE(pair.poll_until([&] { return waiting.done.done(); }));
  EXPECT_FALSE(probe(5));
}

/// Who tests in vain need not poll where a look shows that nothing has come.
TEST_F(Peek, WhetherAPollMayFindMoreIsSeen) {
  Transport& node = *pair.nodes[1];
  constexpr int kLooks = 1000;
  const auto polls_worth_it = [&] {
    int count = 0;
    for (int i = 0; i < kLooks; ++i) {
      count += node.may_find_more() ? 1 : 0;
    }
    return count;
  };
  const int in_vain = polls_worth_it();
  EXPECT_GT(in_vain, 0) << "now and then in any case";
  EXPECT_LT(in_vain, kLooks / 100);
  ASSERT_TRUE(pair.send_short(0, 5, out));
  EXPECT_EQ(polls_worth_it(), kLooks);
  pair.poll(1);
  EXPECT_LT(polls_worth_it(), kLooks / 100) << "it has been taken in";
  std::vector<std::byte> much(30'000);
  SendRequest send;
  pair.send(0, send, 6, much);
  EXPECT_EQ(polls_worth_it(), kLooks) << "one that poll() alone can take";
  RecvRequest receive;
  pair.receive(1, receive, 6, much);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done() && send.done.done(); }));
  pair.share();
  EXPECT_EQ(polls_worth_it(), kLooks) << "several may call";
}

TEST(PeekOfStrangers, TheFirstMessageOfAPeerIsSeenToBeThere) {
  Pair pair;
  const std::array<std::byte, 8> out{};
  SendRequest send;
  pair.send(0, send, 5, out);
  pair.poll(0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pair.nodes[1]->may_find_more());
  }
}

class PeekSeeds : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PeekSeeds, WhatAProbeHasFoundIsWhatItsReceiveGets) {
  constexpr int kMessages = 3000;
  constexpr int kTags = 3;
  Random random{GetParam()};
  Pair pair;
  pair.meet();
  std::array<std::uint32_t, kTags> sent{};
  std::array<std::uint32_t, kTags> received{};
  std::array<std::list<std::uint32_t>, kTags> lengths;
  std::list<SendRequest> sends;
  std::list<std::vector<std::byte>> buffers;
  std::vector<std::byte> in(20'000);
  for (int left = kMessages; left > 0 || sent != received;) {
    if (left > 0 && random.below(2) == 0) {
      const auto tag = static_cast<std::int32_t>(random.below(kTags));
      std::vector<std::byte> bytes(8 + random.below(random.below(8) == 0 ? 15'000 : 200));
      std::memcpy(bytes.data(), &sent[static_cast<std::size_t>(tag)], sizeof(std::uint32_t));
      lengths[static_cast<std::size_t>(tag)].push_back(static_cast<std::uint32_t>(bytes.size()));
      ++sent[static_cast<std::size_t>(tag)];
      --left;
      if (random.below(2) == 0 || !pair.send_short(0, tag, bytes)) {
        buffers.push_back(std::move(bytes));
        pair.send(0, sends.emplace_back(), tag, buffers.back());
      }
    }
    if (random.below(4) == 0) {
      pair.poll(static_cast<std::uint32_t>(random.below(2)));
    }
    const std::int32_t wanted =
        random.below(3) == 0 ? kAnyTag : static_cast<std::int32_t>(random.below(kTags));
    Envelope found;
    if (!pair.nodes[1]->probe(*pair.endpoints[1], Pattern{kAnySource, kContext, wanted}, found)) {
      continue;
    }
    ASSERT_TRUE(wanted == kAnyTag || found.tag == wanted);
    const auto tag = static_cast<std::size_t>(found.tag);
    ASSERT_FALSE(lengths[tag].empty());
    ASSERT_EQ(found.bytes, lengths[tag].front());
    lengths[tag].pop_front();
    Envelope came;
    RecvRequest receive;
    if (random.below(2) == 0 || !pair.receive_short(1, found.tag, in, came, found.source)) {
      pair.receive(1, receive, found.tag, in, found.source);
      ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
      came = receive.envelope;
    }
    ASSERT_EQ(came.bytes, found.bytes);
    std::uint32_t number = 0;
    std::memcpy(&number, in.data(), sizeof number);
    ASSERT_EQ(number, received[tag]++);
  }
  EXPECT_TRUE(pair.poll_until([&] {
    for (const SendRequest& send : sends) {
      if (!send.done.done()) {
        return false;
      }
    }
    return true;
  }));
}

INSTANTIATE_TEST_SUITE_P(Seeds, PeekSeeds, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sterna::net
