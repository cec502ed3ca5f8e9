// The small things of base: clocks, wire bytes, log lines, queues, pools, random numbers.
#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/large_stack.h"
#include "base/log.h"
#include "base/mpsc_queue.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/ring.h"
#include "base/syscall.h"
#include "base/utf8.h"
#include "base/wire.h"

namespace sterna {
namespace {

TEST(Clock, IsReadTogetherWithTheCounter) {
  const std::uint64_t ns_before = now_ns();
  const std::uint64_t cycles_before = cycles();
  const ClockReading both = read_clocks_at_once();
  EXPECT_GE(both.ns, ns_before);
  EXPECT_LE(both.ns, now_ns());
  EXPECT_GE(both.cycles, cycles_before);
  EXPECT_LE(both.cycles, cycles());
}

TEST(Clock, CyclesAgreeWithTheClock) {
  const CycleRate rate = calibrate_cycles();
  const std::uint64_t count = cycles();
  const std::uint64_t time = now_ns();
  while (now_ns() - time < 2'000'000) {
  }
  const double by_cycles = static_cast<double>(rate.to_ns(cycles() - count));
  // The process may lose the processor between two readings: only a gross error fails.
  EXPECT_GT(by_cycles, 1.9e6);
  EXPECT_LT(by_cycles, 2e8);
}

TEST(Clock, TheManualClockGoesWhenTold) {
  ManualClock clock{5};
  EXPECT_EQ(clock.now_ns(), 5u);
  clock.advance(10);
  EXPECT_EQ(static_cast<Clock&>(clock).now_ns(), 15u);
}

TEST(Utf8, TextIsCutBetweenCharacters) {
  // Characters of one to four bytes.
  const std::string text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
  constexpr std::size_t kWhole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    EXPECT_EQ(whole_characters({text.data(), bytes}), kWhole[bytes]) << bytes;
  }
  EXPECT_EQ(whole_characters("\xff"), 1U);
  EXPECT_EQ(whole_characters("caf\xe9 x"), 6U);
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80\x80"), 5U);
}

TEST(Syscall, ErrorsComeBackNegative) {
  EXPECT_EQ(system_call([] { return ::close(-1); }), -EBADF);
  EXPECT_EQ(raw_system_call(SYS_close, -1), -EBADF);
  const Error error = system_error("node 1: cannot read the book", ENOENT);
  EXPECT_EQ(error.text, "node 1: cannot read the book: No such file or directory");
}

TEST(Syscall, ADescriptorIsClosedOnce) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  FileDescriptor reader{ends[0]};
  {
    FileDescriptor writer{ends[1]};
    FileDescriptor other = std::move(writer);
    EXPECT_FALSE(writer.is_open());
    EXPECT_EQ(::write(other.get(), "x", 1), 1);
  }
  char c = 0;
  EXPECT_EQ(::read(reader.get(), &c, 1), 1);
  EXPECT_EQ(::read(reader.get(), &c, 1), 0);  // The other end is closed.
}

TEST(Wire, WhatIsWrittenIsRead) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 100};
  writer.u8(1);
  writer.u16(0x1234);
  writer.i64(-7);
  writer.f64(0.5);
  writer.text("tern");
  writer.boolean(true);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(bytes[1], std::byte{0x34});  // Little end first.
  wire::Reader reader{bytes};
  EXPECT_EQ(reader.u8(), 1);
  EXPECT_EQ(reader.u16(), 0x1234);
  EXPECT_EQ(reader.i64(), -7);
  EXPECT_EQ(reader.f64(), 0.5);
  EXPECT_EQ(reader.text(4), "tern");
  EXPECT_TRUE(reader.boolean());
  EXPECT_TRUE(reader.finished());
}

TEST(Wire, NothingBeyondTheBoundIsWrittenOrRead) {
  std::array<std::byte, 6> memory{};
  memory[5] = std::byte{0xee};
  wire::Writer writer{std::span{memory}.first(5)};
  writer.u32(1);
  writer.u16(0xffff);
  EXPECT_FALSE(writer.ok());
  writer.u8(0xff);  // Would fit, but comes after a failure.
  EXPECT_EQ(memory[4], std::byte{0});
  EXPECT_EQ(memory[5], std::byte{0xee});
  wire::Reader reader{memory};
  EXPECT_EQ(reader.u64(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0);
}

TEST(Wire, CountsThatTheInputCannotHoldAreRefused) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 100};
  writer.u32(3);
  writer.u64(0);
  EXPECT_EQ(wire::Reader{bytes}.count(2), 3u);
  wire::Reader reader{bytes};
  EXPECT_EQ(reader.count(4), 0u);
  EXPECT_FALSE(reader.ok());
}

std::string logged(const LogOptions& options, auto&& write) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const FileDescriptor reader{ends[0]};
  FileDescriptor writer{ends[1]};
  LogOptions with_pipe = options;
  with_pipe.fd = ends[1];
  const Log log{with_pipe};
  write(Logger{log, "net"});
  writer = FileDescriptor{};
  std::array<char, 8192> text{};
  const auto bytes = ::read(ends[0], text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(bytes)};
}

TEST(Log, ALineNamesWhoWhereAndHowBad) {
  LogOptions options{.prefix = "node 2"};
  ASSERT_TRUE(parse_log_levels("error,net=info", options));
  EXPECT_EQ(logged(options,
                   [](const Logger& logger) {
                     logger.info("peer {}\nis here", 3);
                     logger.debug("not shown");
                   }),
            "sterna: node 2: net: info: peer 3 is here\n");
  EXPECT_EQ(Log{options}.level("mpi"), LogLevel::error);
  EXPECT_FALSE(Logger{}.is_enabled(LogLevel::error));
}

TEST(Log, WrongLevelsAreRefusedAndChangeNothing) {
  LogOptions options;
  EXPECT_FALSE(parse_log_levels("debug,net=loud", options));
  EXPECT_FALSE(parse_log_levels("=info", options));
  EXPECT_EQ(options.level, LogLevel::warn);
}

TEST(FunctionRef, CallsWhatItBorrows) {
  int sum = 0;
  const auto add = [&](int value) { return sum += value; };
  const FunctionRef<int(int)> call = add;
  EXPECT_EQ(call(2), 2);
  EXPECT_EQ(call(3), 5);
}

TEST(Random, EqualSeedsGiveEqualNumbersInRange) {
  Random a{7};
  Random b{7};
  Random c{8};
  std::set<std::uint64_t> seen;
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a.below(10);
    EXPECT_EQ(value, b.below(10));
    differs |= value != c.below(10);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(*seen.rbegin(), 9u);
  EXPECT_TRUE(differs);
}

TEST(Pool, ObjectsAreUsedAgainUpToTheBound) {
  Pool<int> pool{{.block_count = 2, .count_max = 3}};
  int* first = pool.create(1);
  int* second = pool.create(2);
  int* third = pool.create(3);
  EXPECT_EQ(pool.create(4), nullptr);
  EXPECT_EQ(*first + *second + *third, 6);
  pool.destroy(second);
  EXPECT_EQ(pool.create(5), second);
  pool.destroy(first);
  pool.destroy(second);
  pool.destroy(third);
  EXPECT_EQ(pool.used_count(), 0u);
}

TEST(Ring, AFullRingAcceptsAgainAfterPop) {
  Ring<int> ring{2};
  EXPECT_FALSE(ring.try_pop());
  EXPECT_TRUE(ring.try_push(1));
  EXPECT_TRUE(ring.try_push(2));
  EXPECT_FALSE(ring.try_push(3));
  EXPECT_EQ(ring.try_pop(), 1);
  EXPECT_TRUE(ring.try_push(3));
  EXPECT_EQ(ring.try_pop(), 2);
  EXPECT_EQ(ring.try_pop(), 3);
}

TEST(Ring, TwoThreadsKeepOrder) {
  Ring<std::uint32_t> ring{64};
  constexpr std::uint32_t kCount = 200'000;
  std::thread producer{[&] {
    for (std::uint32_t i = 0; i < kCount;) {
      ring.try_push(i) ? static_cast<void>(++i) : std::this_thread::yield();
    }
  }};
  for (std::uint32_t expected = 0; expected < kCount;) {
    if (const std::optional<std::uint32_t> value = ring.try_pop()) {
      ASSERT_EQ(*value, expected);
      ++expected;
    } else {
      std::this_thread::yield();
    }
  }
  producer.join();
}

struct Item : MpscNode {
  std::uint32_t producer = 0;
  std::uint32_t number = 0;
};

TEST(MpscQueue, PushSaysWhenItWasEmpty) {
  MpscQueue<Item> queue;
  std::array<Item, 3> items;
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_TRUE(queue.looks_empty());
  EXPECT_TRUE(queue.push(items[0]));
  EXPECT_FALSE(queue.push(items[1]));
  EXPECT_EQ(queue.pop(), &items[0]);
  EXPECT_FALSE(queue.push(items[2]));
  EXPECT_EQ(queue.pop(), &items[1]);
  EXPECT_EQ(queue.pop(), &items[2]);
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_TRUE(queue.looks_empty());
  EXPECT_TRUE(queue.push(items[1]));
  EXPECT_EQ(queue.pop(), &items[1]);
}

TEST(MpscQueue, EveryProducerKeepsItsOrderAndNothingIsLost) {
  constexpr std::uint32_t kProducers = 3;
  constexpr std::uint32_t kCount = 50'000;
  MpscQueue<Item> queue;
  std::vector<std::vector<Item>> items;
  for (std::uint32_t i = 0; i < kProducers; ++i) {
    items.emplace_back(kCount);
  }
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (std::uint32_t i = 0; i < kCount; ++i) {
        items[p][i].producer = p;
        items[p][i].number = i;
        queue.push(items[p][i]);
      }
    });
  }
  std::array<std::uint32_t, kProducers> expected{};
  for (std::uint32_t total = 0; total < kProducers * kCount;) {
    if (const Item* item = queue.pop()) {
      ASSERT_EQ(item->number, expected[item->producer]++);
      ++total;
    } else {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_TRUE(queue.looks_empty());
  for (std::thread& producer : producers) {
    producer.join();
  }
}

[[noreturn]] void use_half_of_a_large_stack() {
  const rlimit small{.rlim_cur = 64 << 10, .rlim_max = 64 << 10};
  ::setrlimit(RLIMIT_STACK, &small);
  const int result = on_large_stack([] {
    volatile char large[kLargeStackBytes / 2];
    for (std::size_t i = 0; i < sizeof large; i += 4096) {
      large[sizeof large - 1 - i] = 1;
    }
    return large[sizeof large - 1] + 6;
  });
  std::_Exit(result);
}

// In a child: a limit that was lowered cannot be raised again.
TEST(LargeStack, GivesAFunctionWhatTheLimitDoesNot) {
  EXPECT_EXIT(use_half_of_a_large_stack(), ::testing::ExitedWithCode(7), "");
}

TEST(LargeStack, IsTheThreadsOwnIfThatMayGrow) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_STACK, &limit), 0);
  if (limit.rlim_cur < kLargeStackBytes) {
    // Whoever runs the tests has lowered it, and a running thread's stack does not grow with a
    // limit that is raised. Then the test above is what holds here.
    GTEST_SKIP() << "the limit of the stack is small here";
  }
  const auto frame = [] { return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)); };
  const std::uintptr_t here = frame();
  EXPECT_EQ(on_large_stack([&] { return here - frame() < (64 << 10) ? 3 : 4; }), 3);
}

}  // namespace
}  // namespace sterna
