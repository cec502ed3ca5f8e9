// The short way of messages (short.cc) where several threads of two ranks use it beside the long
// one.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

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

int play_all(int count, int (Player::*play)()) {
  Pair pair;
  pair.meet();
  pair.share();
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

INSTANTIATE_TEST_SUITE_P(Threads, ShortOfSeveral, testing::Values(1, 2, 4));

}  // namespace
}  // namespace sterna::net
