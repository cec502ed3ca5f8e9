// The ticker goes on whatever those wait for whom it lets go on: a preempted thread may have a lock
// of malloc, which whoever starts a kernel thread needs, and whoever polls; and the owner of a
// queue may be inside for long. What would hang is the method.
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "threads/carriers/border.h"
#include "threads/carriers/carrier.h"
#include "threads/control/control.h"
#include "threads/control/switch_hook.h"
#include "threads/preemption/computing.h"
#include "threads/preemption/preempt.h"
#include "threads/team_fixture.h"
#include "threads/worker.h"

namespace {

// Stands for a lock of malloc, which pthread_create takes for the stack of a thread.
pthread_mutex_t arena = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> is_arena_taken{false};
// Stands for a system that has no kernel threads left.
std::atomic<bool> is_refused{false};
std::atomic<int> refusals{0};

}  // namespace

// A sanitizer has its own.
#if !defined(STERNA_SANITIZED)
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*function)(void*), void* argument) {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (is_arena_taken.load()) {
    pthread_mutex_lock(&arena);
    pthread_mutex_unlock(&arena);
  }
  if (is_refused.load()) {
    refusals.fetch_add(1);
    return EAGAIN;
  }
  return real(thread, attributes, function, argument);
}
#endif

namespace sterna::threads {
namespace {

TEST(PreemptStuck, WhoHasALockThatNewKernelThreadsNeedGoesOn) {
  if (kSanitized) {
    // The test stands in for a lock inside pthread_create, which it replaces (above); a sanitizer
    // replaces the same function and finds its threads there. What is left would test nothing.
    GTEST_SKIP() << "a sanitizer has replaced pthread_create, as this test would";
  }
  TestTeam team{1,
                {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<int> begun{0};
  std::atomic<bool> is_given_back{false};
  auto holds = [&] {
    pthread_mutex_lock(&arena);
    is_arena_taken = true;
    compute_until([&] { return begun.load() > 0; });  // It is preempted.
    is_arena_taken = false;
    pthread_mutex_unlock(&arena);
    is_given_back = true;
  };
  auto computes = [&] {
    ++begun;
    compute_until([&] { return is_given_back.load(); });
  };
  std::vector<Thread*> threads{team.go(holds, kUser)};
  for (int i = 0; i < 8; ++i) {  // More than kernel threads that are ready for them.
    threads.push_back(team.go(computes, kUser));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(begun.load(), 8);
}

TEST(PreemptStuck, AQueueWhoseOwnerStaysInsideHoldsUpNoOther) {
  TestTeam team{2,
                {.steal = false, .tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  struct {
    std::atomic<bool> is_inside{false};
    std::atomic<bool> is_over{false};
  } shared;
  // `before` of a switch runs with the queue locked.
  SwitchHook hook{.before =
                      [](void* its) {
                        auto& state = *static_cast<decltype(shared)*>(its);
                        state.is_inside = true;
                        compute_until([&] { return state.is_over.load(); });
                      },
                  .argument = &shared};
  auto stays = [&] {
    const RuntimeEntry entry;
    add_switch_hook(hook);
    while (!shared.is_inside.load()) {
      yield();
    }
    (void)remove_switch_hook(hook);
  };
  auto gives_way = [&] {
    while (!shared.is_inside.load()) {
      yield();
    }
  };
  auto computes = [&] { compute_until([&] { return shared.is_over.load(); }); };
  auto ends_it = [&] { shared.is_over = true; };
  std::vector<Thread*> threads{team.go(stays, {.worker = 0, .bound = true, .is_user_code = true}),
                               team.go(gives_way, {.worker = 0, .bound = true})};
  while (!shared.is_inside.load()) {
    sleep_for(kMs);
  }
  threads.push_back(team.go(gives_way, {.worker = 0, .bound = true}));  // Waits there.
  threads.push_back(team.go(computes, {.worker = 1, .bound = true, .is_user_code = true}));
  sleep_for(5 * kMs);
  threads.push_back(team.go(ends_it, {.worker = 1, .bound = true, .is_user_code = true}));
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_TRUE(shared.is_over.load());
}

TEST(Spares, AreAskedForEverMoreRarelyWhileTheSystemRefusesThem) {
  if (kSanitized) {
    // The test lets pthread_create fail, by the replacement above; a sanitizer has its own there,
    // which would never fail.
    GTEST_SKIP() << "pthread_create is the sanitizer's own";
  }
  const TestTeam team{1, {.tick_ns = 1'000 * kMs, .take_over = true}};
  TeamState& state = *team->state();
  Carrier* const taken = take_spare(state);  // One less than it wants.
  ASSERT_NE(taken, nullptr);
  const auto ask = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ask_for_spares(state);
      while (state.is_making.load() != 0) {
        std::this_thread::yield();
      }
    }
  };
  const auto carriers = [&] {
    const SpinGuard guard{state.carriers_lock};
    return state.carriers.size();
  };
  const std::size_t before = carriers();
  refusals = 0;
  is_refused = true;
  ask(2'000);
  is_refused = false;
  EXPECT_GT(refusals.load(), 3);
  EXPECT_LT(refusals.load(), 30);
  EXPECT_LE(carriers(), before + 1) << "each attempt takes the place of the one that failed";
  ask(300);
  Carrier* const made[] = {take_spare(state), take_spare(state), take_spare(state)};
  for (Carrier* const carrier : made) {
    EXPECT_NE(carrier, nullptr) << "it is made once the system lets us";
    if (carrier != nullptr) {
      carrier->end();
    }
  }
  taken->end();
}

/// A poll that waits for what a thread has that was preempted.
class WaitingHook final : public IdleHook {
 public:
  std::uint32_t poll(SchedulingPoint point) noexcept override {
    if (point == SchedulingPoint::tick) {
      has_waited = true;
      compute_until([&] { return is_over.load(); });
    }
    return 0;
  }
  bool sleep(std::uint64_t, const std::atomic<std::uint32_t>&, std::uint32_t) noexcept override {
    return false;
  }
  void wake() noexcept override {}

  std::atomic<bool> has_waited{false};
  std::atomic<bool> is_over{false};
};

TEST(PreemptStuck, APollThatWaitsHoldsUpNoPreemption) {
  WaitingHook hook;
  TestTeam team{1,
                {.steal = false,
                 .tick_ns = kMs,
                 .preempt = PreemptMode::slice,
                 .slice_ns = kMs,
                 .idle_hook = &hook}};
  auto computes = [&] { compute_until([&] { return hook.is_over.load(); }); };
  auto ends_it = [&] {
    compute_until([&] { return hook.has_waited.load(); });
    hook.is_over = true;
  };
  Thread* const first = team.go(computes, kUser);
  Thread* const second = team.go(computes, kUser);
  while (!hook.has_waited.load()) {
    sleep_for(kMs);
  }
  Thread* const third = team.go(ends_it, kUser);
  for (Thread* const thread : {first, second, third}) {
    join(*thread);
  }
}

}  // namespace
}  // namespace sterna::threads
