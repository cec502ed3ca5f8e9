// The short way of messages (short.cc) between two nodes of this process that share memory: what it
// takes, what it refuses, and, from seeds, that it keeps the order of the long way when the two are
// mixed.
#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/matching/short_pair.h"

namespace sterna::net {
namespace {

class Short : public testing::Test {
 protected:
  void SetUp() override { pair.meet(); }

  void check_that_a_receive_that_waits_is_first() {
    RecvRequest waiting;
    std::array<std::byte, 64> first{};
    pair.receive(1, waiting, 5, first);
    ASSERT_TRUE(pair.send_short(0, 5, out));
    EXPECT_FALSE(pair.receive_short(1, 5, in, found)) << "it is for the receive that waits";
    ASSERT_TRUE(pair.poll_until([&] { return waiting.done.done(); }));
    EXPECT_EQ(first, out);
  }

  Pair pair;
  std::array<std::byte, 64> out{std::byte{1}, std::byte{2}};
  std::array<std::byte, 64> in{};
  Envelope found;
};

TEST_F(Short, AMessageGoesAndComesWithoutARequestOrAPoll) {
  ASSERT_TRUE(pair.send_short(0, 5, out));
  ASSERT_TRUE(pair.receive_short(1, 5, in, found, 0));
  EXPECT_EQ(in, out);
  EXPECT_EQ(found.source, 0U);
  EXPECT_EQ(found.tag, 5);
  EXPECT_EQ(found.bytes, out.size());
  EXPECT_FALSE(pair.receive_short(1, 5, in, found)) << "it came once";
}

TEST_F(Short, OtherMessagesStayWhereTheyAre) {
  ASSERT_TRUE(pair.send_short(0, 5, out));
  EXPECT_FALSE(pair.receive_short(1, 6, in, found)) << "another tag";
  EXPECT_FALSE(pair.receive_short(1, 5, in, found, 1)) << "another source";
  EXPECT_FALSE(pair.receive_short(1, 5, std::span{in}.first(63), found)) << "too long";
  EXPECT_TRUE(pair.receive_short(1, kAnyTag, in, found)) << "it is still there";
}

TEST_F(Short, ReceivesThatWaitAndMessagesThatWaitComeFirst) {
  check_that_a_receive_that_waits_is_first();

  ASSERT_TRUE(pair.send_short(0, 5, out));
  pair.poll();  // It waits in a queue now.
  ASSERT_TRUE(pair.send_short(0, 5, out));
  EXPECT_FALSE(pair.receive_short(1, 5, in, found)) << "the one in the queue is older";
}

TEST_F(Short, AMessageThatWaitsIsTakenByWhoNamesIt) {
  const std::array<std::byte, 64> second{std::byte{3}};
  ASSERT_TRUE(pair.send_short(0, 5, out));
  pair.poll();
  ASSERT_TRUE(pair.send_short(0, 5, second));
  EXPECT_FALSE(pair.receive_short(1, 6, in, found, 0)) << "another tag";
  EXPECT_FALSE(pair.receive_short(1, 5, std::span{in}.first(63), found, 0)) << "too long";
  ASSERT_TRUE(pair.receive_short(1, 5, in, found, 0));
  EXPECT_EQ(in, out);
  EXPECT_EQ(found.bytes, out.size());
  EXPECT_EQ(pair.endpoints[1]->unexpected_bytes, 0U);
  ASSERT_TRUE(pair.receive_short(1, 5, in, found, 0));
  EXPECT_EQ(in, second);
}

TEST_F(Short, AMessageThatWaitsAndWhoseSenderIsToBeToldIsForTheLongWay) {
  std::vector<std::byte> much(300'000);
  SendRequest synchronous;
  pair.nodes[0]->send(*pair.endpoints[0], synchronous, {1, 3, 5},
                      Buffer::of(out.data(), out.size()), SendMode::synchronous);
  SendRequest announced;
  pair.send(0, announced, 6, much);
  pair.poll();
  ASSERT_EQ(pair.endpoints[1]->message_count, 2U);
  EXPECT_FALSE(pair.receive_short(1, 5, in, found, 0));
  EXPECT_FALSE(pair.receive_short(1, 6, much, found, 0));
  RecvRequest first;
  RecvRequest second;
  pair.receive(1, first, 5, in);
  pair.receive(1, second, 6, much);
  EXPECT_TRUE(pair.poll_until([&] {
    return first.done.done() && second.done.done() && synchronous.done.done() &&
           announced.done.done();
  }));
}

/// A window's worth: its sender hears of the room, by the long way.
TEST_F(Short, MessagesThatWaitGiveTheirRoomBack) {
  constexpr int kCount = 5000;  // Of 704 bytes of the window of 1 MB.
  int short_ones = 0;
  for (int i = 0; i < kCount; ++i) {
    SendRequest send;
    pair.send(0, send, 5, out);
    pair.poll();
    ASSERT_TRUE(send.done.done()) << i;
    const bool is_short = pair.receive_short(1, 5, in, found, 0);
    short_ones += is_short ? 1 : 0;
    if (!is_short) {
      RecvRequest receive;
      pair.receive(1, receive, 5, in, 0);
      ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
    }
  }
  EXPECT_GT(short_ones, kCount * 9 / 10);
  EXPECT_LT(short_ones, kCount);
}

TEST_F(Short, AMessageTooLongForTheReceiveThatWaitsIsCut) {
  RecvRequest waiting;
  std::array<std::byte, 64> first{};
  pair.receive(1, waiting, 5, std::span{first}.first(1));
  ASSERT_TRUE(pair.send_short(0, 5, out));
  ASSERT_TRUE(pair.poll_until([&] { return waiting.done.done(); }));
  EXPECT_EQ(waiting.fault, Fault::truncated);
  EXPECT_EQ(waiting.envelope.bytes, 1U);
  EXPECT_EQ(first[0], out[0]);
  EXPECT_EQ(first[1], std::byte{0});
}

TEST_F(Short, WhatNeedsTwoPacketsIsNotShort) {
  std::vector<std::byte> message(40 << 10);
  for (std::size_t i = 0; i < message.size(); ++i) {
    message[i] = static_cast<std::byte>(i % 251);
  }
  EXPECT_FALSE(pair.send_short(0, 5, message));
  EXPECT_TRUE(pair.send_short(0, 5, std::span{message}.first(16 << 10)));
  std::vector<std::byte> got(message.size());
  EXPECT_TRUE(pair.receive_short(1, 5, got, found));
  EXPECT_EQ(found.bytes, 16U << 10);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + (16 << 10), message.begin()));
  for (const bool is_posted_first : {true, false}) {
    std::ranges::fill(got, std::byte{});
    SendRequest send_request;
    RecvRequest receive_request;
    if (is_posted_first) {
      pair.receive(1, receive_request, 6, got);
    }
    pair.send(0, send_request, 6, message);
    if (!is_posted_first) {
      pair.poll();
      pair.receive(1, receive_request, 6, got);
    }
    ASSERT_TRUE(
        pair.poll_until([&] { return send_request.done.done() && receive_request.done.done(); }));
    EXPECT_EQ(got, message);
  }
}

TEST_F(Short, SeveralCallersNeedAPoller) {
  pair.nodes[0]->serve_one_caller(false);
  pair.nodes[1]->serve_one_caller(false);
  ASSERT_TRUE(pair.send_short(0, 5, out));
  EXPECT_FALSE(pair.receive_short(1, 5, in, found)) << "nobody's turn could be taken";
  pair.nodes[1]->serve_one_caller(true);
  EXPECT_TRUE(pair.receive_short(1, 5, in, found));
}

TEST_F(Short, BesideOthersItIsTheSameWay) {
  pair.share();
  ASSERT_TRUE(pair.send_short(0, 5, out));
  EXPECT_FALSE(pair.receive_short(1, 6, in, found)) << "another tag";
  ASSERT_TRUE(pair.receive_short(1, 5, in, found, 0));
  EXPECT_EQ(in, out);
  EXPECT_EQ(found.bytes, out.size());

  check_that_a_receive_that_waits_is_first();
}

TEST_F(Short, WhoPollsLooksAlone) {
  pair.share();
  ASSERT_TRUE(pair.send_short(0, 5, out));
  {
    const progress::Progress::Turn turn{*pair.progress[1]};
    ASSERT_TRUE(turn.is_taken());
    EXPECT_FALSE(pair.receive_short(1, 5, in, found)) << "another polls";
    EXPECT_EQ(pair.progress[1]->poll(), 0U) << "a turn is a poll's";
  }
  EXPECT_TRUE(pair.receive_short(1, 5, in, found));
}

TEST_F(Short, CreditEndsAndComesBack) {
  int sent = 0;
  while (pair.send_short(0, 5, out)) {
    ++sent;
  }
  EXPECT_GT(sent, 100);
  // However many: when the receiver has told its credit, there is room again.
  for (int i = 0; i < 20'000; ++i) {
    SendRequest request;
    if (!pair.send_short(0, 5, out)) {
      pair.send(0, request, 5, out);
    }
    RecvRequest receive_request;
    if (!pair.receive_short(1, 5, in, found)) {
      pair.receive(1, receive_request, 5, in);
      ASSERT_TRUE(pair.poll_until([&] { return receive_request.done.done(); }));
    }
    ASSERT_TRUE(pair.poll_until([&] { return request.done.done() || request.id == 0; }));
  }
  for (; sent > 0; --sent) {
    RecvRequest receive_request;
    pair.receive(1, receive_request, 5, in);
    ASSERT_TRUE(pair.poll_until([&] { return receive_request.done.done(); }));
  }
  EXPECT_TRUE(pair.poll_until([&] { return pair.send_short(0, 5, out); }));
}

TEST_F(Short, ALostPeerIsForTheLongWay) {
  pair.nodes[0]->lose_peer(1, "the test says so");
  ASSERT_TRUE(pair.poll_until([&] { return pair.nodes[0]->has_lost_nodes(); }));
  EXPECT_FALSE(pair.send_short(0, 5, out));
  EXPECT_FALSE(pair.receive_short(0, 5, in, found));
  RecvRequest request;
  pair.receive(0, request, 5, in, 1);
  EXPECT_TRUE(request.done.done());
  EXPECT_EQ(request.fault, Fault::peer_lost);
}

// --- Both ways mixed -----------------------------------------------------------------------------

constexpr std::size_t kLongest = 50'000;  // Several packets.

/// One direction: what was sent, and which receives there were, both in order.
struct Stream {
  struct Sent {
    std::int32_t tag;
    std::size_t bytes;
    bool is_taken = false;
  };
  struct Receive {
    std::int32_t tag;
    std::vector<std::byte> memory;
    RecvRequest request;            // Of the long way...
    std::optional<Envelope> found;  // ...and what the short way said.
  };
  std::vector<Sent> sent;
  std::list<std::pair<std::vector<std::byte>, SendRequest>> sends;
  std::list<Receive> receives;
};

class Mixture {
 public:
  Mixture(std::uint64_t seed, bool is_shared) : random_{seed} {
    pair_.meet();
    if (is_shared) {
      pair_.share();
    }
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      const auto rank = static_cast<std::uint32_t>(random_.below(2));
      const Stream& stream = streams_[rank];
      // Few at a time, so that often nothing waits.
      if (random_.below(2) == 0 && stream.sent.size() < stream.receives.size() + 3) {
        send(rank);
      } else if (random_.below(20) != 0) {
        receive(rank, static_cast<std::int32_t>(random_.below(3)) - 1);
      } else {
        pair_.poll(rank);
      }
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      end(rank);
      check_order(rank);
    }
    EXPECT_GT(short_sends_, steps / 20);
    EXPECT_GT(short_receives_, steps / 400);
  }

 private:
  static std::byte filling(std::size_t serial, std::size_t at) {
    return static_cast<std::byte>(serial * 31 + at * 7);
  }

  void send(std::uint32_t from) {
    Stream& stream = streams_[from];
    const std::size_t serial = stream.sent.size();
    static constexpr std::size_t kSizes[] = {8, 8, 9, 64, 328, 329, 1000, 16'000, kLongest};
    const std::size_t bytes = kSizes[random_.below(std::size(kSizes))];
    const auto tag = static_cast<std::int32_t>(random_.below(2));
    stream.sent.push_back({tag, bytes});
    std::vector<std::byte> memory(bytes);
    for (std::size_t at = 0; at < bytes; ++at) {
      memory[at] = filling(serial, at);
    }
    std::memcpy(memory.data(), &serial, sizeof serial);
    if (random_.below(4) != 0 && pair_.send_short(from, tag, memory)) {
      ++short_sends_;
      return;
    }
    auto& [kept, request] = stream.sends.emplace_back();
    kept = std::move(memory);
    pair_.send(from, request, tag, kept);
  }

  void receive(std::uint32_t at, std::int32_t tag) {
    Stream& stream = streams_[1 - at];
    Stream::Receive& receive = stream.receives.emplace_back();
    receive.tag = tag;
    receive.memory.resize(kLongest);
    Envelope found;
    if (random_.below(4) != 0 && pair_.receive_short(at, tag, receive.memory, found)) {
      ++short_receives_;
      receive.found = found;
    } else if (random_.below(stream.receives.size() > stream.sent.size() ? 60 : 3) == 0) {
      pair_.receive(at, receive.request, tag, receive.memory);
    } else {
      stream.receives.pop_back();
    }
  }

  /// All receives end: enough is sent for them.
  void end(std::uint32_t from) {
    Stream& stream = streams_[from];
    const auto is_over = [&] {
      return std::ranges::all_of(stream.receives, [](const Stream::Receive& receive) {
        return receive.found.has_value() || receive.request.done.done();
      });
    };
    for (int round = 0; round < 10'000 && !is_over(); ++round) {
      send(from);
      for (int i = 0; i < 10; ++i) {
        pair_.poll();
      }
    }
    ASSERT_TRUE(pair_.poll_until(is_over));
    // What was not received is taken, so that the sends end.
    std::vector<std::byte> memory(kLongest);
    for (std::size_t rest = stream.sent.size() - stream.receives.size(); rest > 0; --rest) {
      RecvRequest request;
      pair_.receive(1 - from, request, kAnyTag, memory);
      ASSERT_TRUE(pair_.poll_until([&] { return request.done.done(); }));
    }
    for (auto& [kept, request] : stream.sends) {
      ASSERT_TRUE(pair_.poll_until([&request = request] { return request.done.done(); }));
    }
  }

  /// Each receive, in their order, has the first message that fits and that none before it has.
  void check_order(std::uint32_t from) {
    Stream& stream = streams_[from];
    for (const Stream::Receive& receive : stream.receives) {
      const auto first = std::ranges::find_if(stream.sent, [&](const Stream::Sent& sent) {
        return !sent.is_taken && (receive.tag == kAnyTag || receive.tag == sent.tag);
      });
      ASSERT_NE(first, stream.sent.end());
      first->is_taken = true;
      const auto serial = static_cast<std::size_t>(first - stream.sent.begin());
      const Envelope& found = receive.found ? *receive.found : receive.request.envelope;
      std::size_t read = 0;
      std::memcpy(&read, receive.memory.data(), sizeof read);
      ASSERT_EQ(read, serial);
      ASSERT_EQ(found.tag, first->tag);
      ASSERT_EQ(found.bytes, first->bytes);
      for (std::size_t at = sizeof read; at < first->bytes; ++at) {
        ASSERT_EQ(receive.memory[at], filling(serial, at));
      }
    }
  }

  Random random_;
  Pair pair_;
  std::array<Stream, 2> streams_;  // By sender.
  int short_sends_ = 0;
  int short_receives_ = 0;
};

class ShortAndLong : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ShortAndLong, KeepOneOrder) {
  Mixture{GetParam(), false}.run(10'000);
}

TEST_P(ShortAndLong, KeepOneOrderBesideOthers) {
  Mixture{GetParam(), true}.run(10'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShortAndLong, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace sterna::net
