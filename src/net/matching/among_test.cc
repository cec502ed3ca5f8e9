// The short way of user threads beside others that wait (among.cc): rank 1 has a team, rank 0 is
// kernel threads.
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/matching/short_pair.h"
#include "threads/team_fixture.h"

namespace sterna::net {
namespace {

using threads::TestTeam;

class Among : public testing::TestWithParam<int> {  // Workers.
 protected:
  Among() {
    pair.meet();
    pair.share();
    team = std::make_unique<TestTeam>(
        GetParam(), threads::TeamOptions{.idle_hook = pair.progress[1].get()});
  }
  ~Among() override { team.reset(); }

  void send(std::uint32_t from, std::int32_t tag, std::span<const std::byte> bytes) {
    if (!pair.send_short(from, tag, bytes)) {
      SendRequest request;
      pair.send(from, request, tag, bytes);
      request.done.wait(*pair.progress[from]);
    }
  }
  /// The short way, or the long one. The round of the message.
  int receive(std::uint32_t at, std::int32_t tag, std::uint32_t source) {
    std::array<std::byte, 64> bytes{};
    Envelope found;
    Fault fault = Fault::none;
    if (pair.receive_short(at, tag, bytes, found, source, &fault)) {
      if (fault != Fault::none) {
        return -2;
      }
      short_count.fetch_add(1, std::memory_order_relaxed);
    } else {
      RecvRequest request;
      pair.receive(at, request, tag, bytes, source);
      request.done.wait(*pair.progress[at]);
      found = request.envelope;
    }
    int round = -1;
    std::memcpy(&round, bytes.data(), sizeof round);
    return found.tag == tag && found.bytes == bytes.size() ? round : -1;
  }

  Pair pair;
  std::unique_ptr<TestTeam> team;
  std::atomic<int> short_count{0};
};


TEST_P(Among, EachThreadHasItsAnswers) {
  constexpr int kRounds = threads::kSanitizedTests ? 500 : 5000;
  for (const int count : {1, 2, 3, 6}) {
    std::vector<std::thread> asking;
    std::vector<std::function<void()>> answers;
    std::atomic<int> wrong{0};
    for (int tag = 0; tag < count; ++tag) {
      answers.emplace_back([&, tag] {
        for (int round = 0; round < kRounds; ++round) {
          std::array<std::byte, 64> bytes{};
          const int got = receive(1, tag, round % 3 == 0 ? kAnySource : 0);
          wrong += got == round ? 0 : 1;
          std::memcpy(bytes.data(), &got, sizeof got);
          send(1, tag, bytes);
        }
      });
      asking.emplace_back([&, tag] {
        for (int round = 0; round < kRounds; ++round) {
          std::array<std::byte, 64> bytes{};
          std::memcpy(bytes.data(), &round, sizeof round);
          send(0, tag, bytes);
          wrong += receive(0, tag, 1) == round ? 0 : 1;
        }
      });
    }
    std::vector<threads::Thread*> started;
    for (auto& answer : answers) {
      started.push_back(team->go(answer));
    }
    for (threads::Thread* const thread : started) {
      join(*thread);
    }
    for (std::thread& thread : asking) {
      thread.join();
    }
    EXPECT_EQ(wrong, 0) << count << " threads";
  }
  EXPECT_GT(short_count, 0);
}

/// Threads that wait for the same kind are served in the order in which they began to wait.
TEST_P(Among, NobodyOfManyReceiversStarves) {
  constexpr int kEach = threads::kSanitizedTests ? 100 : 1000;
  constexpr int kThreads = 4;
  std::array<int, kThreads> received{};
  std::vector<std::function<void()>> receivers;
  for (int i = 0; i < kThreads; ++i) {
    receivers.emplace_back([&, i] {
      for (int round = 0; round < kEach; ++round) {
        received[i] += receive(1, 7, 0) >= 0 ? 1 : 0;
        send(1, 8, std::array<std::byte, 64>{});
      }
    });
  }
  std::vector<threads::Thread*> started;
  for (auto& receiver : receivers) {
    started.push_back(team->go(receiver));
  }
  for (int round = 0; round < kThreads * kEach; ++round) {
    send(0, 7, std::array<std::byte, 64>{});
    EXPECT_EQ(receive(0, 8, 1), 0);
  }
  for (threads::Thread* const thread : started) {
    join(*thread);
  }
  for (const int count : received) {
    EXPECT_EQ(count, kEach);
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, Among, testing::Values(1, 2));

/// On one worker: a thread waits for tag 5; another one, which the short way leads past its
/// message, waits for tag 6 then, and is to end with `fault`.
class AmongTwo : public Among {
 protected:
  template <typename Before, typename Meanwhile>
  void run(Before before, Meanwhile meanwhile) {
    RecvRequest known;  // Tag 6 has been received before.
    pair.receive(1, known, 6, second_bytes, 0);
    send(0, 6, std::array<std::byte, 8>{});
    ASSERT_TRUE(pair.poll_until([&] { return known.done.done(); }));
    auto first = [&] {
      RecvRequest request;
      pair.receive(1, request, 5, first_bytes, 0);
      request.done.wait(*pair.progress[1]);
      EXPECT_EQ(request.fault, Fault::none);
      EXPECT_FALSE(has_ended);
      meanwhile();
    };
    auto second = [&] {
      before();  // Not earlier: the worker polls when it has nothing to do, and when it switches.
      is_short = pair.receive_short(1, 6, second_bytes, found, 0, &fault);
      has_ended = true;
    };
    auto parent = [&] {  // So that both are there before one runs.
      threads::Thread* const a = team->go(first);
      threads::Thread* const b = team->go(second);
      join(*a);
      join(*b);
    };
    team->run(parent);
  }

  std::array<std::byte, 8> first_bytes{};
  std::array<std::byte, 8> second_bytes{};
  Envelope found;
  Fault fault = Fault::none;
  bool is_short = false;
  bool has_ended = false;
};

TEST_P(AmongTwo, WhoTakesAMessageForAnotherWaitsForItsOwn) {
  const std::array<std::byte, 8> bytes{std::byte{9}};
  run([&] { send(0, 5, bytes); }, [&] { send(0, 6, bytes); });
  EXPECT_TRUE(is_short);
  EXPECT_EQ(fault, Fault::none);
  EXPECT_EQ(found.tag, 6);
  EXPECT_EQ(found.source, 0U);
  EXPECT_EQ(first_bytes[0], std::byte{9});
  EXPECT_EQ(second_bytes[0], std::byte{9});
}

TEST_P(AmongTwo, AMessageThatIsTooLongEndsTheWaitWithAFault) {
  const std::array<std::byte, 200> bytes{std::byte{9}};
  run([&] { send(0, 5, std::span{bytes}.first(8)); }, [&] { send(0, 6, bytes); });
  EXPECT_TRUE(is_short);
  EXPECT_EQ(fault, Fault::truncated);
  EXPECT_EQ(found.bytes, second_bytes.size());
}

TEST_P(AmongTwo, ThatANodeIsLostEndsTheWaitWithAFault) {
  run([&] { send(0, 5, std::array<std::byte, 8>{}); },
      [&] { pair.nodes[1]->lose_peer(0, "the test says so"); });
  EXPECT_TRUE(is_short);
  EXPECT_EQ(fault, Fault::peer_lost);
}

INSTANTIATE_TEST_SUITE_P(OneWorker, AmongTwo, testing::Values(1));

}  // namespace
}  // namespace sterna::net
