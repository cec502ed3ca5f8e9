// What a sender keeps goes on by itself once half of the window has been consumed, in order.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/core.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kWindow = 64 << 10;
constexpr std::int32_t kOther = 1'000'000;  // A tag of its own.

Settings settings() {
  Settings settings{transport_tunables()};
  check(settings.set("net_eager_window", "64K", SettingSource::command_line, "test").has_value(),
        "the test sets what there is");
  return settings;
}

class Released : public testing::Test {
 protected:
  void send(std::int32_t tag, std::size_t bytes, SendMode mode = SendMode::standard) {
    SendRequest& request = *sends.emplace_back(std::make_unique<SendRequest>());
    cluster.nodes[0]->send(*cluster.endpoints[0], request, {1, 0, tag},
                           Buffer::of(data.data(), bytes), mode);
  }
  RecvRequest& post(std::int32_t tag) {
    RecvRequest& request = *receives.emplace_back(std::make_unique<RecvRequest>());
    cluster.nodes[1]->receive(*cluster.endpoints[1], request, Pattern{0, 0, tag},
                              Buffer::of(into.data(), into.size()));
    return request;
  }
  void expect(std::int32_t tag, std::size_t bytes) {
    const RecvRequest& request = post(kAnyTag);
    cluster.settle();
    ASSERT_TRUE(request.done.done()) << tag;
    ASSERT_EQ(request.fault, Fault::none);
    ASSERT_EQ(request.envelope.tag, tag);
    ASSERT_EQ(request.envelope.bytes, bytes);
    ASSERT_LE(cluster.endpoints[1]->unexpected_bytes, kWindow);
  }
  void expect_all_done() const {
    for (const auto& request : sends) {
      ASSERT_TRUE(request->done.done());
      ASSERT_EQ(request->fault, Fault::none);
    }
    EXPECT_EQ(cluster.endpoints[0]->pending_count, 0U);
    EXPECT_EQ(cluster.endpoints[1]->holder_count, 0U);
  }

  const Settings with = settings();
  SimCluster cluster{SimCluster::Rails{}, {{.node_count = 2}}, 2, &with};
  std::vector<std::byte> data = std::vector<std::byte>(200'000);
  std::vector<std::byte> into = std::vector<std::byte>(200'000);
  std::vector<std::unique_ptr<SendRequest>> sends;
  std::vector<std::unique_ptr<RecvRequest>> receives;
};

TEST_F(Released, WhoTakesAllInOrderFindsThemThere) {
  constexpr std::int32_t kCount = 3000;
  for (std::int32_t i = 0; i < kCount; ++i) {
    send(i, 1000);
  }
  cluster.settle();
  EXPECT_FALSE(sends.back()->done.done()) << "there is no room for it";
  for (std::int32_t i = 0; i < kCount; ++i) {
    ASSERT_GT(cluster.endpoints[1]->message_count, 0U) << i << " is not asked for";
    ASSERT_NO_FATAL_FAILURE(expect(i, 1000));
  }
  expect_all_done();
}

TEST_F(Released, OfEachSizeAndMode) {
  constexpr std::int32_t kCount = 2000;
  const auto bytes_of = [](std::int32_t i) -> std::size_t {
    return i % 7 == 0 ? 200'000 : i % 5 == 0 ? 30'000 : i % 3 == 0 ? 0 : 700;
  };
  for (std::int32_t i = 0; i < kCount; ++i) {
    send(i, bytes_of(i), i % 11 == 0 ? SendMode::synchronous : SendMode::standard);
  }
  for (std::int32_t i = 0; i < kCount; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect(i, bytes_of(i)));
  }
  expect_all_done();
}

/// A receive that was there before anything was kept hears of its message by the announcement,
/// which may cross the word that there is room: by single steps of the two sides, in many orders.
TEST_F(Released, NoReceiveThatWaitsMissesItsMessage) {
  for (std::uint32_t order = 0; order < 300; ++order) {
    std::vector<RecvRequest*> waiting;
    for (int i = 0; i < 3; ++i) {
      waiting.push_back(&post(kOther));
    }
    constexpr std::int32_t kCount = 150;
    for (std::int32_t i = 0; i < kCount; ++i) {
      send(i % 50 == 49 ? kOther : i, 1000);
    }
    std::uint32_t bits = order * 2654435761U + 1;
    std::int32_t left = kCount - 3;
    while (left != 0) {
      bits = bits * 1664525U + 1013904223U;
      (void)cluster.nodes[(bits >> 20) % 2]->poll();
      cluster.clock.advance((bits >> 24) * 10);
      if ((bits >> 16) % 4 == 0 && cluster.endpoints[1]->message_count != 0) {
        const RecvRequest& request = post(kAnyTag);
        if (!request.done.done()) {  // It was announced.
          cluster.settle();
        }
        ASSERT_TRUE(request.done.done());
        --left;
      } else if (cluster.endpoints[1]->message_count == 0 && (bits >> 10) % 16 == 0) {
        const RecvRequest& request = post(kAnyTag);
        cluster.settle();
        ASSERT_TRUE(request.done.done());
        --left;
      }
    }
    cluster.settle();
    for (const RecvRequest* request : waiting) {
      ASSERT_TRUE(request->done.done()) << "order " << order;
      ASSERT_EQ(request->envelope.tag, kOther);
    }
    ASSERT_NO_FATAL_FAILURE(expect_all_done());
  }
}

TEST_F(Released, WhatIsTakenBackIsLeftOut) {
  constexpr std::int32_t kCount = 400;
  for (std::int32_t i = 0; i < kCount; ++i) {
    send(i, 1000);
  }
  cluster.settle();
  for (std::int32_t i = 100; i < kCount; i += 3) {
    EXPECT_TRUE(cluster.nodes[0]->cancel_send(*cluster.endpoints[0],
                                              *sends[static_cast<std::size_t>(i)]));
  }
  for (std::int32_t i = 0; i < kCount; ++i) {
    if (i < 100 || i % 3 != 1) {
      ASSERT_NO_FATAL_FAILURE(expect(i, 1000));
    }
  }
  cluster.settle();
  for (std::int32_t i = 0; i < kCount; ++i) {
    const SendRequest& request = *sends[static_cast<std::size_t>(i)];
    ASSERT_TRUE(request.done.done());
    EXPECT_EQ(request.fault, i < 100 || i % 3 != 1 ? Fault::none : Fault::cancelled) << i;
  }
}

}  // namespace
}  // namespace sterna::net
