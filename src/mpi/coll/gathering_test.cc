// Meetings in shared memory, of kernel threads instead of processes: the memory is the same, and
// ThreadSanitizer sees who reads what.
#include "mpi/coll/gathering.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::mpi {
namespace {

using Board = std::array<Gathering, 4>;

// Zeros, as the pages of the launcher.
std::unique_ptr<Board> make_board() {
  return std::make_unique<Board>();
}

std::span<const std::byte> bytes_of(const std::uint64_t& value) {
  return std::as_bytes(std::span{&value, 1});
}

/// What the last one does: the sum; an error if they do not agree.
void finish(Gathering& gathering, std::uint32_t number, std::uint32_t count, std::uint32_t what) {
  std::uint64_t sum = 0;
  bool is_one = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t value = 0;
    gathering.copy_bytes_of(number, i, std::as_writable_bytes(std::span{&value, 1}));
    sum += value;
    is_one = is_one && gathering.what_of(number, i) == what;
  }
  gathering.set_result(number, is_one ? 0 : 7, bytes_of(sum));
}

TEST(Gathering, IsFoundByAllWhoAgreeOnItAndNeverGivenAway) {
  const auto board = make_board();
  std::vector<Gathering*> found;
  for (std::uint32_t key : {5U, 0U, 9U, 1U}) {
    found.push_back(Gathering::find(*board, key));
    ASSERT_NE(found.back(), nullptr);
  }
  EXPECT_EQ(Gathering::find(*board, 77), nullptr);
  EXPECT_EQ(Gathering::find(*board, 5), found[0]);
  EXPECT_EQ(Gathering::find(*board, 1), found[3]);
  EXPECT_EQ(Gathering::find(*board, 77), nullptr) << "what it said once";
}

TEST(Gathering, WhoDoesNotAgreeIsTold) {
  const auto board = make_board();
  Gathering& gathering = *Gathering::find(*board, 1);
  for (const std::uint32_t second : {1U, 2U, 1U}) {
    EXPECT_FALSE(gathering.arrive(0, 2, 1, {}).is_last);
    const auto [number, is_last] = gathering.arrive(1, 2, second, {});
    ASSERT_TRUE(is_last);
    EXPECT_FALSE(gathering.has_ended(number));
    finish(gathering, number, 2, second);
    gathering.let_go(number, 2, [](std::uint32_t) { ADD_FAILURE() << "nobody sleeps"; });
    EXPECT_TRUE(gathering.has_ended(number));
    EXPECT_EQ(gathering.take(number, {}), second == 1 ? 0U : 7U);
  }
}

TEST(Gathering, WhoSaysThatItSleepsIsWokenOnce) {
  const auto board = make_board();
  Gathering& gathering = *Gathering::find(*board, 1);
  for (int meeting = 0; meeting < 4; ++meeting) {
    const auto first = gathering.arrive(0, 3, 1, {});
    (void)gathering.arrive(1, 3, 1, {});
    if (meeting % 2 == 0) {  // Nothing is left of it in the next one but one.
      gathering.say_asleep(first.number, 0);
    }
    EXPECT_EQ(gathering.word().load(), first.number);
    const auto last = gathering.arrive(2, 3, 1, {});
    finish(gathering, last.number, 3, 1);
    std::vector<std::uint32_t> woken;
    gathering.let_go(last.number, 3, [&](std::uint32_t member) { woken.push_back(member); });
    EXPECT_EQ(woken,
              meeting % 2 == 0 ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{});
    EXPECT_NE(gathering.word().load(), first.number);
  }
}

TEST(Gathering, ManyMeetAgainAndAgainInTwoAtATime) {
  constexpr std::uint32_t kMembers = 5;
  constexpr std::uint64_t kMeetings = 3'000;
  const auto board = make_board();
  std::vector<std::thread> members;
  std::atomic<std::uint64_t> wrong{0};
  for (std::uint32_t member = 0; member < kMembers; ++member) {
    members.emplace_back([&, member] {
      for (std::uint64_t i = 0; i < kMeetings; ++i) {
        const auto what = static_cast<std::uint32_t>(i % 3);
        Gathering& gathering = *Gathering::find(*board, 10 + i % 2);
        const std::uint64_t mine = i * (member + 1);
        const auto [number, is_last] = gathering.arrive(member, kMembers, what, bytes_of(mine));
        if (is_last) {
          finish(gathering, number, kMembers, what);
          gathering.let_go(number, kMembers, [](std::uint32_t) {});
        }
        while (!gathering.has_ended(number)) {
          std::this_thread::yield();
        }
        std::uint64_t sum = 0;
        const std::uint32_t error =
            gathering.take(number, std::as_writable_bytes(std::span{&sum, 1}));
        wrong += error != 0 || sum != i * kMembers * (kMembers + 1) / 2 ? 1 : 0;
      }
    });
  }
  for (std::thread& member : members) {
    member.join();
  }
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace sterna::mpi
