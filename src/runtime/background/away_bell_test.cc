// What wakes who progresses in the place of a program.
#include "runtime/background/away_bell.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/driver.h"

namespace sterna::runtime {
namespace {

constexpr std::uint64_t kShortNs = 1'000'000;
constexpr std::uint64_t kLongNs = 20'000'000'000;

class ByKernel : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(bell.open()); }
  void arrive() {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

  std::atomic<std::uint32_t> flag{net::AbsenceFlag::kPresent};
  FileDescriptor event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  AwayBell bell{flag, event.get()};
};

TEST_F(ByKernel, ARingIsHeardOnce) {
  bell.ring();
  EXPECT_EQ(flag.load(), net::AbsenceFlag::kRung);
  EXPECT_TRUE(bell.sleep(kLongNs));
  EXPECT_FALSE(bell.sleep(kShortNs));
}

TEST_F(ByKernel, WhatArrivesRingsOnceIfItIsArmed) {
  arrive();
  EXPECT_FALSE(bell.sleep(kShortNs));
  bell.arm();  // Also for what has arrived before.
  EXPECT_TRUE(bell.sleep(kLongNs));
  EXPECT_FALSE(bell.sleep(kShortNs));  // Though it is still there.
  bell.arm();
  EXPECT_TRUE(bell.sleep(kLongNs));
}

TEST_F(ByKernel, WhoIsBackDisarms) {
  bell.arm();
  bell.disarm();
  arrive();
  EXPECT_FALSE(bell.sleep(kShortNs));
  bell.disarm();
}

TEST_F(ByKernel, ASleeperWakes) {
  std::atomic<int> wakes{0};
  std::thread sleeper{[&] {
    for (int round = 0; round < 2; ++round) {
      wakes += bell.sleep(kLongNs) ? 1 : 0;
    }
  }};
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  bell.arm();
  arrive();
  while (wakes.load() == 0) {
    std::this_thread::yield();
  }
  bell.ring();
  sleeper.join();
  EXPECT_EQ(wakes.load(), 2);
}

TEST(ByFlag, ARingIsHeardUntilTheFlagIsTakenBack) {
  std::atomic<std::uint32_t> flag{net::AbsenceFlag::kAway};
  AwayBell bell{flag, -1};
  ASSERT_TRUE(bell.open());
  EXPECT_FALSE(bell.sleep(kShortNs));
  bell.ring();
  EXPECT_TRUE(bell.sleep(kLongNs));
  EXPECT_TRUE(bell.sleep(kLongNs));
  flag = net::AbsenceFlag::kPresent;
  EXPECT_FALSE(bell.sleep(kShortNs));
}

}  // namespace
}  // namespace sterna::runtime
