// Threads with thread-local variables of their own. tests/capi/locals.cc has what programs see.
#include "threads/carriers/locals.h"

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread_pointer.h"
#include "threads/carriers/blocking.h"
#include "threads/carriers/border.h"
#include "threads/control/control.h"
#include "threads/sync/mutex.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

std::atomic<int> objects_made{0};
std::atomic<int> objects_ended{0};

struct Object {
  Object() { ++objects_made; }
  ~Object() {
    ++objects_ended;
    is_on_kernel_thread = is_on_kernel_thread && self() == nullptr;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int number = 3;
  static inline std::atomic<bool> is_on_kernel_thread{true};
};

thread_local int count = 17;
thread_local Object object;

class LocalsTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  template <typename Function>
  Thread* go_with_locals(Function& function, const ThreadOptions& options = {}) {
    auto thread = team->spawn_with_locals(
        options, [](void* callable) { (*static_cast<Function*>(callable))(); }, &function);
    check(thread.has_value(), "the thread starts");
    return thread.value();
  }

  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, LocalsTest, testing::Values(1, 2, 4));

/// What a thread looks at after each switch.
struct Body {
  int number = 0;
  Mutex* mutex = nullptr;
  int wrong = 0;

  void operator()() {
    int* const its_count = &count;
    int* const its_errno = &errno;
    wrong += count == 17 && errno == 0 && object.number == 3 ? 0 : 1;
    count = number;
    object.number = number;
    for (int turn = 0; turn < 60; ++turn) {
      errno = number;
      leave(turn);
      wrong += its_count == &count && *its_count == number ? 0 : 1;
      wrong += its_errno == &errno && *its_errno == number && object.number == number ? 0 : 1;
      wrong += this_worker() == self()->worker.load() ? 0 : 1;
    }
  }
  void leave(int turn) const {
    switch ((turn + number) % 5) {
      case 0:
        sleep_for(1000);
        break;
      case 1:
        mutex->lock();
        yield();
        mutex->unlock();
        break;
      case 2:
        try {
          throw std::runtime_error{"across a switch"};
        } catch (const std::exception& error) {
          yield();
          EXPECT_EQ(error.what(), std::string{"across a switch"});
        }
        errno = number;
        break;
      case 3:
        EXPECT_EQ(blocking([] { return 5L; }), 5);
        break;
      default:
        yield();
    }
  }
};

TEST_P(LocalsTest, AreTheThreadsOwnWhereverItRuns) {
  constexpr int kThreads = 40;
  const int made_before = objects_made;
  const int ended_before = objects_ended;
  Mutex mutex;
  std::vector<Body> bodies(kThreads);
  std::atomic<int> wrong{0};
  // Threads without, between them: on their worker's thread pointer, with an errno of their own.
  auto usual = [&] {
    for (int turn = 0; turn < 100; ++turn) {
      wrong += reinterpret_cast<void*>(thread_pointer()) == worker_thread_pointer() ? 0 : 1;
      yield();
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < kThreads; ++i) {
    bodies[static_cast<std::size_t>(i)].number = 100 + i;
    bodies[static_cast<std::size_t>(i)].mutex = &mutex;
    threads.push_back(go_with_locals(bodies[static_cast<std::size_t>(i)]));
    threads.push_back(team.go(usual));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  for (const Body& body : bodies) {
    wrong += body.wrong;
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(objects_made - made_before, kThreads);
  EXPECT_EQ(objects_ended - ended_before, kThreads);
  EXPECT_TRUE(Object::is_on_kernel_thread);
  EXPECT_EQ(count, 17);  // The kernel thread's.
}

TEST_P(LocalsTest, BeginAnewInASlotThatIsUsedAgain) {
  int wrong = 0;
  auto body = [&] {
    wrong += count == 17 ? 0 : 1;
    count = 1;
    yield();
  };
  auto usual = [] { yield(); };
  for (int i = 0; i < 20; ++i) {
    Thread* const thread = go_with_locals(body, {.stack_bytes = 64 * 1024, .guard_bytes = 4096});
    join(*thread);
    join(*team.go(usual));
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(LocalsTest, AThreadWithThemCreatesAndJoinsOthers) {
  int inner_count = 0;
  int usual_count = 0;
  auto inner = [&] { inner_count = count; };
  auto usual = [&] { usual_count = count; };
  auto outer = [&] {
    count = 5;
    join(*go_with_locals(inner));
    EXPECT_EQ(count, 5);
    join(*team.go(usual));
    EXPECT_EQ(count, 5);
  };
  join(*go_with_locals(outer));
  EXPECT_EQ(inner_count, 17);
  EXPECT_EQ(usual_count, 17);
}

TEST(Locals, StayThoughTheThreadIsPreempted) {
  TestTeam team{1, {.tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<int> turn{0};
  std::atomic<int> wrong{0};
  auto plays = [&](int mine) {
    return [&turn, &wrong, mine] {
      count = mine;
      for (int round = 0; round < 10; ++round) {
        while (turn.load() % 3 != mine) {
          errno = mine;
          wrong += count == mine && errno == mine ? 0 : 1;
        }
        turn.fetch_add(1);
      }
    };
  };
  auto a = plays(0);
  auto b = plays(1);
  auto c = plays(2);
  const auto start = [&](auto& function) {
    using Function = std::remove_reference_t<decltype(function)>;
    auto thread = team->spawn_with_locals(
        {.is_user_code = true}, [](void* callable) { (*static_cast<Function*>(callable))(); },
        &function);
    check(thread.has_value(), "the thread starts");
    return thread.value();
  };
  Thread* const threads[] = {start(a), start(b), team.go(c, {.is_user_code = true})};
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(turn.load(), 30);
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace sterna::threads
