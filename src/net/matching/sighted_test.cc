// Probes for messages that their sender keeps: who waits is told of the answer, and what was
// sighted a receive claims at once.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/matching/short_pair.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kContext = 3;  // Of Pair.
constexpr std::int32_t kFirst = 100;   // Messages that fill the window have tags below.
constexpr std::size_t kBytes = 8000;
constexpr int kMessagesMax = 10'000;

class Sighted : public testing::Test {
 protected:
  /// Sends until the sender keeps what it sends.
  void SetUp() override {
    pair.meet();
    while (pair.endpoints[1]->holder_count == 0U) {
      ASSERT_LT(sends.size(), std::size_t{kMessagesMax});
      send(0);
      poll();
    }
    settle();
  }
  void TearDown() override {
    for (const auto& request : sends) {
      while (!request->done.done()) {
        RecvRequest receive;
        pair.receive(1, receive, kAnyTag, got);
        ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
        poll();
      }
    }
  }
  void send(std::int32_t tag) {
    sends.push_back(std::make_unique<SendRequest>());
    pair.send(0, *sends.back(), tag, bytes);
  }
  void poll() {
    for (int i = 0; i < 4; ++i) {
      pair.poll();
    }
  }
  /// Until nothing is under way.
  void settle() {
    for (int i = 0; i < 1000; ++i) {
      pair.poll();
    }
  }
  bool looks(std::int32_t tag, MessageWatch* watch = nullptr) {
    return pair.nodes[1]->probe(*pair.endpoints[1], Pattern{0, kContext, tag}, found, watch);
  }
  /// As who waits does.
  bool waits(std::int32_t tag) {
    for (;;) {
      MessageWatch watch;
      if (looks(tag, &watch)) {
        return true;
      }
      if (watch.must_look_again) {
        pair.nodes[1]->end_watch(*pair.endpoints[1], watch);
        poll();
      } else if (!pair.poll_until([&] { return watch.done.done(); })) {
        return false;
      }
    }
  }

  Pair pair;
  std::array<std::byte, kBytes> bytes{};
  std::array<std::byte, kBytes> got{};
  std::vector<std::unique_ptr<SendRequest>> sends;
  Envelope found;
};

TEST_F(Sighted, WhoWaitsIsToldOfTheAnswer) {
  send(kFirst);
  settle();
  MessageWatch watch;
  ASSERT_FALSE(looks(kFirst, &watch));
  EXPECT_FALSE(watch.must_look_again);
  ASSERT_TRUE(pair.poll_until([&] { return watch.done.done(); }));
  EXPECT_TRUE(looks(kFirst));
  EXPECT_EQ(found.bytes, kBytes);
}

TEST_F(Sighted, AfterTheAnswerNothingWhoWaitsIsToldOfWhatIsAnnounced) {
  MessageWatch watch;
  ASSERT_FALSE(looks(kFirst, &watch));
  settle();
  EXPECT_FALSE(watch.done.done());
  send(kFirst + 1);
  settle();
  EXPECT_FALSE(watch.done.done()) << "it does not fit";
  send(kFirst);
  ASSERT_TRUE(pair.poll_until([&] { return watch.done.done(); }));
  EXPECT_TRUE(waits(kFirst));
}

TEST_F(Sighted, AReceiveClaimsItAtOnce) {
  send(kFirst);
  send(kFirst);
  ASSERT_TRUE(waits(kFirst));
  for (int i = 0; i < 2; ++i) {
    RecvRequest receive;
    pair.receive(1, receive, kFirst, got);
    EXPECT_EQ(pair.endpoints[1]->seeker_count, 0U);
    EXPECT_EQ(receive.state, RecvRequest::State::receiving);
    ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
    EXPECT_EQ(receive.message_bytes, kBytes);
    settle();  // The next one is looked for without being asked for.
  }
  RecvRequest receive;
  pair.receive(1, receive, kFirst, got);
  settle();
  EXPECT_FALSE(receive.done.done());
  EXPECT_TRUE(pair.nodes[1]->cancel_receive(*pair.endpoints[1], receive));
}

TEST_F(Sighted, AReceiveOfMoreAsks) {
  send(kFirst + 1);
  send(kFirst);
  ASSERT_TRUE(waits(kFirst));
  RecvRequest receive;
  pair.receive(1, receive, kAnyTag, got);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(receive.envelope.tag, 0) << "the oldest, not what was sighted";
}

TEST_F(Sighted, ProbesForDifferentMessagesBothFindTheirs) {
  send(kFirst);
  send(kFirst + 1);
  settle();
  MessageWatch first;
  MessageWatch second;
  ASSERT_FALSE(looks(kFirst, &first));
  ASSERT_FALSE(looks(kFirst + 1, &second));
  EXPECT_FALSE(first.must_look_again);
  EXPECT_TRUE(second.must_look_again);
  pair.nodes[1]->end_watch(*pair.endpoints[1], second);
  ASSERT_TRUE(pair.poll_until([&] { return first.done.done(); }));
  EXPECT_TRUE(waits(kFirst + 1));
  EXPECT_TRUE(waits(kFirst));
}

}  // namespace
}  // namespace sterna::net
