// The deque of seeds on one kernel thread: what thieves take and leave, and in which order.
#include "threads/seeds/seed_deque.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "threads/seeds/seed.h"

namespace sterna::threads {
namespace {

class SeedDequeTest : public testing::Test {
 protected:
  void push(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(deque_.push(seeds_[i]));
    }
  }
  /// What a thief takes that claims so many and wants those of `wanted`.
  std::string steal(std::size_t claimed, const std::string& wanted, std::size_t room = 8) {
    std::array<Seed*, 8> taken;
    looked_at_.clear();
    const std::size_t count =
        deque_.steal(std::span{taken}.first(room), claimed, [&](const Seed& seed) {
          looked_at_ += name(seed);
          return wanted.find(name(seed)) != std::string::npos;
        });
    std::string names;
    for (std::size_t i = 0; i < count; ++i) {
      names += name(*taken[i]);
    }
    return names;
  }
  /// What is left, newest first.
  std::string left() {
    std::string names;
    while (const Seed* const seed = deque_.pop_newest()) {
      names += name(*seed);
    }
    return names;
  }
  char name(const Seed& seed) const { return static_cast<char>('a' + (&seed - seeds_.data())); }

  std::array<Seed, 8> seeds_;
  SeedDeque deque_{false};
  std::string looked_at_;
};

TEST_F(SeedDequeTest, AThiefLooksAtTheOldestHalf) {
  push(6);
  EXPECT_EQ(steal(8, "abcdef"), "abc");
  EXPECT_EQ(looked_at_, "abc");
  EXPECT_EQ(left(), "fed");
}

TEST_F(SeedDequeTest, AThiefLooksAtAllIfItClaimsTheMost) {
  push(6);
  EXPECT_EQ(steal(SeedDeque::kClaimMax, "f"), "f");
  EXPECT_EQ(looked_at_, "abcdef");
  EXPECT_EQ(left(), "edcba");
}

TEST_F(SeedDequeTest, AThiefTakesWhatItHasRoomFor) {
  push(6);
  EXPECT_EQ(steal(SeedDeque::kClaimMax, "bcdef", 2), "bc");
  EXPECT_EQ(looked_at_, "abc");
  EXPECT_EQ(left(), "feda");
}

TEST_F(SeedDequeTest, WhatAThiefDoesNotWantStaysInOrder) {
  push(6);
  EXPECT_EQ(steal(SeedDeque::kClaimMax, ""), "");
  EXPECT_EQ(steal(SeedDeque::kClaimMax, "be"), "be");
  EXPECT_TRUE(deque_.pop(seeds_[5]));
  EXPECT_FALSE(deque_.pop(seeds_[4]));
  EXPECT_TRUE(deque_.take_back(seeds_[2]));
  EXPECT_EQ(left(), "da");
}

TEST_F(SeedDequeTest, ItsPlanterTakesOneOutWhereverItIs) {
  push(5);
  EXPECT_TRUE(deque_.take_out(seeds_[2]));
  EXPECT_FALSE(deque_.take_out(seeds_[2]));
  EXPECT_TRUE(deque_.take_out(seeds_[4]));
  EXPECT_TRUE(deque_.take_out(seeds_[0]));
  EXPECT_FALSE(deque_.take_back(seeds_[0]));
  EXPECT_EQ(left(), "db");
  EXPECT_FALSE(deque_.take_out(seeds_[1]));
}

TEST_F(SeedDequeTest, WhatIsDoneWithoutACallIsTheSame) {
  EXPECT_TRUE(deque_.try_push(seeds_[0]));
  EXPECT_TRUE(deque_.try_push(seeds_[1]));
  EXPECT_FALSE(deque_.try_pop(seeds_[0]));
  EXPECT_TRUE(deque_.try_pop(seeds_[1]));
  EXPECT_FALSE(deque_.try_pop(seeds_[1]));
  EXPECT_EQ(steal(1, "a"), "a");
  EXPECT_FALSE(deque_.try_pop(seeds_[0]));
  EXPECT_EQ(deque_.count(), 0);
}

TEST_F(SeedDequeTest, WithoutACallTheRingDoesNotGrow) {
  std::array<Seed, 257> many;
  for (std::size_t i = 0; i < many.size(); ++i) {
    EXPECT_EQ(deque_.try_push(many[i]), i < 256) << i;
  }
  EXPECT_TRUE(deque_.push(many[256]));
  EXPECT_TRUE(deque_.try_pop(many[256]));
  EXPECT_TRUE(deque_.try_push(many[256]));
}

TEST_F(SeedDequeTest, RingsThatGrowKeepWhatThievesLeft) {
  std::array<Seed, 600> many;
  for (Seed& seed : many) {
    ASSERT_TRUE(deque_.push(seed));
  }
  Seed* taken[1];
  const auto is_third = [&](const Seed& seed) { return &seed == &many[2]; };
  EXPECT_EQ(deque_.steal(taken, SeedDeque::kClaimMax, is_third), 1U);
  for (std::size_t i = many.size(); i-- > 0;) {
    EXPECT_EQ(deque_.pop(many[i]), i != 2) << i;
  }
  EXPECT_EQ(deque_.count(), 0);
}

}  // namespace
}  // namespace sterna::threads
