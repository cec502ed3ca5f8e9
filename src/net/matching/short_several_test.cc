// The short way of messages (short.cc) where several threads of two ranks use it beside the long
// one.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/matching/short_pair.h"

namespace sterna::net {
namespace {

constexpr int kRounds = 3000;

/// One thread of a rank: to each message of its partner, which has the same tag, it answers with
/// one of its own; by both ways, as they come.
class Player {
 public:
  Player(Pair& pair, std::uint32_t rank, std::int32_t tag) : pair_{pair}, rank_{rank}, tag_{tag} {}

  /// How many messages were wrong.
  int stream() {
    int wrong = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::array<std::byte, 600> bytes{};  // Of several packets' sizes.
      std::memcpy(bytes.data(), &round, sizeof round);
      const auto part = std::span{bytes}.first(round % 7 == 0 ? bytes.size() : 64);
      if (rank_ == 0) {
        send(part, round);
      } else {
        wrong += receive(round) == round ? 0 : 1;
      }
    }
    // What waits for room goes only while somebody calls.
    const std::array<std::byte, 4> end{};
    rank_ == 0 ? (void)receive(0) : send(end, 0);
    return wrong;
  }

  /// The same, in turn.
  int play() {
    int wrong = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::array<std::byte, 64> out{};
      std::memcpy(out.data(), &round, sizeof round);
      if (rank_ == 0) {
        send(out, round);
      }
      wrong += receive(round) == round ? 0 : 1;
      if (rank_ == 1) {
        send(out, round);
      }
    }
    return wrong;
  }

 private:
  void send(std::span<const std::byte> bytes, int round) {
    if (round % 4 != 0 && pair_.send_short(rank_, tag_, bytes)) {
      return;
    }
    SendRequest request;
    pair_.send(rank_, request, tag_, bytes);
    request.done.wait(*pair_.progress[rank_]);
  }

  int receive(int round) {
    std::array<std::byte, 600> in{};
    Envelope found;
    if (round % 5 == 0 || !pair_.receive_short(rank_, tag_, in, found)) {
      RecvRequest request;
      pair_.receive(rank_, request, tag_, in, round % 2 != 0 ? 1 - rank_ : kAnySource);
      request.done.wait(*pair_.progress[rank_]);
    }
    int read = -1;
    std::memcpy(&read, in.data(), sizeof read);
    return read;
  }

  Pair& pair_;
  const std::uint32_t rank_;
  const std::int32_t tag_;
};

class ShortOfSeveral : public testing::TestWithParam<int> {};  // Threads of a rank.

int play_all(int count, int (Player::*play)(), bool may_move = false) {
  Pair pair;
  pair.meet();
  pair.share(may_move);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::int32_t tag = 0; tag < count; ++tag) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank, tag] { wrong += (Player{pair, rank, tag}.*play)(); });
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return wrong;
}

TEST_P(ShortOfSeveral, EachHasItsAnswers) {
  EXPECT_EQ(play_all(GetParam(), &Player::play), 0);
}

TEST_P(ShortOfSeveral, EachHasItsMessagesInOrder) {
  EXPECT_EQ(play_all(GetParam(), &Player::stream), 0);
}

TEST_P(ShortOfSeveral, SoHaveThoseOfRanksThatMayMove) {
  EXPECT_EQ(play_all(GetParam(), &Player::play, true), 0);
  EXPECT_EQ(play_all(GetParam(), &Player::stream, true), 0);
}

/// Rank 1 of the pair.
void move_to(Pair& pair, std::uint32_t node) {
  ASSERT_TRUE(pair.nodes[1 - node]->begin_leave(1));
  pair.nodes[node]->expect(1);
  pair.nodes[1 - node]->commit_leave(1, node);
  pair.nodes[node]->install(1, pair.endpoints[1]);
}

TEST(ShortOfMovable, GoesToWhereTheRankIs) {
  Pair pair;
  pair.meet();
  pair.share(true);
  constexpr std::int32_t kTag = 4;
  std::array<std::byte, 8> word{};
  Envelope found;
  ASSERT_TRUE(pair.send_short(0, kTag, word));
  ASSERT_TRUE(pair.receive_short(1, kTag, word, found));
  move_to(pair, 0);
  EXPECT_FALSE(pair.send_short(0, kTag, word)) << "no network is in between";
  SendRequest within;
  word[0] = std::byte{1};
  pair.send(0, within, kTag, word);
  ASSERT_TRUE(within.done.done());
  move_to(pair, 1);
  word[0] = std::byte{2};
  ASSERT_TRUE(pair.send_short(0, kTag, word));
  // What came with the rank is first: it waits, so the short way is none.
  std::array<std::byte, 8> in{};
  const auto receive = [&] {
    RecvRequest request;
    pair.nodes[1]->receive(*pair.endpoints[1], request, {0, Pair::kContext, kTag},
                           Buffer::of(in.data(), in.size()));
    return pair.poll_until([&] { return request.done.done(); });
  };
  EXPECT_FALSE(pair.receive_short(1, kTag, in, found));
  ASSERT_TRUE(receive());
  EXPECT_EQ(in[0], std::byte{1});
  ASSERT_TRUE(pair.receive_short(1, kTag, in, found) || receive());
  EXPECT_EQ(in[0], std::byte{2});
}

/// Messages between nodes, which go the short way too: of each thread in its order.
struct NodeInbox {
  static void take(void* inbox, std::uint32_t /*from_node*/, std::span<const std::byte> head,
                   std::span<const std::byte> body) noexcept {
    auto& self = *static_cast<NodeInbox*>(inbox);
    std::vector<std::byte> all{head.begin(), head.end()};
    all.insert(all.end(), body.begin(), body.end());
    const std::span<const std::byte> bytes{all};
    std::array<int, 2> words{};  // Thread and round.
    std::memcpy(words.data(), bytes.data(), std::min(sizeof words, bytes.size()));
    const bool is_right =
        words[0] < 4 && bytes.size() == bytes_of(words[1]) && words[1] == self.next[words[0]] &&
        std::ranges::all_of(
            bytes.subspan(sizeof words),
            [&](std::byte byte) { return byte == static_cast<std::byte>(words[1]); });
    self.wrong += is_right ? 0 : 1;
    self.next[words[0] & 3] = words[1] + 1;
    ++self.count;
  }
  static std::size_t bytes_of(int round) { return 8 + static_cast<std::size_t>(round * 37 % 700); }

  std::array<int, 4> next{};
  int wrong = 0;
  std::atomic<int> count{0};
};

TEST_P(ShortOfSeveral, NodesHaveTheMessagesOfEachThreadInItsOrder) {
  Pair pair;
  pair.share();
  std::array<NodeInbox, 2> inboxes;
  std::vector<std::thread> threads;
  for (std::uint32_t node = 0; node < 2; ++node) {
    pair.nodes[node]->register_node_handler(2, NodeInbox::take, &inboxes[node]);
  }
  const int count = GetParam() * kRounds;
  for (int thread = 0; thread < GetParam(); ++thread) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      threads.emplace_back([&, node, thread] {
        for (int round = 0; round < kRounds; ++round) {
          std::array<std::byte, 1000> bytes;
          bytes.fill(static_cast<std::byte>(round));
          const std::array<int, 2> words{thread, round};
          std::memcpy(bytes.data(), words.data(), sizeof words);
          const auto all = std::span<const std::byte>{bytes}.first(NodeInbox::bytes_of(round));
          const std::size_t cut = static_cast<std::size_t>(round) % 9;
          check(pair.nodes[node]
                    ->node_message(1 - node, 2, all.first(cut), all.subspan(cut))
                    .has_value(),
                "the other node lives");
          pair.poll(node);
        }
        const std::uint64_t limit_ns = now_ns() + 60'000'000'000;
        while ((inboxes[0].count < count || inboxes[1].count < count) && now_ns() < limit_ns) {
          pair.poll(node);
          std::this_thread::yield();
        }
      });
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const NodeInbox& inbox : inboxes) {
    EXPECT_EQ(inbox.count, count);
    EXPECT_EQ(inbox.wrong, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ShortOfSeveral, testing::Values(1, 2, 4));

}  // namespace
}  // namespace sterna::net
