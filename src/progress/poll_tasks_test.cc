// Functions polled with the network: at the points they ask for, once or for ever, taken out at any
// moment, and for workers that sleep.
#include "progress/poll_tasks.h"

#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "threads/team_fixture.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::progress {
namespace {

using threads::SchedulingPoint;

struct Counted : PollTask {
  std::atomic<std::uint32_t> calls{0};
  Counted(std::uint32_t at, bool repeats) {
    function = [](void* its) {
      return static_cast<Counted*>(its)->calls.fetch_add(1) == 0 ? 1U : 0U;
    };
    argument = this;
    points = at;
    is_repeated = repeats;
  }
};

class PollTasksTest : public testing::Test {
 protected:
  std::unique_ptr<Progress> progress = std::move(Progress::open().value());
  std::unique_ptr<PollTasks> tasks = std::move(PollTasks::open(*progress).value());
};

TEST_F(PollTasksTest, AreCalledAtTheirPoints) {
  Counted idle{bit_of(SchedulingPoint::idle), true};
  Counted forced{bit_of(SchedulingPoint::forced) | bit_of(SchedulingPoint::enter), true};
  Counted once{bit_of(SchedulingPoint::forced), false};
  EXPECT_TRUE(tasks->add(idle));
  EXPECT_FALSE(tasks->add(idle)) << "it is in already";
  EXPECT_TRUE(tasks->add(forced));
  EXPECT_TRUE(tasks->add(once));
  EXPECT_EQ(progress->poll(SchedulingPoint::idle), 1U);
  EXPECT_EQ(progress->poll(SchedulingPoint::forced), 2U);
  EXPECT_EQ(progress->poll(SchedulingPoint::enter), 0U);
  EXPECT_EQ(idle.calls, 1U);
  EXPECT_EQ(forced.calls, 2U);
  EXPECT_EQ(once.calls, 1U);
  EXPECT_FALSE(tasks->remove(once)) << "it is out after its call";
  EXPECT_TRUE(tasks->remove(idle));
  EXPECT_TRUE(tasks->remove(forced));
  EXPECT_EQ(progress->poll(SchedulingPoint::idle), 0U);
  EXPECT_EQ(idle.calls, 1U);
}

TEST_F(PollTasksTest, FunctionsMayAddAndRemoveAlsoThemselves) {
  struct Own {
    PollTasks* tasks;
    std::array<PollTask, 3> all;
    int calls = 0;
  } own{.tasks = tasks.get(), .all = {}};
  for (PollTask& task : own.all) {
    task.points = bit_of(SchedulingPoint::forced);
    task.argument = &own;
    task.function = [](void* its) {
      auto& self = *static_cast<Own*>(its);
      ++self.calls;
      for (PollTask& one : self.all) {  // All that are left, the caller among them.
        (void)self.tasks->remove(one);
      }
      if (self.calls == 1) {
        self.tasks->add(self.all[2]);
      }
      return 0U;
    };
    tasks->add(task);
  }
  (void)progress->poll();
  EXPECT_EQ(own.calls, 1) << "the others were taken out, and what came again waits for its turn";
  (void)progress->poll();
  (void)progress->poll();
  EXPECT_EQ(own.calls, 2);
}

TEST_F(PollTasksTest, OfThoseThatAreDueTheMoreUrgentAreCalledFirst) {
  struct Noted : PollTask {
    std::vector<int>* order;
    int number;
    Noted(std::vector<int>& all, int its_number, std::int8_t its_priority)
        : order{&all}, number{its_number} {
      function = [](void* its) {
        auto& self = *static_cast<Noted*>(its);
        self.order->push_back(self.number);
        return 0U;
      };
      argument = this;
      points = bit_of(SchedulingPoint::forced);
      priority = its_priority;
    }
  };
  std::vector<int> order;
  Noted all[] = {{order, 0, 0}, {order, 1, 5}, {order, 2, -3}, {order, 3, 5}, {order, 4, 0}};
  for (Noted& one : all) {
    EXPECT_FALSE(tasks->is_in(one));
    EXPECT_TRUE(tasks->add(one));
    EXPECT_TRUE(tasks->is_in(one));
  }
  (void)progress->poll();
  EXPECT_EQ(order, (std::vector{1, 3, 0, 4, 2}));
  order.clear();
  EXPECT_TRUE(tasks->remove(all[1]));
  all[1].priority = -128;
  EXPECT_TRUE(tasks->add(all[1]));
  (void)progress->poll();
  EXPECT_EQ(order, (std::vector{3, 0, 4, 2, 1}));
  for (Noted& one : all) {
    EXPECT_TRUE(tasks->remove(one));
  }
}

// Several, called once or repeated, that come again each time they are called.
TEST_F(PollTasksTest, ARoundEndsAlsoIfAllComeAgainInIt) {
  struct Again : PollTask {
    PollTasks* tasks;
    int calls = 0;
    void begin(PollTasks& home, bool repeats) {
      tasks = &home;
      points = bit_of(SchedulingPoint::forced);
      argument = this;
      is_repeated = repeats;
      function = [](void* its) {
        auto& self = *static_cast<Again*>(its);
        if (++self.calls < 1'000) {  // A round that never ends fails, rather than hangs.
          (void)self.tasks->remove(self);
          self.tasks->add(self);
        }
        return 1U;
      };
      tasks->add(*this);
    }
  };
  for (const bool repeats : {false, true}) {
    std::array<Again, 3> all;
    for (Again& one : all) {
      one.begin(*tasks, repeats);
    }
    for (int round = 1; round <= 3; ++round) {
      EXPECT_EQ(progress->poll(), all.size());
      for (Again& one : all) {
        EXPECT_EQ(one.calls, round);
      }
    }
    for (Again& one : all) {
      EXPECT_TRUE(tasks->remove(one));
    }
  }
}

TEST_F(PollTasksTest, WhatIsMaskedStaysInAndIsNotCalled) {
  Counted masked{bit_of(SchedulingPoint::forced), true};
  Counted other{bit_of(SchedulingPoint::forced), true};
  tasks->add(masked);
  tasks->add(other);
  tasks->mask(masked);
  tasks->mask(masked);
  (void)progress->poll();
  EXPECT_EQ(masked.calls, 0U);
  EXPECT_EQ(other.calls, 1U);
  EXPECT_FALSE(tasks->add(masked)) << "it is in";
  tasks->unmask(masked);
  (void)progress->poll();
  EXPECT_EQ(masked.calls, 1U);
  EXPECT_TRUE(tasks->remove(masked));
  EXPECT_TRUE(tasks->remove(other));
}

TEST_F(PollTasksTest, AreCalledByTheWorkersOfTheirPlaceOnly) {
  threads::TestTeam team{2, {.idle_hook = progress.get()}};
  struct Placed : PollTask {
    std::atomic<int> calls{0};
    std::atomic<int> faults{0};
  } task;
  task.points = bit_of(SchedulingPoint::idle) | bit_of(SchedulingPoint::forced);
  task.period_ns = 200'000;
  task.worker_first = 1;
  task.worker_end = 2;
  task.argument = &task;
  task.function = [](void* its) {
    auto& self = *static_cast<Placed*>(its);
    const threads::Worker* const here = threads::this_worker();
    self.faults += here != nullptr && here->index == 1 ? 0 : 1;
    ++self.calls;
    return 0U;
  };
  tasks->add(task);
  for (int i = 0; i < 100; ++i) {
    (void)progress->poll();  // By no worker.
  }
  while (task.calls < 5) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(tasks->remove(task));
  EXPECT_EQ(task.faults, 0);
}

TEST_F(PollTasksTest, SleepingWorkersGetUpForAPeriod) {
  threads::TestTeam team{2, {.idle_hook = progress.get()}};
  team.run([] { threads::sleep_for(1'000'000); });
  Counted often{bit_of(SchedulingPoint::idle), true};
  often.period_ns = 1'000'000;
  tasks->add(often);
  while (often.calls < 5) {  // Nobody else does anything.
    std::this_thread::yield();
  }
  EXPECT_TRUE(tasks->remove(often));
  const std::uint32_t calls = often.calls;
  team.run([] { threads::sleep_for(3'000'000); });
  EXPECT_EQ(often.calls, calls);
}

TEST_F(PollTasksTest, NoCallIsUnderWayAfterItWasRemoved) {
  threads::TestTeam team{2, {.idle_hook = progress.get()}};
  struct Guarded : PollTask {
    std::atomic<bool> is_valid{false};
    std::atomic<int> calls{0};
    std::atomic<int> faults{0};
  } task;
  task.points = ~0U;
  task.argument = &task;
  task.function = [](void* its) {
    auto& self = *static_cast<Guarded*>(its);
    for (int i = 0; i < 20; ++i) {
      self.faults += self.is_valid ? 0 : 1;
    }
    return static_cast<std::uint32_t>(++self.calls & 1);
  };
  auto rounds = [&] {
    for (int i = 0; i < 500; ++i) {
      task.is_valid = true;
      tasks->add(task);
      threads::yield();
      (void)tasks->remove(task);
      task.is_valid = false;
      threads::yield();
    }
  };
  std::atomic<bool> is_over{false};
  std::thread poller{[&] {
    while (!is_over) {
      (void)progress->poll();
    }
  }};
  team.run(rounds);
  is_over = true;
  poller.join();
  EXPECT_EQ(task.faults, 0);
}

}  // namespace
}  // namespace sterna::progress
