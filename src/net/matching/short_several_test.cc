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
  Player(Pair& pair, std::uint32_t rank, std::int32_t tag, std::atomic<int>& short_count)
      : pair_{pair}, rank_{rank}, tag_{tag}, short_count_{short_count} {}

  /// How many messages were wrong.
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
    std::array<std::byte, 64> in{};
    Envelope found;
    if (round % 5 != 0 && pair_.receive_short(rank_, tag_, in, found)) {
      ++short_count_;
    } else {
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
  std::atomic<int>& short_count_;
};

class ShortOfSeveral : public testing::TestWithParam<int> {};  // Threads of a rank.

TEST_P(ShortOfSeveral, EachHasItsMessagesInOrder) {
  Pair pair;
  pair.meet();
  pair.share();
  std::atomic<int> wrong{0};
  std::atomic<int> short_count{0};
  std::vector<std::thread> threads;
  for (std::int32_t tag = 0; tag < GetParam(); ++tag) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank, tag] {
        wrong += Player{pair, rank, tag, short_count}.play();
      });
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(short_count, 0);
}
INSTANTIATE_TEST_SUITE_P(Threads, ShortOfSeveral, testing::Values(1, 2, 4));

}  // namespace
}  // namespace sterna::net
