// Calls whose caller looks for the reply itself, in the memory of the way: over shared memory,
// beside others that call, with services that answer late, with an error, or never.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/matching/short_pair.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::uint64_t kLateNs = 200'000;

/// The reply is the argument; an odd first byte asks for one that comes late.
Result<Bytes> echo(void*, const Request& request) {
  const bool is_late = !request.arguments.empty() && request.arguments.front() == std::byte{1};
  const std::uint64_t end = is_late ? now_ns() + kLateNs : 0;
  while (now_ns() < end) {
  }
  return Bytes{request.arguments.begin(), request.arguments.end()};
}

Result<Bytes> fail(void*, const Request&) {
  return Error{Errc::refused, "not today"};
}

Result<Bytes> count(void* counter, const Request&) {
  ++*static_cast<int*>(counter);
  return Bytes{};
}

class CallsAtOnce : public testing::Test {
 protected:
  CallsAtOnce() {
    pair.share();
    for (std::uint32_t node = 0; node < 2; ++node) {
      rpcs.push_back(std::make_unique<Rpc>(
          RpcOptions{.transport = pair.nodes[node].get(), .progress = pair.progress[node].get()}));
      rpcs.back()->add_service("echo", RunIn::poll, echo, nullptr);
      rpcs.back()->add_service("fail", RunIn::poll, fail, nullptr);
      rpcs.back()->add_service("count", RunIn::poll, count, &served);
    }
  }
  ~CallsAtOnce() override { stop(); }

  /// Somebody polls node 1 from now on.
  void serve() {
    server = std::thread{[this] {
      while (!is_over.load()) {
        pair.poll(1);
      }
    }};
  }
  void stop() {
    is_over = true;
    if (server.joinable()) {
      server.join();
    }
  }
  /// Until the channel stands, and beside others now and then, calls go the usual way.
  bool start(std::string_view service, std::span<const std::byte> arguments, PendingCall& call) {
    if (rpcs[0]->start_at_once(1, service_number(service), arguments, call)) {
      return true;
    }
    rpcs[0]->start(1, service, arguments, call);
    return false;
  }
  /// The first messages between two nodes make their channel.
  void connect() {
    PendingCall call;
    (void)start("fail", {}, call);
    ASSERT_TRUE(pair.poll_until([&] { return call.done.done(); }));
  }

  net::Pair pair;
  int served = 0;  // By "count".
  std::vector<std::unique_ptr<Rpc>> rpcs;
  std::atomic<bool> is_over{false};
  std::thread server;
};

struct Outcomes {
  int at_once = 0;  // Those that were started so.
  int wrong = 0;
};

/// Calls of one kernel thread, one after the other, of several sizes.
Outcomes call_often(Rpc& rpc, int count, int late_every, unsigned seed) {
  Outcomes outcomes;
  for (int i = 0; i < count; ++i) {
    Bytes bytes(static_cast<std::size_t>(i) % 9 == 0 ? 1000 : 5 + seed);
    std::memcpy(bytes.data() + 1, &i, sizeof i);
    bytes.back() = static_cast<std::byte>(seed);
    bytes.front() = late_every != 0 && i % late_every == 0 ? std::byte{1} : std::byte{0};
    std::array<std::byte, 1000> room{};
    PendingCall call;
    call.room = room;
    if (rpc.start_at_once(1, service_number("echo"), bytes, call)) {
      ++outcomes.at_once;
    } else {
      rpc.start(1, "echo", bytes, call);
    }
    const bool is_done = rpc.wait(call);
    outcomes.wrong += is_done && call.reply.has_value() && call.reply_bytes == bytes.size() &&
                              std::ranges::equal(bytes, std::span{room}.first(bytes.size()))
                          ? 0
                          : 1;
  }
  return outcomes;
}

TEST_F(CallsAtOnce, BringTheirReplies) {
  serve();
  const Outcomes outcomes = call_often(*rpcs[0], 5000, 0, 0);
  EXPECT_EQ(outcomes.wrong, 0);
  EXPECT_GT(outcomes.at_once, 0);
}

TEST_F(CallsAtOnce, BringThemLateToo) {
  serve();
  const Outcomes outcomes = call_often(*rpcs[0], 500, 3, 1);
  EXPECT_EQ(outcomes.wrong, 0);
  EXPECT_GT(outcomes.at_once, 0);
}

TEST_F(CallsAtOnce, OfSeveralThreadsEachHasItsOwn) {
  serve();
  std::array<Outcomes, 3> outcomes{};
  std::vector<std::thread> callers;
  for (unsigned i = 0; i < outcomes.size(); ++i) {
    callers.emplace_back([&, i] { outcomes[i] = call_often(*rpcs[0], 500, 50, i); });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const Outcomes& one : outcomes) {
    EXPECT_EQ(one.wrong, 0);
  }
}

TEST_F(CallsAtOnce, TellHowLongAReplyIsThatDoesNotFit) {
  serve();
  const Bytes bytes(40, std::byte{6});
  for (int i = 0; i < 100; ++i) {
    std::array<std::byte, 8> room{};
    PendingCall call;
    call.room = room;
    (void)start("echo", bytes, call);
    ASSERT_TRUE(rpcs[0]->wait(call));
    EXPECT_EQ(call.reply_bytes, 40U);
    EXPECT_EQ(room.back(), std::byte{6});
  }
}

TEST_F(CallsAtOnce, BringTheErrorOfTheService) {
  connect();
  serve();
  PendingCall call;
  (void)start("fail", {}, call);
  ASSERT_TRUE(rpcs[0]->wait(call));
  ASSERT_FALSE(call.reply.has_value());
  EXPECT_EQ(call.reply.error().text, "not today");
}

TEST_F(CallsAtOnce, ThatWereGivenUpHearNothingMore) {
  connect();
  for (int i = 0; i < 3; ++i) {
    std::array<std::byte, 8> given_room{};
    std::array<std::byte, 8> room{};
    PendingCall given_up;
    given_up.room = given_room;
    const Bytes bytes(8, static_cast<std::byte>(2 + i));
    ASSERT_TRUE(start("echo", bytes, given_up));
    ASSERT_FALSE(given_up.done.done());  // Nobody serves.
    rpcs[0]->withdraw(given_up, {Errc::timed_out, "enough"});
    ASSERT_TRUE(given_up.done.done());
    PendingCall other;
    other.room = room;
    const Bytes others(8, static_cast<std::byte>(20 + i));
    (void)start("echo", others, other);
    ASSERT_TRUE(pair.poll_until([&] { return other.done.done(); }));
    EXPECT_TRUE(std::ranges::equal(room, others));
    EXPECT_FALSE(given_up.reply.has_value());
    EXPECT_EQ(given_room.front(), std::byte{0});
  }
}

TEST_F(CallsAtOnce, EndWithTheirNode) {
  connect();
  PendingCall before;
  ASSERT_TRUE(start("echo", {}, before));
  rpcs[0]->lose_peer(1);
  ASSERT_TRUE(before.done.done());
  EXPECT_EQ(before.reply.error().code, Errc::closed);
  PendingCall after;
  (void)start("echo", {}, after);
  ASSERT_TRUE(after.done.done());
  EXPECT_EQ(after.reply.error().code, Errc::closed);
}

TEST_F(CallsAtOnce, AreNotOfTheOwnNodeNorOfWhoDoesNotGetTheTurn) {
  connect();
  PendingCall call;
  EXPECT_FALSE(rpcs[0]->start_at_once(0, service_number("echo"), {}, call));
  const progress::Progress::Turn turn{*pair.progress[0]};
  EXPECT_FALSE(rpcs[0]->start_at_once(1, service_number("echo"), {}, call));
}

TEST_F(CallsAtOnce, OneWayOnesAreServedOnceEach) {
  connect();
  served = 0;
  int at_once = 0;
  constexpr int kPosts = 300;  // More than an inbox holds.
  for (int i = 0; i < kPosts; ++i) {
    if (rpcs[0]->try_post(1, service_number("count"), {})) {
      ++at_once;
    } else {
      ASSERT_TRUE(rpcs[0]->post(1, "count", {}).has_value());
    }
  }
  EXPECT_TRUE(pair.poll_until([&] { return served == kPosts; }));
  EXPECT_GT(at_once, 0);
  EXPECT_LT(at_once, kPosts);
  EXPECT_FALSE(rpcs[0]->try_post(0, service_number("count"), {}));
}

TEST(CallNumbers, ThatAreReservedAreFoundOncePutAndNeverTwice) {
  CallTable table;
  PendingCall call;
  PendingCall other;
  const std::uint64_t first = table.reserve();
  const std::uint64_t added = table.add(other);
  EXPECT_EQ(table.take(first), nullptr);
  std::uint64_t id = first;
  for (int i = 0; i < 3; ++i) {
    id = CallTable::next(id);
    EXPECT_NE(id, first);
    EXPECT_NE(id, added);
  }
  ASSERT_TRUE(table.put(id, call));
  EXPECT_EQ(call.id, id);
  EXPECT_EQ(table.take(first), nullptr);
  EXPECT_EQ(table.take(id), &call);
  EXPECT_EQ(table.take(id), nullptr);
  EXPECT_EQ(table.take(added), &other);
  // The greatest number of a place is followed by one that is not 0.
  const std::uint64_t greatest = (std::uint64_t{0xffff'ffff} << (kIdBits - 32)) | 5;
  EXPECT_EQ(CallTable::next(greatest), (std::uint64_t{1} << (kIdBits - 32)) | 5);
  call.to_node = 2;
  const std::uint64_t late = table.reserve();
  EXPECT_TRUE(table.lose(2).empty());
  EXPECT_FALSE(table.put(late, call));
  EXPECT_EQ(table.take(late), nullptr);
}

}  // namespace
}  // namespace sterna::rpc
