// Who pays for what: turns of given lengths, in virtual time.
#include "threads/control/turn_meter.h"

#include <array>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

namespace sterna::threads {
namespace {

constexpr std::uint64_t kShort = 1000;  // A cycle is a nanosecond here.

/// Threads that take turns on one worker, and what each has really used.
struct Table {
  Table() {
    meter.open(kShort);
    for (Thread& thread : threads) {
      thread.flags = ThreadFlag::accounted;
    }
    threads[0].cycles_begin = now;
  }
  /// The present one goes on for `cycles`, then hands over.
  void turn(std::uint64_t cycles, std::size_t next) {
    spend(cycles);
    if (!meter.skips()) {
      meter.pass(threads[present], threads[next], now, direct_left - 1);
      ++stamps;
    }
    present = next;
    ++turns;
  }
  /// The same, but it leaves in another way.
  void turn_slowly(std::uint64_t cycles, std::size_t next) {
    spend(cycles);
    meter.change(threads[present], threads[next], now);
    present = next;
  }
  void spend(std::uint64_t cycles) {
    now += cycles;
    used[present] += cycles;
  }
  void finish() { meter.end(threads[present], now); }

  [[nodiscard]] double charged(std::size_t i) const {
    return static_cast<double>(threads[i].cycles_run.load());
  }
  /// Each is charged with what it has used, but for that part of all the time.
  void expect_right(double part) const {
    const auto all = static_cast<double>(now - kBegin);
    for (std::size_t i = 0; i < threads.size(); ++i) {
      EXPECT_NEAR(charged(i) / all, static_cast<double>(used[i]) / all, part) << "thread " << i;
    }
  }

  static constexpr std::uint64_t kBegin = 1'000'000;
  TurnMeter meter;
  std::array<Thread, 3> threads;
  std::array<std::uint64_t, 3> used{};
  std::size_t present = 0;
  std::uint64_t now = kBegin;
  std::uint64_t stamps = 0;
  std::uint32_t direct_left = 1000;
  std::uint64_t turns = 0;
};

TEST(TurnMeter, LongTurnsBesideShortOnesAreExact) {
  Table table;
  for (int i = 0; i < 1000; ++i) {
    table.turn(1'000'000, 1);
    table.turn(1'000, 0);
  }
  table.finish();
  EXPECT_EQ(table.threads[0].cycles_run, table.used[0]);
  EXPECT_EQ(table.threads[1].cycles_run, table.used[1]);
  EXPECT_EQ(table.stamps, table.turns);
}

TEST(TurnMeter, ShortTurnsGoUntimedAndPayTheirShares) {
  Table table;
  std::minstd_rand random{1};
  while (table.now - Table::kBegin < 100'000'000) {  // 0.1 s.
    table.turn(40 + random() % 20, 1);
    table.turn(130 + random() % 40, 2);
    table.turn(20, 0);
  }
  table.finish();
  EXPECT_LT(table.stamps, table.turns / 10);
  table.expect_right(0.02);
}

TEST(TurnMeter, ALongTurnAfterThousandsOfShortOnesIsChargedToWhoHadIt) {
  Table table;
  while (table.now - Table::kBegin < 1'000'000'000) {
    for (int i = 0; i < 2500; ++i) {
      table.turn(50, 1);
      table.turn(50, 0);
    }
    table.turn(1'000'000, 1);  // 4/5 of all.
    table.turn(50, 0);
  }
  table.finish();
  EXPECT_LT(table.stamps, table.turns);  // There were rows.
  table.expect_right(2.0 / TurnMeter::kExactRatio);
}

TEST(TurnMeter, LookingChargesALongTurnToWhoHasIt) {
  Table table;
  for (int i = 0; i < 10'000; ++i) {
    table.turn(50, 1);
    table.turn(50, 0);
  }
  while (table.meter.untimed_since() == 0) {  // Thread 0 or 1 is in an untimed turn then.
    table.turn(50, 1 - table.present);
  }
  const std::size_t who = table.present;
  const double before = table.charged(who);
  table.spend(5'000'000);
  EXPECT_GT(table.now - table.meter.untimed_since(), table.meter.row_cycles_max());
  table.meter.look();
  table.turn(50, 1 - who);
  EXPECT_GE(table.charged(who) - before, 5'000'000);
}

// As in a worker that looks after the network at every 64th switch: always in the same thread's
// turn.
TEST(TurnMeter, RowsThatMakeRoomForOtherSwitchesAreFair) {
  Table table;
  while (table.now - Table::kBegin < 200'000'000) {
    for (table.direct_left = 64; table.direct_left-- > 1;) {
      table.turn(table.present == 0 ? 800 : 50, 1 - table.present);
    }
    table.turn_slowly(1500, 1 - table.present);
  }
  table.finish();
  EXPECT_LT(table.stamps, table.turns / 3);
  table.expect_right(0.03);
}

TEST(TurnMeter, AThreadWhoseTurnsAlwaysComeAtTheSamePlacePaysItsShare) {
  Table table;
  while (table.now - Table::kBegin < 200'000'000) {
    for (int i = 0; i < 64; ++i) {
      table.turn(i % 32 == 5 ? 900 : table.present == 0 ? 80 : 50, (i + 1) % 2);
    }
  }
  table.finish();
  EXPECT_LT(table.stamps, table.turns / 10);
  table.expect_right(0.03);
}

TEST(TurnMeter, OtherSwitchesEndARowAndLoseNothing) {
  Table table;
  std::minstd_rand random{7};
  while (table.now - Table::kBegin < 100'000'000) {
    const std::uint64_t count = random() % 400;
    for (std::uint64_t i = 0; i < count; ++i) {
      table.turn(50, 1);
      table.turn(90, 0);
    }
    table.turn_slowly(300, 2);
    table.turn_slowly(200, 0);
  }
  table.finish();
  table.expect_right(0.03);
  EXPECT_NEAR(table.charged(0) + table.charged(1) + table.charged(2),
              static_cast<double>(table.now - Table::kBegin),
              0.02 * static_cast<double>(table.now - Table::kBegin));
}

TEST(TurnMeter, NothingIsLeftBehindAtAThreadThatDoesNotRun) {
  Table table;
  for (int i = 0; i < 100'000; ++i) {
    table.turn(50, (table.present + 1) % 3);
    for (std::size_t k = 0; k < 3; ++k) {
      if (k != table.present) {
        ASSERT_EQ(table.threads[k].cycles_begin, 0U);
      }
    }
  }
}

}  // namespace
}  // namespace sterna::threads
