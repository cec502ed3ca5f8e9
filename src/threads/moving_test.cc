// What migration asks of a team: threads in memory of the caller (adopt), that leave one team with
// their bytes (freeze, forget) and go on in another one at the same address (reinstall).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/thread_pointer.h"
#include "threads/life/life.h"
#include "threads/observation/observe.h"
#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

class MovingTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  MovingTest() {
    auto opened = Team::open({.worker_count = GetParam()});
    check(opened.has_value(), "the second team opens");
    other = std::move(opened.value());
    auto acquired = here.space().acquire_stack(kDefaultStackBytes * kStackFactor);
    check(acquired.has_value(), "there is a stack");
    slot = acquired.value();
  }
  ~MovingTest() override { here.space().release_stack(slot); }

  template <typename Function>
  Thread* adopt(Function& function, const ThreadOptions& options = {}) {
    const StackRegion region{reinterpret_cast<std::byte*>(slot.stack_low()),
                             slot.stack_top() - slot.stack_low(),
                             reinterpret_cast<Thread*>(slot.descriptor())};
    return here->adopt(
        region, options, [](void* callable) { (*static_cast<Function*>(callable))(); }, &function);
  }

  TestTeam here{GetParam()};
  std::unique_ptr<Team> other;
  memory::StackSlot slot;
};
INSTANTIATE_TEST_SUITE_P(Workers, MovingTest, testing::Values(1, 2, 4));

TEST_P(MovingTest, AdoptedThreadRunsWhenStartedAndItsMemoryStays) {
  int owner = 0;
  std::atomic<Thread*> seen{nullptr};
  auto function = [&] { seen.store(self()); };
  Thread* const thread = adopt(function, {.name = "rank 7", .owner = &owner});
  EXPECT_EQ(here->live_thread_count(), 1U);
  EXPECT_EQ(seen.load(), nullptr);
  here->start(*thread);
  join(*thread);
  EXPECT_EQ(seen.load(), thread);
  EXPECT_EQ(here->live_thread_count(), 0U);
  EXPECT_EQ(thread->owner, &owner);  // Its memory is ours still.
  EXPECT_STREQ(thread->name, "rank 7");
}

TEST_P(MovingTest, SameMemoryIsAdoptedAgain) {
  int runs = 0;
  auto function = [&] { ++runs; };
  for (int i = 1; i <= 20; ++i) {
    Thread* const thread = adopt(function);
    here->start(*thread);
    join(*thread);
    EXPECT_EQ(runs, i);
  }
}

// What the join does after that, a sanitizer sees.
TEST_P(MovingTest, MemoryIsAdoptedAgainAsSoonAsTheJoinOfAnotherOneHasLeftIt) {
  constexpr int kAdoptions = 50;
  std::atomic<Thread*> handed{nullptr};
  auto function = [] {};
  std::thread joiner{[&] {
    for (int i = 0; i < kAdoptions; ++i) {
      Thread* thread = nullptr;
      while ((thread = handed.exchange(nullptr)) == nullptr) {
        std::this_thread::yield();
      }
      join(*thread);
    }
  }};
  for (int i = 0; i < kAdoptions; ++i) {
    Thread* const thread = adopt(function);
    here->start(*thread);
    handed = thread;
    while (thread->joiner.load(std::memory_order_acquire) != Joined::reaped) {
      std::this_thread::yield();
    }
  }
  joiner.join();
  EXPECT_EQ(here->live_thread_count(), 0U);
}

TEST_P(MovingTest, ThreadPointerOfTheWorkerIsThatOfItsKernelThread) {
  std::atomic<int> wrong{0};
  auto function = [&] {
    for (int i = 0; i < 100; ++i) {
      wrong += worker_thread_pointer() != reinterpret_cast<void*>(thread_pointer()) ? 1 : 0;
      yield();
    }
  };
  std::vector<Thread*> threads;
  for (int i = 0; i < 16; ++i) {
    threads.push_back(here.go(function));
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(wrong.load(), 0);
}

/// The bytes of a slot while no node has the thread.
struct Journey {
  Team* to;
  std::byte* base;
  std::size_t bytes;
  std::vector<std::byte> copy;
  std::atomic<Thread*> arrived{nullptr};
};

/// Runs off the thread's stack.
void pack(Thread& thread, void* argument) {
  auto& journey = *static_cast<Journey*>(argument);
  Team& from = *thread.team;
  from.forget(thread);
  if constexpr (!kSanitized) {  // A copy of a stack breaks their rules.
    journey.copy.assign(journey.base, journey.base + journey.bytes);
    std::memset(journey.base, 0xa5, journey.bytes);
  }
  journey.arrived.store(&thread, std::memory_order_release);
}

TEST_P(MovingTest, FrozenThreadGoesOnInAnotherTeamFromACopyOfItsBytes) {
  constexpr int kMoves = 20;
  Journey journey{.to = nullptr,
                  .base = reinterpret_cast<std::byte*>(slot.stack_low()),
                  .bytes = slot.stack_top() - slot.stack_low(),
                  .copy = {}};
  std::atomic<int> wrong{0};
  auto function = [&] {
    volatile long local = 1;
    Team* const teams[] = {&*here, other.get()};
    for (int move = 0; move < kMoves; ++move) {
      wrong += self()->team == teams[move % 2] ? 0 : 1;
      journey.to = teams[(move + 1) % 2];
      freeze(pack, &journey);
      wrong += this_worker() != nullptr && local == move + 1 ? 0 : 1;
      local = local + 1;
      yield();
    }
  };
  Thread* const thread = adopt(function);
  ASSERT_GE(reinterpret_cast<std::byte*>(thread), journey.base);
  journey.bytes =
      std::max(journey.bytes,
               static_cast<std::size_t>(reinterpret_cast<std::byte*>(thread + 1) - journey.base));
  here->start(*thread);
  for (int move = 0; move < kMoves; ++move) {
    while (journey.arrived.load(std::memory_order_acquire) == nullptr) {
      yield();
    }
    journey.arrived.store(nullptr, std::memory_order_relaxed);
    EXPECT_EQ(here->live_thread_count() + other->live_thread_count(), 0U);
    if constexpr (!kSanitized) {
      std::memcpy(journey.base, journey.copy.data(), journey.bytes);
    }
    // What others look at before it runs here is of this team, or nothing.
    journey.to->take_over(*thread);
    EXPECT_EQ(thread->team, journey.to);
    EXPECT_EQ(thread->worker.load(), nullptr);
    EXPECT_FALSE(is_taking_its_turn(*thread));
    EXPECT_EQ(observe_worker(*thread), 0U);
    EXPECT_EQ(journey.to->reinstall(thread), thread);
    // It may have left again, but only for the place where nobody has it.
    EXPECT_LE(here->live_thread_count() + other->live_thread_count(), 1U);
  }
  join(*thread);
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(here->live_thread_count() + other->live_thread_count(), 0U);
}

}  // namespace
}  // namespace sterna::threads
