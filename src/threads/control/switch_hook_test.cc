// Calls at switches, and counters of the processor by user thread.
#include "threads/control/switch_hook.h"

#include <atomic>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>

#include "threads/carriers/border.h"
#include "threads/control/control.h"
#include "threads/control/counters.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

class HookTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  TestTeam team{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, HookTest, testing::Values(1, 3));

/// Notes its calls; each thread has its own.
struct Log {
  SwitchHook hook{.before = [](void* self) { static_cast<Log*>(self)->note(false); },
                  .after = [](void* self) { static_cast<Log*>(self)->note(true); },
                  .argument = this};
  Thread* owner = nullptr;
  int before = 0;
  int after = 0;
  int wrong = 0;
  bool is_in = true;

  void note(bool comes) {
    wrong += self() == owner && is_in != comes ? 0 : 1;  // On its stack, in turns.
    is_in = comes;
    (comes ? after : before) += 1;
  }
};

TEST_P(HookTest, RunOnTheStackOfTheirThreadAroundEachSwitch) {
  std::vector<Log> logs(5);
  std::atomic<int> turns{0};
  struct Runner {
    Log* log;
    std::atomic<int>* turns;
    void operator()() const {
      log->owner = self();
      add_switch_hook(log->hook);
      for (int i = 0; i < 100; ++i) {
        ++*turns;
        yield();
        if (i % 10 == 0) {
          sleep_for(1000);
        }
        if (log->is_in == false || log->before != log->after) {
          ++log->wrong;
        }
      }
    }
  };
  std::vector<Runner> runners;
  for (Log& log : logs) {
    runners.push_back({&log, &turns});
  }
  std::vector<Thread*> threads;
  for (Runner& runner : runners) {
    threads.push_back(team.go(runner));
  }
  auto without = [&] {
    for (int i = 0; i < 1000; ++i) {
      yield();
    }
  };
  threads.push_back(team.go(without));
  for (Thread* const thread : threads) {
    join(*thread);
  }
  for (const Log& log : logs) {
    EXPECT_EQ(log.wrong, 0);
    EXPECT_EQ(log.before, log.after + 1) << "the last one is the end of the thread";
    // Not each sleep: an idle worker may fire the timer before the sleeper has left.
    EXPECT_GE(log.after, 1) << "it has left its processor";
    EXPECT_FALSE(log.is_in);
  }
}

TEST_P(HookTest, NestAndAreRemovedInAnyOrder) {
  std::string order;
  struct Named {
    std::string* order;
    char name;
    SwitchHook hook{.before = [](void* self) { static_cast<Named*>(self)->add(0); },
                    .after = [](void* self) { static_cast<Named*>(self)->add('a' - 'A'); },
                    .argument = this};
    void add(int lower) { *order += static_cast<char>(name + lower); }
  };
  auto function = [&] {
    Named a{&order, 'A'};
    Named b{&order, 'B'};
    Named c{&order, 'C'};
    for (Named* const one : {&a, &b, &c}) {
      add_switch_hook(one->hook);
    }
    sleep_for(kMs / 10);
    EXPECT_EQ(order, "CBAabc");
    EXPECT_TRUE(remove_switch_hook(b.hook));
    EXPECT_FALSE(remove_switch_hook(b.hook));
    order.clear();
    sleep_for(kMs / 10);
    EXPECT_EQ(order, "CAac");
    EXPECT_TRUE(remove_switch_hook(c.hook));
    EXPECT_TRUE(remove_switch_hook(a.hook));
    order.clear();
    sleep_for(kMs / 10);
    EXPECT_EQ(order, "");
    EXPECT_EQ(self()->flags & ThreadFlag::hooked, 0U);
  };
  team.run(function);
}

TEST(Hook, OfAThreadThatIsPreemptedRunToo) {
  const TestTeam team{
      1, {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  Log log;
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_begun{false};
  auto computes = [&] {
    {
      const RuntimeEntry entry;
      log.owner = nullptr;  // In the handler the stack is another: self() is null there.
      log.hook.before = [](void* self) { ++static_cast<Log*>(self)->before; };
      log.hook.after = [](void* self) { ++static_cast<Log*>(self)->after; };
      add_switch_hook(log.hook);
    }
    has_begun = true;
    while (!is_over.load()) {
      asm volatile("");
    }
  };
  auto ends_it = [&] { is_over = true; };
  Thread* const thread = team.go(computes, {.is_user_code = true});
  while (!has_begun.load()) {
    std::this_thread::yield();
  }
  Thread* const other = team.go(ends_it, {.is_user_code = true});
  join(*other);
  join(*thread);
  EXPECT_GE(log.after, 1);
  EXPECT_EQ(log.before, log.after + 1);
}

/// Every kernel has processor time and page faults. It may forbid them (refused:
/// perf_event_paranoid, a container's filter) or have been built without the call. No other answer
/// is excused. (A test that finds them forbidden is skipped: there is nothing to count with; what
/// a program is told then is `Counters`' to say, and is tested everywhere.)
bool is_forbidden(const Error& error) {
  return error.code == Errc::refused || (error.code == Errc::unsupported &&
                                         error.text.find("perf_event_open") != std::string::npos);
}

TEST_P(HookTest, CountersAreThoseOfTheThreadAlone) {
  const Event events[] = {Event::task_clock, Event::page_faults};
  for (const Event event : events) {
    if (const Result<> tried = try_event(event); !tried) {
      ASSERT_TRUE(is_forbidden(tried.error())) << tried.error().text;
      // There is nothing to count with: see is_forbidden().
      GTEST_SKIP() << "this kernel, or its container, has no counters for us: "
                   << tried.error().text;
    }
  }
  constexpr std::size_t kBytes = 64 * 4096;
  struct Counted {
    CounterSet set;
    bool touches;
    std::uint64_t values[2] = {};
    Counted(std::span<const Event> its_events, bool it_touches)
        : set{its_events}, touches{it_touches} {}
    void operator()() {
      set.start();
      for (int i = 0; i < 20; ++i) {
        if (touches) {
          void* const memory =
              ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          for (std::size_t at = 0; at < kBytes; at += 4096) {
            static_cast<volatile char*>(memory)[at] = 1;
            if (at % (16 * 4096) == 0) {
              yield();
            }
          }
          ::munmap(memory, kBytes);
        } else {
          yield();
        }
        sleep_for(10'000);
      }
      EXPECT_TRUE(set.read(values));
      set.stop();
      std::uint64_t again[2];
      EXPECT_TRUE(set.read(again));
      EXPECT_GE(again[0], values[0]);
    }
  };
  Counted touching{events, true};
  Counted idle{events, false};
  Thread* const one = team.go(touching);
  Thread* const other = team.go(idle);
  join(*one);
  join(*other);
  EXPECT_GE(touching.values[1], 20U * 64U);
  EXPECT_LT(idle.values[1], 20U * 64U) << "what the other one did, on the same kernel threads";
  EXPECT_GT(touching.values[0], idle.values[0]);
  EXPECT_EQ(touching.set.counted(), nullptr);
  touching.set.reset();
  std::uint64_t none[2] = {1, 1};
  EXPECT_TRUE(touching.set.read(none));
  EXPECT_EQ(none[0] + none[1], 0U);
}

/// A thread that was preempted, goes on an errand (errand.cc) and is back in time: what it counts
/// there is its own too, not that of the kernel thread that has its worker.
TEST(Counters, OnAnErrandTheyAreThoseOfTheThread) {
  const Event events[] = {Event::task_clock};
  if (const Result<> tried = try_event(events[0]); !tried) {
    ASSERT_TRUE(is_forbidden(tried.error())) << tried.error().text;
    // There is nothing to count with: see is_forbidden().
    GTEST_SKIP() << "this kernel, or its container, has no counters for us: " << tried.error().text;
  }
  const TestTeam team{
      1, {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  const std::uint64_t begin = now_ns();
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<int> holders{2};
  std::atomic<int> wrong{0};
  auto counts = [&] {
    CounterSet set{events};
    {
      const RuntimeEntry entry;
      set.start();
    }
    for (int i = 0; i < 20; ++i) {
      pthread_mutex_lock(&mutex);
      for (const std::uint64_t end = now_ns() + 3 * kMs; now_ns() < end;) {  // Preempted here.
        asm volatile("");
      }
      pthread_mutex_unlock(&mutex);
      const RuntimeEntry entry;
      std::uint64_t value = 0;
      EXPECT_TRUE(set.read(&value));
      wrong += value <= now_ns() - begin ? 0 : 1;  // It never had more than all the time.
    }
    const RuntimeEntry entry;
    set.stop();
    --holders;
  };
  auto wants = [&] {  // In the runtime, and asleep for the lock: the ticker sends on errands.
    while (holders.load() != 0) {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
      yield();
    }
  };
  Thread* const threads[] = {team.go(counts, {.is_user_code = true}), team.go(wants),
                             team.go(counts, {.is_user_code = true})};
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Counters, WhatTheMachineDoesNotHaveIsSaidInWords) {
  for (std::size_t i = 0; i < kEventCount; ++i) {
    const Result<> tried = try_event(static_cast<Event>(i));
    if (!tried) {
      EXPECT_NE(tried.error().text.find("counting "), std::string::npos);
      EXPECT_GT(tried.error().text.size(), 40U) << tried.error().text;
    }
  }
}

}  // namespace
}  // namespace sterna::threads
