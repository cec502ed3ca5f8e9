// What only the shm driver has: a lock-free inbox under many producers, and memory in which others
// may write what they want.
#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "net/drivers/builtin.h"
#include "net/drivers/shm/inbox.h"
#include "net/drivers/shm/recent_chunks.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

TEST(ShmInbox, ManyProducersLoseAndDoubleNothing) {
  // Run it under ThreadSanitizer, too: the payload is plain memory.
  constexpr std::uint32_t kProducers = 4;
  constexpr std::uint32_t kCount = 20'000;
  auto segment = std::make_unique<shm::Segment>();
  std::vector<std::thread> producers;
  for (std::uint32_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&, producer] {
      std::atomic<std::uint64_t> claim{0};
      shm::InboxSender sender{*segment, claim};
      for (std::uint32_t i = 0; i < kCount;) {
        std::uint32_t ticket;
        if (!sender.try_claim(ticket)) {
          std::this_thread::yield();
          continue;
        }
        const std::uint32_t bytes = 4 + (i % 29) * 4;
        for (std::uint32_t at = 0; at < bytes; at += 4) {
          std::memcpy(sender.payload(ticket) + at, &i, 4);
        }
        sender.publish(ticket, producer, bytes);
        ++i;
      }
    });
  }
  shm::InboxReceiver receiver{*segment};
  std::uint32_t next[kProducers] = {};
  std::uint32_t count = 0;
  bool is_right = true;
  while (count < kProducers * kCount) {
    shm::InboxReceiver::Head head;
    if (!receiver.peek(head)) {
      std::this_thread::yield();
      continue;
    }
    const std::uint32_t i = next[head.sender]++;
    is_right = is_right && head.kind == 4 + (i % 29) * 4;
    for (std::uint32_t at = 0; at < head.kind; at += 4) {
      is_right = is_right && std::memcmp(head.payload + at, &i, 4) == 0;
    }
    receiver.pop();
    if (++count % 7 == 0) {
      receiver.publish_room();
    }
    if (count % 7 != 0 && count % shm::kCellCount == 0) {
      receiver.publish_room();
    }
  }
  for (std::thread& producer : producers) {
    producer.join();
  }
  EXPECT_TRUE(is_right);
}

TEST(ShmInbox, TicketsMayWrapAround) {
  auto segment = std::make_unique<shm::Segment>();
  segment->tail = segment->taken = 0xffffff00;
  std::atomic<std::uint64_t> claim{0};
  shm::InboxSender sender{*segment, claim};
  shm::InboxReceiver receiver{*segment};
  for (std::uint32_t i = 0; i < 1000; ++i) {
    std::uint32_t ticket;
    ASSERT_TRUE(sender.try_claim(ticket));
    std::memcpy(sender.payload(ticket), &i, sizeof i);
    sender.publish(ticket, 3, sizeof i);
    shm::InboxReceiver::Head head;
    ASSERT_TRUE(receiver.peek(head));
    EXPECT_EQ(std::memcmp(head.payload, &i, sizeof i), 0);
    receiver.pop();
    receiver.publish_room();
  }
}

class ShmGarbage : public testing::Test {
 protected:
  shm::SegmentMapping segment_of(std::uint32_t local) {
    return std::move(
        shm::SegmentMapping::map(job.node(0).host().segment_fd, local, shm::kSegmentBytes).value());
  }
  TestJob job{2};
  TestNode a{kShmDriver, job, 0};
  TestNode b{kShmDriver, job, 1};
  shm::SegmentMapping to_b = segment_of(1);
};

class ShmChunks : public ShmGarbage {
 protected:
  /// One packet too large for a cell, and what its cell said of where it is.
  shm::BulkReference send(TestNode& from, TestNode& to, std::uint32_t local, char letter) {
    const shm::SegmentMapping theirs = segment_of(local);
    const std::uint32_t ticket = theirs->tail.load();
    EXPECT_TRUE(send_patiently({&from}, from.to(to, local), std::string(500, letter)));
    shm::BulkReference reference;
    std::memcpy(&reference, theirs->cell(ticket).payload.data(), sizeof reference);
    EXPECT_EQ(to.poll(), 1U);
    EXPECT_EQ(to.sink.packets.back().second, std::string(500, letter));
    return reference;
  }
};

TEST_F(ShmChunks, AnAnswerLiesInTheChunkOfTheQuestion) {
  const shm::BulkReference question = send(a, b, 1, 'q');
  EXPECT_EQ(question.chunk & (shm::kOfReceiver | shm::kComesBack), 0U);
  EXPECT_FALSE(b.to(a, 0).is_read_as_ours());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(send(b, a, 0, 'a').chunk, question.chunk | shm::kOfReceiver | shm::kComesBack);
    EXPECT_TRUE(a.to(b, 1).is_read_as_ours());
    EXPECT_EQ(send(a, b, 1, 'q').chunk, question.chunk | shm::kComesBack);
    EXPECT_TRUE(b.to(a, 0).is_read_as_ours());
  }
  send(a, b, 1, 'q');
  EXPECT_FALSE(b.to(a, 0).is_read_as_ours());
}

TEST(ShmRecentChunks, OfAMessageTheFirstComesFirst) {
  shm::RecentChunks recent;
  shm::RecentChunks::Entry entry;
  EXPECT_FALSE(recent.pop(entry));
  const auto read = [&](std::uint16_t from, std::uint16_t to) {
    for (std::uint16_t chunk = from; chunk < to; ++chunk) {
      recent.push({.chunk = chunk, .is_theirs = chunk % 2 == 0, .comes_back = false});
    }
  };
  const auto expect = [&](std::uint16_t chunk) {
    ASSERT_TRUE(recent.pop(entry));
    EXPECT_EQ(entry.chunk, chunk);
    EXPECT_EQ(entry.is_theirs, chunk % 2 == 0);
  };
  read(0, 3);
  expect(0);
  expect(1);
  read(3, 5);
  for (const std::uint16_t chunk : {3, 4, 2}) {
    expect(chunk);
  }
  EXPECT_FALSE(recent.pop(entry));
  // More than it keeps: the last ones, of which the newest are taken for one message.
  read(0, 1000);
  for (std::uint16_t chunk = 984; chunk < 1000; ++chunk) {
    expect(chunk);
  }
  for (std::uint16_t chunk = 983; chunk > 935; --chunk) {
    expect(chunk);
  }
  EXPECT_FALSE(recent.pop(entry));
}

TEST_F(ShmChunks, TheOwnerTakesBackWhatIsNotAnsweredIn) {
  for (int i = 0; i < 1000; ++i) {
    send(a, b, 1, static_cast<char>('a' + i % 26));
  }
  // The last one read is there still, and no more of them than short packets have needed.
  std::uint32_t in_chunks_of_a = 0;
  for (int i = 0; i < 200; ++i) {
    in_chunks_of_a += (send(b, a, 0, 'z').chunk & shm::kOfReceiver) != 0 ? 1 : 0;
  }
  EXPECT_GE(in_chunks_of_a, 1U);
  EXPECT_LE(in_chunks_of_a, shm::kChunkCountMax / 2);
}

TEST_F(ShmChunks, WhatPacketsTakeIsMeasuredOnceTheirMemoryIsKnown) {
  EXPECT_FALSE(a.to(b, 1).is_settled());
  for (std::uint32_t i = 0; i <= shm::kChunkCountMax; ++i) {
    send(a, b, 1, 'q');
  }
  EXPECT_TRUE(a.to(b, 1).is_settled());
}

TEST_F(ShmChunks, AChunkThatCouldNotBeSentIsThereStill) {
  const shm::BulkReference question = send(a, b, 1, 'q');
  const shm::SegmentMapping to_a = segment_of(0);
  std::byte* const place = b.to(a, 0).try_place(500);
  ASSERT_NE(place, nullptr);
  // Others fill the inbox meanwhile.
  const std::uint32_t tail = to_a->tail.load();
  to_a->tail = tail + shm::kCellCount;
  bool must_ring = false;
  EXPECT_EQ(b.to(a, 0).send_placed(must_ring), SendState::full);
  EXPECT_TRUE(is_readable(job.node(0).host().bell_fds[0], 0));  // a may wait for a chunk.
  to_a->tail = tail;
  EXPECT_EQ(segment_of(0)->chunk(question.chunk, to_a->chunk_bytes).idle, shm::idle_at(1));
  send(b, a, 0, 'a');
  send(a, b, 1, 'q');
}

TEST_F(ShmChunks, TrafficBothWaysKeepsItsBytes) {
  // Each node has a thread that sends and one that polls: for ThreadSanitizer, too.
  constexpr int kCount = 3000;
  const auto text_of = [](int i) {
    return std::string(400 + static_cast<std::size_t>(i * 37 % 3000), static_cast<char>(i));
  };
  std::vector<std::thread> threads;
  Channel* const ways[] = {&a.to(b, 1), &b.to(a, 0)};
  TestNode* const nodes[] = {&a, &b};
  for (int side = 0; side < 2; ++side) {
    threads.emplace_back([&, side] {
      for (int i = 0; i < kCount;) {
        const bool is_sent = send_text(*ways[side], text_of(i)) == SendState::accepted;
        i += is_sent ? 1 : 0;
        if (!is_sent) {
          std::this_thread::yield();
        }
      }
    });
    threads.emplace_back([&, side] {
      while (nodes[side]->sink.packets.size() < kCount) {
        if (nodes[side]->poll() == 0) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (TestNode* node : nodes) {
    for (int i = 0; i < kCount; ++i) {
      ASSERT_EQ(node->sink.packets[static_cast<std::size_t>(i)].second, text_of(i));
    }
  }
}

TEST_F(ShmGarbage, ImpossibleHeadersAndReferencesAreSkipped) {
  Random random{11};
  for (int i = 0; i < 2000; ++i) {
    std::atomic<std::uint64_t> claim{0};
    shm::InboxSender sender{*to_b, claim};
    std::uint32_t ticket;
    ASSERT_TRUE(sender.try_claim(ticket));
    for (std::uint32_t at = 0; at < shm::kInlineBytesMax; at += 8) {
      const std::uint64_t noise = random.next();
      std::memcpy(sender.payload(ticket) + at, &noise, 8);
    }
    if (random.chance(0.5)) {
      const auto chunk = static_cast<std::uint32_t>(random.below(64));
      const shm::BulkReference reference{.chunk = chunk |
                                                  (random.chance(0.5) ? shm::kOfReceiver : 0U) |
                                                  (random.chance(0.5) ? shm::kComesBack : 0U),
                                         .bytes = static_cast<std::uint32_t>(random.below(30'000))};
      std::memcpy(sender.payload(ticket), &reference, sizeof reference);
    }
    const auto kind = random.chance(0.5) ? shm::kBulk : static_cast<std::uint32_t>(random.next());
    sender.publish(ticket, static_cast<std::uint32_t>(random.below(4)), kind & 0xffff);
    b.poll();
  }
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "good"));
  ASSERT_TRUE(poll_until(
      {&b}, [&] { return !b.sink.packets.empty() && b.sink.packets.back().second == "good"; }));
  for (const auto& [from, text] : b.sink.packets) {
    EXPECT_LT(from, 2U);
    EXPECT_LE(text.size(), b.driver->capabilities().packet_bytes_max);
  }
}

TEST_F(ShmGarbage, LyingGeometryIsSkipped) {
  const shm::SegmentMapping to_a = segment_of(0);
  to_a->chunk_bytes = 1U << 31;
  to_a->chunk_count = 1U << 31;
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), std::string(500, 'x')));
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), "good"));
  ASSERT_TRUE(poll_until({&b}, [&] { return !b.sink.packets.empty(); }));
  EXPECT_EQ(b.sink.packets[0].second, "good");
}

TEST_F(ShmGarbage, RingersFenceWhenSomebodyAsks) {
  to_b->state.fetch_or(shm::kFence);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(poll_until({&b}, [&] { return b.driver->prepare_sleep(); }));
    ASSERT_EQ(send_text(a.to(b, 1), "wake"), SendState::accepted);
    ASSERT_TRUE(is_readable(b.driver->fd(), kPatienceMs));
    b.driver->end_sleep();
    ASSERT_EQ(b.poll(), 1U);
  }
}

// Node 2 dies with a cell of node 1's inbox taken and not filled.
class ShmHole : public testing::Test {
 protected:
  shm::SegmentMapping segment_of(std::uint32_t local) {
    return std::move(
        shm::SegmentMapping::map(job.node(0).host().segment_fd, local, shm::kSegmentBytes).value());
  }
  TestJob job{3};
  TestNode a{kShmDriver, job, 0};
  TestNode b{kShmDriver, job, 1};
};

TEST_F(ShmHole, WhoIsKilledThereStopsNobodyElse) {
  const pid_t child = ::fork();
  if (child == 0) {
    TestNode node{kShmDriver, job, 2};
    static_cast<void>(send_patiently({&node}, node.to(1, b.driver->address()), "here"));
    shm::SegmentMapping mine = segment_of(2);
    shm::SegmentMapping theirs = segment_of(1);
    shm::InboxSender sender{*theirs, mine->claims[1]};
    std::uint32_t ticket;
    static_cast<void>(sender.try_claim(ticket));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), "behind it"));
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.losses.size() == 1; }));
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.packets.size() == 2; }));
  EXPECT_EQ(b.sink.losses[0].first, 2U);
  EXPECT_EQ(b.sink.packets[0].second, "here");
  EXPECT_EQ(b.sink.packets[1].second, "behind it");
}

TEST_F(ShmHole, WhoEndsWithItsFirstPacketHalfSentStopsNobody) {
  shm::SegmentMapping of_dead = segment_of(2);
  shm::SegmentMapping to_b = segment_of(1);
  shm::InboxSender dead{*to_b, of_dead->claims[1]};
  std::uint32_t ticket;
  ASSERT_TRUE(dead.try_claim(ticket));
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), "behind it"));
  b.poll();
  EXPECT_TRUE(b.sink.packets.empty());
  b.driver->lose_peer(2);
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.packets.size() == 1; }));
}

TEST_F(ShmHole, WhoLivesIsWaitedFor) {
  shm::SegmentMapping of_slow = segment_of(0);
  shm::SegmentMapping to_b = segment_of(1);
  shm::InboxSender slow{*to_b, of_slow->claims[1]};
  std::uint32_t ticket;
  ASSERT_TRUE(slow.try_claim(ticket));
  b.driver->lose_peer(2);
  for (int i = 0; i < 5000; ++i) {
    b.poll();
  }
  EXPECT_TRUE(b.sink.losses.empty());
  std::memcpy(slow.payload(ticket), "late", 4);
  slow.publish(ticket, 0, 4);
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.losses.size() == 1; }));
  ASSERT_EQ(b.sink.packets.size(), 1U);
  EXPECT_EQ(b.sink.packets[0].second, "late");
}

TEST_F(ShmHole, AChunkForTheDeadIsNobodyElsesWhileItIsFilled) {
  TestNode dead{kShmDriver, job, 2};
  std::byte* const place = b.to(dead, 2).try_place(500);
  ASSERT_NE(place, nullptr);
  std::memset(place, 'd', 500);
  b.driver->lose_peer(2);
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.losses.size() == 1; }));
  ASSERT_TRUE(send_patiently({&b}, b.to(a, 0), std::string(500, 'a')));
  EXPECT_EQ(std::memchr(place, 'a', 500), nullptr);
  bool must_ring = false;
  static_cast<void>(b.to(dead, 2).send_placed(must_ring));
  EXPECT_EQ(b.to(dead, 2).try_place(500), nullptr);
  ASSERT_TRUE(send_patiently({&b}, b.to(a, 0), std::string(500, 'a')));
  EXPECT_EQ(std::memchr(place, 'd', 500), nullptr);  // It has come back.
  ASSERT_TRUE(poll_until({&a}, [&] { return a.sink.packets.size() == 2; }));
}

TEST(ShmOpen, TooSmallMemoryIsAnError) {
  TestJob job{2, 4096};
  const auto opened = kShmDriver.open({.bootstrap = &job.node(1)});
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().text.find("too small"), std::string::npos);
}

TEST_F(ShmGarbage, LauncherMayTellALossFirst) {
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), "last words"));
  ASSERT_TRUE(send_patiently({&b}, b.to(a, 0), "x"));
  b.driver->lose_peer(0);
  b.driver->lose_peer(0);
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.losses.size() == 1; }));
  EXPECT_EQ(b.sink.packets_before_loss, 1U);
  b.driver->lose_peer(0);
  b.poll();
  EXPECT_EQ(b.sink.losses.size(), 1U);
  EXPECT_EQ(send_text(b.to(a, 0), "x"), SendState::closed);
}

}  // namespace
}  // namespace sterna::net
