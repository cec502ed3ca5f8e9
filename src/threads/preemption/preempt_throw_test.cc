// Preemption in the middle of C++ exceptions: while they are thrown, unwind frames, are caught
// inside each other, and go from thread to thread.
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "threads/carriers/border.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kRounds = kSanitizedTests ? 300 : 4'000;
constexpr std::uint32_t kDeep = 6;
constexpr std::size_t kThreads = 8;

/// What is thrown: says who threw it, and twice what.
struct Ball : std::runtime_error {
  explicit Ball(std::uint32_t wanted)
      : std::runtime_error{"ball " + std::to_string(wanted)}, value{wanted} {}
  std::uint32_t value;
  [[nodiscard]] bool is_whole() const { return what() == "ball " + std::to_string(value); }
};

struct Storm {
  std::atomic<std::uint32_t> wrong{0};
  std::atomic<std::int32_t> alive{0};  // Frames that are not unwound.
  std::atomic<std::uint32_t> seed{1};
  std::atomic<std::uint32_t> passed{0};  // Exceptions that another thread has thrown again.
  std::atomic<std::size_t> throwing{kThreads};
  std::atomic<bool> is_over{false};
  // Exceptions on their way to whoever takes them next.
  std::array<std::atomic<std::exception_ptr*>, 4> posts{};

  void expect(bool is_true) { wrong.fetch_add(is_true ? 0 : 1, std::memory_order_relaxed); }
};

/// A switch that the thread makes itself, as calls of the API do.
void switch_once() {
  const RuntimeEntry entry;
  yield();
}

/// A frame that counts itself, and whose destructor, while another exception flies, throws and
/// catches one of its own.
class Frame {
 public:
  Frame(Storm& storm, std::uint32_t value) : storm_{storm}, value_{value} {
    storm_.alive.fetch_add(1, std::memory_order_relaxed);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    const int flying = std::uncaught_exceptions();
    try {
      throw Ball{value_};
    } catch (const Ball& ball) {
      storm_.expect(ball.value == value_ && ball.is_whole());
      storm_.expect(std::uncaught_exceptions() == flying);
      if (value_ % 2048 == 0) {
        switch_once();
      }
      storm_.expect(ball.value == value_);
    }
    storm_.expect(std::uncaught_exceptions() == flying);
    storm_.alive.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  Storm& storm_;
  std::uint32_t value_;
};

[[gnu::noinline]] void fall(Storm& storm, std::uint32_t depth, std::uint32_t value) {
  const Frame frame{storm, value + depth};
  if (depth == 0) {
    throw Ball{value};
  }
  fall(storm, depth - 1, value);
}

/// Caught, thrown again from inside another one's handler, and caught outside of both.
void nest(Storm& storm, std::uint32_t value) {
  try {
    try {
      fall(storm, kDeep, value);
    } catch (const Ball& outer) {
      try {
        fall(storm, 1, value + 1);
      } catch (const Ball& inner) {
        storm.expect(inner.value == value + 1 && outer.value == value);
        if (value % 1024 == 0) {
          switch_once();
        }
        storm.expect(inner.is_whole() && outer.is_whole());
      }
      throw;
    }
  } catch (const Ball& ball) {
    storm.expect(ball.value == value && ball.is_whole());
    storm.expect(std::uncaught_exceptions() == 0);
  }
}

/// Leaves an exception for another thread, and throws again what one has left.
void pass(Storm& storm, std::uint32_t value) {
  auto mine = std::make_unique<std::exception_ptr>();
  try {
    throw Ball{value};
  } catch (...) {
    *mine = std::current_exception();
  }
  const std::unique_ptr<std::exception_ptr> other{
      storm.posts[value % storm.posts.size()].exchange(mine.release())};
  if (other == nullptr) {
    return;
  }
  try {
    std::rethrow_exception(*other);
  } catch (const Ball& ball) {
    storm.expect(ball.is_whole() && std::current_exception() == *other);
  }
  storm.passed.fetch_add(1, std::memory_order_relaxed);
}

void throw_and_catch(Storm& storm) {
  std::uint32_t random = storm.seed.fetch_add(1);
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    random = random * 1664525 + 1013904223;
    nest(storm, random >> 8);
    pass(storm, random >> 8);
  }
  storm.expect(std::current_exception() == nullptr);
  storm.throwing.fetch_sub(1, std::memory_order_relaxed);
}

/// Whenever it is woken, with one exception caught while it waits.
void interrupt(Storm& storm) {
  for (std::uint32_t i = 0; !storm.is_over.load(std::memory_order_relaxed); ++i) {
    try {
      throw Ball{i};
    } catch (const Ball& ball) {
      park();
      storm.expect(ball.value == i && ball.is_whole());
    }
  }
}

void run_storm(const TestTeam& team, Storm& storm) {
  auto throws = [&] { throw_and_catch(storm); };
  auto interrupts = [&] { interrupt(storm); };
  std::array<Thread*, 2> urgent;
  for (Thread*& thread : urgent) {
    thread = team.go(interrupts, {.priority = 20});
  }
  std::array<Thread*, kThreads> threads;
  for (Thread*& thread : threads) {
    thread = team.go(throws, {.is_user_code = true});
  }
  while (storm.throwing.load(std::memory_order_relaxed) != 0) {
    sleep_for(kMs);
    for (Thread* const thread : urgent) {
      unpark(*thread);
    }
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  storm.is_over.store(true, std::memory_order_relaxed);
  for (Thread* const thread : urgent) {
    unpark(*thread);
    join(*thread);
  }
  for (auto& post : storm.posts) {
    delete post.load();
  }
  EXPECT_EQ(storm.wrong.load(), 0U);
  EXPECT_EQ(storm.alive.load(), 0);
  EXPECT_GT(storm.passed.load(), 0U);
}

TEST(Preempt, StormsOfExceptionsAreSafeUnderSlices) {
  TestTeam team{2, {.tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  Storm storm;
  run_storm(team, storm);
}

TEST(Preempt, StormsOfExceptionsAreSafeUnderInterruptions) {
  TestTeam team{2, {.tick_ns = kMs, .preempt = PreemptMode::communication}};
  Storm storm;
  run_storm(team, storm);
}

}  // namespace
}  // namespace sterna::threads
