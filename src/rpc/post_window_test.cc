// Flow control of posts: what both sides count, who waits, who is woken; and that sender and
// receiver count the same for whatever becomes of a request, on a simulated network.
#include "rpc/post_window.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::uint64_t kTotals = std::uint64_t{1} << kIdBits;
constexpr std::uint64_t kUntoldMax = kPostStep + kPostPending;  // By a receiver that is done.

TEST(PostWindows, AreOpenForWhatWasPostedBeforeWithinTheWindow) {
  PostWindow window;
  const std::uint64_t first = window.take(3 * kPostWindow);  // Larger than the window, but alone.
  EXPECT_TRUE(window.is_open(first));
  const std::uint64_t second = window.take(1);
  EXPECT_FALSE(window.is_open(second));
  EXPECT_TRUE(window.acknowledge(2 * kPostWindow - 1));
  EXPECT_FALSE(window.is_open(second));
  EXPECT_TRUE(window.acknowledge(2 * kPostWindow));
  EXPECT_TRUE(window.is_open(second));
  EXPECT_EQ(window.outstanding(), kPostWindow + 1);
}

TEST(PostWindows, KeepTheLargestTotalWhateverTheOrder) {
  PostWindow window;
  (void)window.take(1000);
  EXPECT_TRUE(window.acknowledge(700));
  EXPECT_TRUE(window.acknowledge(300));
  EXPECT_TRUE(window.acknowledge(700));
  EXPECT_EQ(window.outstanding(), 300U);
  EXPECT_TRUE(window.acknowledge(1000));
  EXPECT_EQ(window.outstanding(), 0U);
}

TEST(PostWindows, RefuseATotalBeyondWhatWasPosted) {
  PostWindow window;
  (void)window.take(1000);
  window.give_back(400);
  for (const std::uint64_t total : {std::uint64_t{601}, kTotals / 4, kTotals / 2 - 1}) {
    EXPECT_FALSE(window.acknowledge(total)) << total;
    EXPECT_EQ(window.outstanding(), 600U);
  }
  for (const std::uint64_t total : {kTotals / 2, kTotals - 1, ~std::uint64_t{0}}) {
    EXPECT_TRUE(window.acknowledge(total)) << total;  // As if it were old.
    EXPECT_EQ(window.outstanding(), 600U);
  }
  EXPECT_TRUE(window.acknowledge(600));
  EXPECT_EQ(window.outstanding(), 0U);
}

TEST(PostWindows, GoOnWhereTheTotalsBeginAgain) {
  PostWindow window;
  std::uint64_t total = 0;
  for (int i = 0; i < 9; ++i) {
    (void)window.take(kTotals / 4 + 5);
    total += kTotals / 4 + 5;
    EXPECT_FALSE(window.acknowledge((total + 1) % kTotals));
    EXPECT_TRUE(window.acknowledge(total % kTotals));
    EXPECT_TRUE(window.acknowledge((total - 3) % kTotals));
    EXPECT_EQ(window.outstanding(), 0U);
  }
}

/// Kernel threads that wait for their places.
class Waiters : public testing::Test {
 protected:
  void wait_at(std::uint64_t place) {
    threads.emplace_back([this, place] {
      const bool is_open = window.wait(place, *progress);
      (is_open ? gone : closed).fetch_add(1);
    });
  }
  void TearDown() override {
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  std::unique_ptr<progress::Progress> progress = std::move(progress::Progress::open().value());
  PostWindow window;
  std::vector<std::thread> threads;
  std::atomic<int> gone{0};
  std::atomic<int> closed{0};
};

TEST_F(Waiters, AreWokenInTheOrderOfTheirPlaces) {
  std::array<std::uint64_t, 4> places{};
  for (std::uint64_t& place : places) {
    place = window.take(2 * kPostWindow);
  }
  EXPECT_TRUE(window.wait(places[0], *progress));
  for (const std::size_t i : {3U, 1U, 2U}) {  // They come in any order.
    wait_at(places[i]);
  }
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(gone.load(), i - 1);
    EXPECT_TRUE(window.acknowledge(static_cast<std::uint64_t>(i) * 2 * kPostWindow));
    while (gone.load() < i) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(closed.load(), 0);
}

TEST_F(Waiters, EndWhenTheNodeIsLostAndNobodyWaitsThereAnyMore) {
  (void)window.take(2 * kPostWindow);
  for (int i = 0; i < 4; ++i) {
    wait_at(window.take(kPostWindow));
  }
  window.lose();
  while (closed.load() < 4) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(window.wait(window.take(1), *progress));
  EXPECT_EQ(gone.load(), 0);
}

TEST_F(Waiters, GoWhenWhatWasBeforeThemIsGivenBack) {
  (void)window.take(9 * kPostWindow);
  wait_at(window.take(1));
  window.give_back(9 * kPostWindow);
  while (gone.load() < 1) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(window.acknowledge(1));
  EXPECT_EQ(window.outstanding(), 0U);
}

/// A receiver that begins what was sent, as an Rpc does, beside senders that wait: each sleep must
/// have an end. What was sent and has not begun is bounded by the window and one post.
TEST_F(Waiters, AreNeverForgotten) {
  constexpr int kSenders = 4;
  constexpr std::uint64_t kPosts = 4000;
  constexpr std::uint64_t kLargest = kPostWindow / 3;
  std::atomic<std::uint64_t> sent{0};
  std::atomic<int> senders{kSenders};
  for (int i = 0; i < kSenders; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t post = 0; post < kPosts; ++post) {
        const std::uint64_t units =
            1 + (post * 7919 + static_cast<std::uint64_t>(i) * 104729) % kLargest;
        const std::uint64_t place = window.take(units);
        EXPECT_TRUE(window.is_open(place) || window.wait(place, *progress));
        sent.fetch_add(units);
      }
      senders.fetch_sub(1);
    });
  }
  BegunPosts from;
  bool is_in_poll = false;
  for (std::uint64_t seen = 0; senders.load() != 0 || seen != sent.load();) {
    const std::uint64_t waiting = sent.load() - seen;
    EXPECT_LE(waiting, kPostWindow + kLargest);
    const std::uint64_t units = std::min<std::uint64_t>(waiting, 5000);
    if (units == 0) {
      std::this_thread::yield();
      continue;
    }
    seen += units;
    is_in_poll = !is_in_poll;
    const std::uint64_t total = is_in_poll ? from.add_in_poll(units) : from.add(units);
    if (total != 0) {
      EXPECT_TRUE(window.acknowledge(total));
    }
  }
  EXPECT_LT(window.outstanding(), kUntoldMax);
  EXPECT_EQ(closed.load(), 0);
}

TEST(BegunPosts, AreToldOfAtEachStep) {
  BegunPosts from;
  EXPECT_EQ(from.add(kPostStep - 1), 0U);
  EXPECT_EQ(from.add(1), kPostStep);
  EXPECT_EQ(from.add(kPostStep - 1), 0U);
  EXPECT_EQ(from.add(5 * kPostStep), 7 * kPostStep - 1);
  EXPECT_EQ(from.add_in_poll(kPostPending - 1), 0U);  // Kept back.
  EXPECT_EQ(from.add(1), 7 * kPostStep);
  EXPECT_EQ(from.add_in_poll(1), 0U);
  EXPECT_EQ(from.add(kPostStep - kPostPending), 8 * kPostStep);  // With what was kept back.
}

/// Two threads and the poller add at once: the last total that is told is of all but a step.
TEST(BegunPosts, AreToldOfByWhoeverPassesAStep) {
  constexpr std::uint64_t kUnits = 700;
  constexpr std::uint64_t kCount = 40000;
  BegunPosts from;
  std::atomic<std::uint64_t> told{0};
  const auto tell = [&](std::uint64_t total) {
    std::uint64_t largest = told.load();
    while (largest < total && !told.compare_exchange_weak(largest, total)) {
    }
  };
  const auto add = [&](bool is_poller) {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      tell(is_poller ? from.add_in_poll(kUnits) : from.add(kUnits));
    }
  };
  std::thread first{add, false};
  std::thread second{add, false};
  add(true);
  first.join();
  second.join();
  EXPECT_LE(told.load(), 3 * kCount * kUnits);
  EXPECT_LT(3 * kCount * kUnits - told.load(), kUntoldMax);
}

Result<Bytes> count(void* counter, const Request&) {
  ++*static_cast<int*>(counter);
  return Bytes{};
}
Result<Bytes> refuse(void*, const Request&) {
  return Error{Errc::refused, "not today"};
}
Result<Bytes> want_too_much(void*, const Request&) {
  throw std::bad_alloc{};
}

class Posts : public testing::Test {
 protected:
  Posts() {
    for (std::uint32_t node = 0; node < 2; ++node) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = cluster.nodes[node].get(),
                                                      .endpoint = cluster.endpoints[node],
                                                      .part_context = 77}));
      rpcs.back()->add_service("count", RunIn::poll, count, &served);
      rpcs.back()->add_service("refuse", RunIn::poll, refuse, nullptr);
      rpcs.back()->add_service("want too much", RunIn::poll, want_too_much, nullptr);
    }
  }
  net::SimCluster cluster{{.node_count = 2, .delay_ns_max = 3000}, 2};
  int served = 0;
  std::vector<std::unique_ptr<Rpc>> rpcs;
};

TEST_F(Posts, AreCountedTheSameBySenderAndReceiver) {
  const Bytes body(5000);
  for (const std::uint32_t to : {0U, 1U}) {
    for (const char* const name : {"count", "refuse", "want too much", "nothing of this name"}) {
      for (int i = 0; i < 700; ++i) {  // More than three windows.
        ASSERT_TRUE(rpcs[0]->post(to, name, std::span{body}.first(body.size() - i)).has_value());
        cluster.settle();
        ASSERT_LT(rpcs[0]->outstanding_posts(to), kUntoldMax) << name;
      }
    }
  }
  EXPECT_EQ(served, 2 * 700);
}

TEST_F(Posts, AreCountedWithTheirPartsAndWishes) {
  const Bytes bytes(100'000);
  for (int i = 0; i < 30; ++i) {
    std::array<OutPart, 2> parts{};
    for (OutPart& part : parts) {
      part.part = {.offset = 3, .bytes = bytes.size()};
      part.data = bytes.data();
    }
    // No node of the test has threads, so they are refused; their parts are dropped.
    ASSERT_TRUE(rpcs[0]
                    ->post(1, service_number("count"), std::span{bytes}.first(4),
                           {.wish = {.priority = 3}, .parts = parts})
                    .has_value());
    cluster.settle();
    EXPECT_TRUE(parts[0].send.done.done() && parts[1].send.done.done());
    ASSERT_LT(rpcs[0]->outstanding_posts(1), kUntoldMax);
  }
}

TEST_F(Posts, OfCallsWithAReplyCostNothing) {
  PendingCall call;
  rpcs[0]->start(1, "count", {}, call);
  cluster.settle();
  EXPECT_TRUE(call.done.done());
  EXPECT_EQ(rpcs[0]->outstanding_posts(1), 0U);
}

TEST_F(Posts, AreNotMovedByATotalThatNobodyCanMean) {
  ASSERT_TRUE(rpcs[0]->post(1, "count", {}).has_value());
  for (const std::uint64_t total : {std::uint64_t{513}, kTotals / 3, kTotals - 1}) {
    ASSERT_TRUE(cluster.nodes[1]
                    ->node_message(0, kNodeHandler, PlainHead::of_begun(total).bytes())
                    .has_value());
  }
  cluster.settle();
  EXPECT_EQ(rpcs[0]->outstanding_posts(1), 512U);
  EXPECT_EQ(served, 1);
}

TEST_F(Posts, ThatCannotWaitGoBeyondTheWindowAndCount) {
  const Bytes body(8000);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(rpcs[0]->post(1, "count", body).has_value());
  }
  EXPECT_EQ(rpcs[0]->outstanding_posts(1), 1000 * units_of_post(body.size()));
  cluster.settle();
  EXPECT_EQ(served, 1000);
  EXPECT_LT(rpcs[0]->outstanding_posts(1), kUntoldMax);
}

TEST(BegunMessages, HaveOneForm) {
  Message message;
  const PlainHead head = PlainHead::of_begun(kTotals + 5);
  ASSERT_TRUE(decode(head.bytes(), {}, message));
  EXPECT_EQ(message.kind, MessageKind::begun);
  EXPECT_EQ(message.reply_to.id, 5U);
  EXPECT_TRUE(head.bytes().size() == 8 && PlainHead::of(head.bytes()).bytes().empty());
  const Bytes more(3);
  EXPECT_FALSE(decode(head.bytes(), more, message));
  Bytes longer(head.bytes().begin(), head.bytes().end());
  longer.resize(9);
  EXPECT_FALSE(decode(longer, message));
  for (int flag = 4; flag < 8; ++flag) {
    Bytes flagged(64);
    std::ranges::copy(head.bytes(), flagged.begin());
    flagged[0] |= static_cast<std::byte>(1 << flag);
    EXPECT_FALSE(decode(flagged, message)) << flag;
  }
}

}  // namespace
}  // namespace sterna::rpc
