// Sources that are polled near a place: who polls one when, with places of a machine that is not
// there (two NUMA nodes of two processors, a worker on each) and a clock that is driven; then teams
// whose workers of the place sleep, compute, are disabled or do not exist.
#include "progress/bound_source.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "progress/completion.h"
#include "threads/team_fixture.h"
#include "threads/this_thread.h"
#include "threads/worker.h"
#include "topology/topology.h"

namespace sterna::progress {
namespace {

using threads::SchedulingPoint;

constexpr std::uint64_t kAttendedNs = 20'000;  // ProgressOptions::switch_budget_ns.
constexpr std::uint64_t kNodeCount = 2;
constexpr std::uint32_t kAway = 99;  // A processor of no place.

std::vector<topology::CpuSet> numa_nodes() {
  auto machine = topology::Topology::synthetic("node:2 core:2 pu:1");
  std::vector<topology::CpuSet> nodes;
  for (std::uint32_t i = 0; i < kNodeCount; ++i) {
    nodes.push_back(machine.value()->find(topology::PlaceKind::numa, i)->cpus);
  }
  return nodes;
}

/// Has events as long as it is fed; notes who polls, and may end what waits.
struct Fed final : Source {
  std::atomic<std::uint32_t> food{0};
  std::atomic<std::uint32_t> polls{0};
  std::array<std::atomic<std::uint32_t>, 4> polls_of{};  // By worker.
  std::atomic<bool> has_something{false};                // For prepare_sleep().
  Completion* ends = nullptr;

  std::uint32_t poll() noexcept override {
    polls.fetch_add(1);
    if (const threads::Worker* const here = threads::this_worker(); here != nullptr) {
      polls_of[here->index].fetch_add(1);
    }
    std::uint32_t left = food.load();
    while (left != 0 && !food.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 1 && ends != nullptr) {
      ends->complete();
    }
    return left != 0 ? 1 : 0;
  }
  bool sight(std::uint32_t) noexcept override { return food.load() != 0; }
  bool prepare_sleep() noexcept override { return food.load() == 0 && !has_something.load(); }
};

// Where the test's own kernel thread is; workers are where their number says.
std::atomic<std::uint32_t> processor_of_test{0};

std::uint32_t literal_processor(const threads::Worker* worker) noexcept {
  return worker != nullptr ? worker->index : processor_of_test.load();
}

class BoundSourceTest : public testing::Test {
 protected:
  void SetUp() override { EXPECT_EQ(numa_nodes()[1], (topology::CpuSet{2, 3})); }
  void TearDown() override {
    if (bound != nullptr) {
      progress->remove(*bound);
    }
  }
  void open(PollPlaces where, Clock* clock) {
    progress = std::move(Progress::open({.clock = clock}).value());
    bound = std::make_unique<BoundSource>(*progress, source, std::move(where), literal_processor);
    ASSERT_TRUE(progress->add(*bound));
  }
  /// A round by a kernel thread on that processor; whether the source was polled.
  bool polls(std::uint32_t processor, SchedulingPoint point = SchedulingPoint::idle) {
    processor_of_test = processor;
    const std::uint32_t before = source.polls;
    (void)progress->poll(point);
    return source.polls != before;
  }

  ManualClock time;
  Fed source;
  std::unique_ptr<Progress> progress;
  std::unique_ptr<BoundSource> bound;
};

TEST_F(BoundSourceTest, IsPolledByThoseOfItsPlaceWhileTheyDo) {
  open({.places = {numa_nodes()[1]}}, &time);
  time.advance(1'000'000);
  EXPECT_TRUE(polls(0)) << "nobody of its place has polled yet";
  EXPECT_TRUE(polls(2));
  EXPECT_FALSE(polls(0));
  EXPECT_FALSE(polls(1));
  EXPECT_FALSE(polls(kAway));
  EXPECT_FALSE(polls(0, SchedulingPoint::enter));
  EXPECT_TRUE(polls(3));
  EXPECT_TRUE(polls(2, SchedulingPoint::enter));
  time.advance(kAttendedNs - 1);
  EXPECT_FALSE(polls(0));
  time.advance(1);
  EXPECT_TRUE(polls(0)) << "the place has left it alone";
  EXPECT_TRUE(polls(1)) << "and until one of it polls anybody does";
  EXPECT_TRUE(polls(2));
  EXPECT_FALSE(polls(1));
}

TEST_F(BoundSourceTest, IsPolledByAnybodyWhereThatMayNotBeLeftOut) {
  open({.places = {numa_nodes()[1]}}, &time);
  time.advance(1'000'000);
  EXPECT_TRUE(polls(2));
  EXPECT_TRUE(polls(0, SchedulingPoint::forced));
  const std::uint32_t before = source.polls;
  (void)progress->poll_in_turn();
  EXPECT_EQ(source.polls, before + 1);
  EXPECT_FALSE(polls(0));
  EXPECT_FALSE(polls(0, SchedulingPoint::tick)) << "the first one looks whether others poll";
  EXPECT_TRUE(polls(0, SchedulingPoint::tick));
  EXPECT_FALSE(polls(0));
}

TEST_F(BoundSourceTest, IsPolledByWhoeverWouldSleepOrHasSlept) {
  open({.places = {numa_nodes()[1]}}, &time);
  time.advance(1'000'000);
  EXPECT_TRUE(polls(2));
  const std::atomic<std::uint32_t> word{0};
  source.has_something = true;
  EXPECT_TRUE(progress->sleep(kNever, word, 0)) << "it does not sleep: there is something";
  EXPECT_EQ(progress->counters().sleeps, 0U);
  EXPECT_TRUE(polls(0));
  EXPECT_FALSE(polls(0));
  source.has_something = false;
  progress->wake();
  EXPECT_TRUE(progress->sleep(kNever, word, 0));
  EXPECT_EQ(progress->counters().sleeps, 1U);
  EXPECT_TRUE(polls(0));
  EXPECT_FALSE(polls(0));
  (void)progress->hear();
  EXPECT_TRUE(polls(0)) << "who waits for the descriptor polls next";
  EXPECT_FALSE(polls(0));
}

TEST_F(BoundSourceTest, IsNotLookedAtByWhoPassesItOver) {
  open({.places = {numa_nodes()[1]}}, &time);
  time.advance(1'000'000);
  source.food = 1;
  EXPECT_TRUE(polls(2)) << "events have come from there";
  source.food = 1;
  EXPECT_FALSE(polls(0)) << "nor where the last event came from";
  EXPECT_EQ(source.food, 1U);
  EXPECT_TRUE(polls(3));
  EXPECT_EQ(source.food, 0U);
}

TEST_F(BoundSourceTest, FollowsThreadsThatCall) {
  open({.places = numa_nodes(), .follows_callers = true}, &time);
  time.advance(1'000'000);
  // A kernel thread without a worker that waits is one that calls: those of this test are.
  EXPECT_TRUE(polls(0, SchedulingPoint::enter));
  EXPECT_FALSE(polls(2, SchedulingPoint::switching)) << "too early for a switch";
  EXPECT_TRUE(polls(2, SchedulingPoint::enter)) << "who calls is where the application is";
  EXPECT_FALSE(polls(kAway, SchedulingPoint::enter)) << "it is nowhere";
  EXPECT_TRUE(polls(3));
  EXPECT_TRUE(polls(1));
}

/// As numbers of workers: those of the second node are 2 and 3.
class BoundSourceTeamTest : public BoundSourceTest {
 protected:
  void open_team(PollPlaces where, std::uint32_t worker_count) {
    open(std::move(where), nullptr);
    team = std::make_unique<threads::TestTeam>(worker_count,
                                               threads::TeamOptions{.idle_hook = progress.get()});
  }
  void TearDown() override {
    team.reset();
    BoundSourceTest::TearDown();
  }
  /// Threads on these workers that compute, without a call, until they are let go.
  void occupy(std::uint32_t first, std::uint32_t count) {
    static constexpr auto kCompute = [](void* its) {
      auto& self = *static_cast<BoundSourceTeamTest*>(its);
      self.computing.fetch_add(1);
      while (!self.is_over.load()) {
      }
    };
    for (std::uint32_t i = first; i < first + count; ++i) {
      auto thread = (*team)->spawn({.worker = i, .bound = true}, kCompute, this);
      ASSERT_TRUE(thread);
      occupiers.push_back(thread.value());
    }
    while (computing != occupiers.size()) {
      std::this_thread::yield();
    }
  }
  void let_go() {
    is_over = true;
    for (threads::Thread* const thread : occupiers) {
      threads::join(*thread);
    }
  }
  /// A thread waits for what the source has after so many polls.
  void wait_for(std::uint32_t food) {
    Completion done;
    source.ends = &done;
    source.food = food;
    progress->wake();
    team->run([&] { done.wait(*progress); });
  }

  std::unique_ptr<threads::TestTeam> team;
  std::vector<threads::Thread*> occupiers;
  std::atomic<std::uint32_t> computing{0};
  std::atomic<bool> is_over{false};
};

TEST_F(BoundSourceTeamTest, WorkersOfThePlaceGetUpForIt) {
  open_team({.places = {numa_nodes()[1]}}, 4);
  // Whoever finds something while they sleep wakes one of them, which polls.
  while (source.polls_of[2] + source.polls_of[3] == 0 || source.food != 0) {
    source.food = 100;
    progress->wake();
    std::this_thread::yield();
    if (source.polls_of[2] + source.polls_of[3] != 0) {
      source.food = 0;
    }
  }
}

TEST_F(BoundSourceTeamTest, OthersPollWhileAllOfThePlaceCompute) {
  open_team({.places = {numa_nodes()[1]}}, 4);
  occupy(2, 2);
  const std::uint32_t before = source.polls_of[2] + source.polls_of[3];
  wait_for(50);
  EXPECT_EQ(source.polls_of[2] + source.polls_of[3], before);
  let_go();
}

TEST_F(BoundSourceTeamTest, OthersPollWhereThePlaceHasNoWorker) {
  for (const std::uint32_t workers : {1U, 2U}) {
    open_team({.places = {numa_nodes()[1]}}, workers);
    wait_for(50);
    TearDown();
    bound.reset();
  }
}

TEST_F(BoundSourceTeamTest, OthersPollWhereThePlaceHasNoEnabledWorker) {
  open_team({.places = {numa_nodes()[1]}}, 4);
  ASSERT_TRUE((*team)->disable(2));
  ASSERT_TRUE((*team)->disable(3));
  wait_for(50);
  (*team)->enable(3);
  wait_for(50);
  (*team)->enable(2);
}

TEST_F(BoundSourceTeamTest, ThatFollowsItsCallersIsPolledWhereverTheyGo) {
  open_team({.places = numa_nodes(), .follows_callers = true}, 4);
  for (std::uint32_t i = 0; i < 8; ++i) {
    Completion done;
    source.ends = &done;
    struct Waiter {
      Completion& done;
      Progress& progress;
      Fed& source;
    } waiter{done, *progress, source};
    auto thread = (*team)->spawn(
        {.worker = i % 4, .bound = true},
        [](void* its) {
          auto& self = *static_cast<Waiter*>(its);
          self.source.food = 20;
          self.done.wait(self.progress);
        },
        &waiter);
    ASSERT_TRUE(thread);
    threads::join(*thread.value());
  }
}

TEST(BoundSourceProcessorTest, IsThatOfTheWorkerOrWhereTheCallerIs) {
  auto own = topology::current_thread_cpus();
  ASSERT_TRUE(own);
  EXPECT_TRUE(own.value().has(BoundSource::processor_of(nullptr)));
  const std::uint32_t first = own.value().list().front();
  const std::array processors{first};
  threads::TestTeam team{1, {.processors = processors}};
  team.run([&] {
    EXPECT_EQ(BoundSource::processor_of(threads::this_worker()), first);
    EXPECT_EQ(BoundSource::processor_of(nullptr), BoundSource::kNoProcessor) << "not the caller";
  });
}

}  // namespace
}  // namespace sterna::progress
