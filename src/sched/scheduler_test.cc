// Threads in bubbles on real workers: all run, once, where they were planned, and nothing is lost
// when plans change underway.
#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/policies/builtin.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::sched {
namespace {

class SchedulerTest : public testing::TestWithParam<const char*> {
 protected:
  void open(bool steal = true) {
    auto topology = topology::Topology::synthetic("node:2 pu:2");
    ASSERT_TRUE(topology);
    topology_ = std::move(topology.value());
    auto scheduler = Scheduler::open({.topology = topology_.get(),
                                      .workers = topology_->pus(),
                                      .policy = std::move(make_policy(GetParam()).value())});
    ASSERT_TRUE(scheduler);
    scheduler_ = std::move(scheduler.value());
    team_ = std::make_unique<threads::TestTeam>(
        4U, threads::TeamOptions{.steal = steal, .dispatch = scheduler_.get()});
    scheduler_->attach(**team_);
  }

  void insert(Bubble& holder, Entity& entity) {
    ASSERT_TRUE(scheduler_->engine().insert(holder, entity));
  }

  std::unique_ptr<topology::Topology> topology_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<threads::TestTeam> team_;
};
INSTANTIATE_TEST_SUITE_P(Policies, SchedulerTest,
                         testing::Values("flat", "spread", "burst", "gang", "steal", "cache",
                                         "fallback(gang,steal)"),
                         [](const auto& its) {
                           std::string name = its.param;
                           std::erase_if(name, [](char c) { return c < 'a' || c > 'z'; });
                           return name;
                         });

TEST_P(SchedulerTest, ThreadsOfBubblesAllRunWhilePlansChange) {
  for (const bool steal : {true, false}) {
    open(steal);
    constexpr int kThreads = 40;
    std::atomic<int> turns{0};
    auto function = [&] {
      for (int i = 0; i < 50; ++i) {
        turns.fetch_add(1);
        threads::yield();
      }
    };
    Bubble bubbles[2];
    for (Bubble& bubble : bubbles) {
      insert(scheduler_->root(), bubble);
    }
    std::vector<Entity> entities(kThreads);
    std::vector<threads::Thread*> started;
    for (int i = 0; i < kThreads; ++i) {
      insert(bubbles[i % 2], entities[i]);
      started.push_back(team_->go(function, {.entity = &entities[i]}));
      if (i % 8 == 0) {
        scheduler_->engine().shake();
      }
    }
    scheduler_->engine().shake();
    for (threads::Thread* const thread : started) {
      threads::join(*thread);
    }
    EXPECT_EQ(turns.load(), kThreads * 50);
    for (Bubble& bubble : bubbles) {
      EXPECT_TRUE(bubble.empty());
      scheduler_->engine().remove(bubble);
    }
    team_.reset();
    scheduler_.reset();
  }
}

TEST_P(SchedulerTest, ParkedThreadsWakeAtTheirPlannedPlace) {
  open(false);
  threads::Semaphore go;
  std::atomic<int> elsewhere{0};
  struct Member {
    threads::Semaphore* go;
    Entity* entity;
    Scheduler* scheduler;
    const topology::Topology* topology;
    std::atomic<int>* elsewhere;
    bool is_elsewhere() const {
      const std::uint32_t target = entity->target_place();
      const topology::Place& actual = *topology->places()[entity->actual_place()];
      return target != kAside && &topology::common_ancestor(*topology->places()[target], actual) !=
                                     topology->places()[target];
    }
    // A plan that was changed since the thread was taken counts from its next wake-up on.
    void operator()() const {
      go->acquire();
      for (int wake = 0; is_elsewhere(); ++wake) {
        if (wake == 3) {
          elsewhere->fetch_add(1);
          return;
        }
        threads::sleep_for(1'000'000);
      }
    }
  };
  std::vector<Entity> entities(8);
  std::vector<Member> members;
  std::vector<threads::Thread*> started;
  for (Entity& entity : entities) {
    insert(scheduler_->root(), entity);
    members.push_back({&go, &entity, scheduler_.get(), topology_.get(), &elsewhere});
  }
  for (std::size_t i = 0; i < entities.size(); ++i) {
    started.push_back(team_->go(members[i], {.entity = &entities[i]}));
  }
  threads::sleep_for(20'000'000);
  scheduler_->engine().shake();
  go.release(8);
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
  EXPECT_EQ(elsewhere.load(), 0);
}

TEST_P(SchedulerTest, WorkersComeAndGoUnderLoad) {
  open();
  constexpr int kThreads = 40;
  constexpr int kTurns = 400;
  std::atomic<int> turns{0};
  std::atomic<int> ended{0};
  auto function = [&] {
    for (int i = 0; i < kTurns; ++i) {
      turns.fetch_add(1);
      threads::yield();
      if (i % 100 == 0) {
        threads::sleep_for(100'000);
      }
    }
    ended.fetch_add(1);
  };
  Bubble bubbles[4];
  std::vector<Entity> entities(kThreads);
  for (int i = 0; i < 4; ++i) {
    insert(scheduler_->root(), bubbles[i]);
  }
  for (int i = 0; i < kThreads; ++i) {
    entities[i].program_place = i % 10 == 0 ? topology_->pus()[i % 4]->id : kNoPlace;
    insert(bubbles[i % 4], entities[i]);
  }
  for (Bubble& bubble : bubbles) {
    scheduler_->engine().submit(bubble);
  }
  std::vector<threads::Thread*> started;
  for (Entity& entity : entities) {
    started.push_back(team_->go(function, {.entity = &entity}));
  }
  for (std::uint32_t i = 0; ended.load() < kThreads; ++i) {
    // One or two are away; the one after the other returns.
    EXPECT_TRUE(scheduler_->enable_worker(i % 4, false));
    EXPECT_TRUE(scheduler_->enable_worker((i + 3) % 4, true));
    threads::sleep_for(200'000);
  }
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
  EXPECT_EQ(turns.load(), kThreads * kTurns);
  for (Bubble& bubble : bubbles) {
    scheduler_->engine().remove(bubble);
  }
}

TEST_P(SchedulerTest, PrivateThreadsDoNotStarveThoseInBubbles) {
  open(true);
  std::atomic<bool> is_over{false};
  auto spins = [&] {
    while (!is_over.load()) {
      threads::yield();
    }
  };
  std::vector<threads::Thread*> started;
  for (std::uint32_t i = 0; i < 8; ++i) {
    started.push_back(team_->go(spins, {.worker = i % 4, .bound = true}));
  }
  auto ends = [&] { is_over.store(true); };
  Entity entity;
  insert(scheduler_->root(), entity);
  started.push_back(team_->go(ends, {.entity = &entity}));
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
}

TEST(SchedulerOfOneWorker, ThreadThatWakesAsideIsNotForgotten) {
  auto topology = topology::Topology::synthetic("pu:1");
  ASSERT_TRUE(topology);
  auto scheduler = Scheduler::open({.topology = topology.value().get(),
                                    .workers = topology.value()->pus(),
                                    .policy = std::move(make_policy("gang").value())});
  ASSERT_TRUE(scheduler);
  Scheduler& its = *scheduler.value();
  const threads::TestTeam team{1, {.dispatch = &its}};
  its.attach(*team);
  Bubble bubbles[2];
  Entity entities[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(its.engine().insert(its.root(), bubbles[i]));
    ASSERT_TRUE(its.engine().insert(bubbles[i], entities[i]));
    its.engine().submit(bubbles[i]);
  }
  // While the first sleeps the second one gets the machine, and blocks: the timer finds the first
  // aside and the worker about to sleep.
  threads::Semaphore semaphore;
  auto first = [&] {
    threads::sleep_for(20'000'000);
    semaphore.release();
  };
  auto second = [&] { semaphore.acquire(); };
  threads::Thread* const started[] = {team.go(first, {.entity = &entities[0]}),
                                      team.go(second, {.entity = &entities[1]})};
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
  for (Bubble& bubble : bubbles) {
    its.engine().remove(bubble);
  }
}

TEST(SchedulerThatPreempts, GangsThatComputeHaveTheirTurns) {
  auto topology = topology::Topology::synthetic("pu:1");
  ASSERT_TRUE(topology);
  auto scheduler = Scheduler::open({.topology = topology.value().get(),
                                    .workers = topology.value()->pus(),
                                    .policy = std::move(make_policy("gang(slice=2)").value())});
  ASSERT_TRUE(scheduler);
  Scheduler& its = *scheduler.value();
  // In this mode nobody leaves because of an equal one, but when the policy wants it.
  const threads::TestTeam team{
      1, {.tick_ns = 1'000'000, .preempt = threads::PreemptMode::communication, .dispatch = &its}};
  its.attach(*team);
  Bubble bubbles[2];
  Entity entities[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(its.engine().insert(its.root(), bubbles[i]));
    ASSERT_TRUE(its.engine().insert(bubbles[i], entities[i]));
    its.engine().submit(bubbles[i]);
  }
  // Each computes until the other one has had its turn.
  std::atomic<int> turn{0};
  std::atomic<bool> is_late{false};
  const std::uint64_t deadline_ns = sterna::now_ns() + 100'000'000'000;
  auto plays = [&](int mine) {
    return [&, mine] {
      for (int round = 0; round < 3; ++round) {
        while (turn.load() % 2 != mine && !is_late.load()) {
          is_late.store(sterna::now_ns() > deadline_ns);
        }
        turn.fetch_add(1);
      }
    };
  };
  auto first = plays(0);
  auto second = plays(1);
  threads::Thread* const started[] = {
      team.go(first, {.is_user_code = true, .entity = &entities[0]}),
      team.go(second, {.is_user_code = true, .entity = &entities[1]})};
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
  EXPECT_FALSE(is_late.load());
  EXPECT_EQ(turn.load(), 6);
  for (Bubble& bubble : bubbles) {
    its.engine().remove(bubble);
  }
}

}  // namespace
}  // namespace sterna::sched
