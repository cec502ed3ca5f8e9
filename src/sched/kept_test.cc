// Threads that one worker keeps for the plan: they are kept, and come when plans change, whatever
// they do at that time.
#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/policies/builtin.h"
#include "sched/scheduler.h"
#include "threads/control/control.h"
#include "threads/scheduler.h"
#include "threads/sync/semaphore.h"
#include "threads/team_fixture.h"

namespace sterna::sched {
namespace {

class KeptThreads : public testing::Test {
 protected:
  void open(const char* machine, const char* policy) {
    topology_ = std::move(topology::Topology::synthetic(machine).value());
    scheduler_ = std::move(Scheduler::open({.topology = topology_.get(),
                                            .workers = topology_->pus(),
                                            .policy = std::move(make_policy(policy).value())})
                               .value());
    team_ = std::make_unique<threads::TestTeam>(topology_->pu_count(),
                                                threads::TeamOptions{.dispatch = scheduler_.get()});
    scheduler_->attach(**team_);
  }
  void insert(Entity& entity) {
    ASSERT_TRUE(scheduler_->engine().insert(scheduler_->root(), entity));
    scheduler_->engine().submit(entity);
  }
  void send(Entity& entity, std::uint32_t pu) {
    scheduler_->engine().update(entity,
                                [&](Entity& its) { its.program_place = topology_->pus()[pu]->id; });
  }
  static std::uint32_t here() { return threads::worker_index(*threads::self()->worker.load()); }

  std::unique_ptr<topology::Topology> topology_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<threads::TestTeam> team_;
};

TEST_F(KeptThreads, AreKeptWhereOneWorkerServesTheirPlace) {
  open("pu:2", "spread");
  Entity entity;
  insert(entity);
  bool is_kept = false;
  std::uint32_t flags = 0;
  auto look = [&] {
    threads::yield();
    is_kept = entity.is_kept();
    flags = threads::self()->flags;
  };
  threads::join(*team_->go(look, {.entity = &entity}));
  EXPECT_TRUE(is_kept);
  EXPECT_EQ(flags & threads::ThreadFlag::managed, 0U);
  EXPECT_FALSE(entity.is_kept());  // It has left the tree.
}

TEST_F(KeptThreads, AreNotKeptWhereSeveralDo) {
  open("pu:2", "flat");
  Entity entity;
  insert(entity);
  bool is_kept = true;
  auto look = [&] { is_kept = entity.is_kept(); };
  threads::join(*team_->go(look, {.entity = &entity}));
  EXPECT_FALSE(is_kept);
}

TEST_F(KeptThreads, GoWhereThePlanSaysFromAnyState) {
  open("pu:3", "spread");
  Entity entity;
  insert(entity);
  threads::Semaphore go;
  threads::Semaphore done;
  std::atomic<bool> has_moved{false};
  std::atomic<bool> is_over{false};
  std::vector<std::uint32_t> seen;
  auto moves = [&] {
    send(entity, 1);  // Running.
    threads::yield();
    seen.push_back(here());
    has_moved = true;
    go.acquire();  // Blocked, meanwhile sent to 2.
    seen.push_back(here());
    done.release();
    go.acquire();
    seen.push_back(here());
  };
  threads::Thread* const thread = team_->go(moves, {.entity = &entity});
  while (!has_moved) {
    threads::sleep_for(100'000);
  }
  threads::sleep_for(10'000'000);
  send(entity, 2);
  go.release();
  done.acquire();
  // Ready behind one that computes on processor 2, until an idle worker fetches it.
  auto computes = [&] {
    go.release();
    send(entity, 0);
    while (!is_over.load()) {
      cpu_pause();
    }
  };
  threads::Thread* const other = team_->go(computes, {.worker = 2, .bound = true});
  threads::join(*thread);
  is_over = true;
  threads::join(*other);
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST_F(KeptThreads, AreThereForIdleWorkersWhosePolicySteals) {
  open("pu:2", "steal");  // All start on processor 0.
  Entity entities[2];
  std::atomic<int> running{0};
  auto meets = [&] {
    running.fetch_add(1);
    while (running.load() != 2) {  // Computes until the other one runs beside it.
      cpu_pause();
    }
  };
  std::vector<threads::Thread*> started;
  for (Entity& entity : entities) {
    insert(entity);
    started.push_back(team_->go(meets, {.entity = &entity}));
  }
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
}

TEST_F(KeptThreads, WaitInSharedQueuesWhileThereArePriorities) {
  open("pu:1", "spread");
  Entity low;
  Entity high;
  insert(low);
  insert(high);
  std::vector<int> order;
  auto first = [&] {
    threads::yield();
    EXPECT_TRUE(low.is_kept());
    auto urgent = [&] {
      EXPECT_FALSE(low.is_kept());
      order.push_back(1);
    };
    threads::Thread* const thread =
        team_->go(urgent, {.priority = kPriorityRealTime, .entity = &high});
    EXPECT_EQ(high.effective_priority(), kPriorityRealTime);  // The thread's is its entity's.
    threads::yield();
    order.push_back(2);
    threads::join(*thread);
    threads::yield();
    EXPECT_TRUE(low.is_kept());
  };
  threads::join(*team_->go(first, {.entity = &low}));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(KeptThreads, NoneIsLostWhilePlansHoldsAndWaitsMeet) {
  open("pu:4", "spread");
  constexpr int kThreads = 24;
  constexpr int kTurns = threads::kSanitizedTests ? 200 : 2000;
  std::vector<Entity> entities(kThreads);
  std::vector<threads::Thread*> started;
  threads::Semaphore tokens{kThreads / 2};
  std::atomic<int> open_threads{kThreads};
  auto works = [&] {
    for (int i = 0; i < kTurns; ++i) {
      tokens.acquire();
      threads::yield();
      tokens.release();
    }
    open_threads.fetch_sub(1);
  };
  for (Entity& entity : entities) {
    insert(entity);
    started.push_back(team_->go(works, {.entity = &entity}));
  }
  Random random{7};
  while (open_threads.load() != 0) {
    const std::size_t one = random.below(kThreads);
    if (random.below(3) != 0) {
      send(entities[one], static_cast<std::uint32_t>(random.below(4)));
    } else if (open_threads.load() == kThreads) {
      threads::Thread* const held[] = {started[one]};
      (void)threads::hold(held, kNever);
      send(entities[one], static_cast<std::uint32_t>(random.below(4)));
      threads::unhold(*started[one]);
    }
  }
  for (threads::Thread* const thread : started) {
    threads::join(*thread);
  }
  EXPECT_TRUE(scheduler_->root().empty());
}

}  // namespace
}  // namespace sterna::sched
