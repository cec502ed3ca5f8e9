// Seeds of threads in bubbles: no thread and no entity until somebody takes one, then one of the
// bubble, where the bubble may run.
#include <vector>

#include <gtest/gtest.h>

#include "sched/policies/builtin.h"
#include "sched/siblings_fixture.h"
#include "sched/testing.h"
#include "threads/control/control.h"
#include "threads/seeds/seed.h"
#include "threads/sync/semaphore.h"

namespace sterna::sched {
namespace {

/// Who ran it, and where.
struct Note {
  threads::Seed seed;
  std::atomic<int> runs{0};
  threads::Thread* runner = nullptr;
  const Bubble* holder = nullptr;
  std::uint32_t worker = 0;
  void plant() { threads::plant(seed, run, this); }
  static void run(void* note) {
    auto& its = *static_cast<Note*>(note);
    its.runner = threads::self();
    its.holder = static_cast<Entity*>(its.runner->entity)->holder();
    its.worker = here();
    its.runs.fetch_add(1);
  }
};

TEST_F(BubbleSeeds, AreNoThreadsWhenTheirPlanterRunsThem) {
  open("pu:1", "flat");
  Bubble bubble;
  add(bubble);
  run(bubble, [&] {
    std::vector<Note> notes(8);
    for (Note& note : notes) {
      note.plant();
      EXPECT_EQ(note.seed.thread, nullptr);
    }
    EXPECT_EQ((*team_)->live_thread_count(), 1U);
    EXPECT_EQ(engine().stats(bubble).threads, 1U);
    EXPECT_TRUE(threads::withdraw(notes[3].seed));
    for (Note& note : notes) {
      if (&note != &notes[3]) {
        threads::join(note.seed);
        EXPECT_EQ(note.runner, threads::self());
      }
      EXPECT_EQ(note.runs.load(), &note != &notes[3] ? 1 : 0);
    }
    EXPECT_EQ((*team_)->live_thread_count(), 1U);
  });
  EXPECT_TRUE(bubble.empty());
  engine().remove(bubble);
}

TEST_F(BubbleSeeds, BecomeThreadsOfTheBubbleWhenTheirPlanterWaits) {
  open("pu:1", "flat");
  Bubble bubble;
  add(bubble);
  run(bubble, [&] {
    struct Waited : Note {
      threads::Semaphore begun;
      threads::Semaphore go_on;
    } its;
    threads::plant(
        its.seed,
        [](void* waited) {
          auto& mine = *static_cast<Waited*>(waited);
          Note::run(&mine);
          mine.begun.release();
          mine.go_on.acquire();
        },
        &its);
    its.begun.acquire();
    EXPECT_NE(its.runner, threads::self());
    EXPECT_EQ(its.holder, &bubble);
    EXPECT_EQ(engine().stats(bubble).threads, 2U);
    its.go_on.release();
    threads::join(its.seed);
    EXPECT_EQ(engine().stats(bubble).threads, 1U);  // It has left before its join goes on.
  });
  EXPECT_TRUE(bubble.empty());
  engine().remove(bubble);
}

TEST_F(BubbleSeeds, GoToIdleWorkersOfTheirBubblesPlace) {
  for (const bool steal : {true, false}) {
    open("node:2 pu:2", "flat", steal);
    Bubble bubble;
    add(bubble, topology_->find(topology::PlaceKind::numa, 1)->id);
    run(bubble, [&] {
      for (int i = 0; i < 20; ++i) {
        Note note;
        note.plant();
        const std::uint32_t mine = here();
        while (note.runs.load() == 0) {  // We do not switch: only another worker can.
        }
        threads::join(note.seed);  // It may end later than it runs: then we go on anywhere.
        EXPECT_EQ(note.worker, mine == 2 ? 3U : 2U);
        EXPECT_EQ(note.holder, &bubble);
        EXPECT_NE(note.runner, threads::self());
      }
    });
    engine().remove(bubble);
    close();
  }
}

TEST_F(BubbleSeeds, StayWithTheirPlanterWhereNobodyElseMayRunThem) {
  open("node:2 pu:1", "flat");
  Bubble bubble;
  add(bubble, topology_->find(topology::PlaceKind::numa, 0)->id);
  run(bubble, [&] {
    // Seeds outside go to the other worker meanwhile: it looks again and again.
    std::atomic<int> others{0};
    auto outside = [&] {
      threads::stay_on(0, 1);
      for (int i = 0; i < 20; ++i) {
        threads::Seed seed;
        threads::plant(
            seed, [](void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); },
            &others);
        while (others.load() <= i) {
        }
        threads::join(seed);
      }
    };
    std::vector<Note> notes(4);
    for (Note& note : notes) {
      note.plant();
    }
    threads::Thread* const thread = team_->go(outside);
    while (others.load() < 20) {
      threads::yield();
    }
    threads::join(*thread);
    for (Note& note : notes) {
      threads::join(note.seed);
      EXPECT_EQ(note.worker, 0U);
      EXPECT_EQ(note.holder, &bubble);
    }
  });
  engine().remove(bubble);
}

TEST_F(BubbleSeeds, ComeWhereThePolicyGivesThemToIdleWorkers) {
  open("pu:2", "steal");
  Bubble bubble;
  add(bubble);
  engine().put(bubble, pu(0));
  run(bubble, [&] {
    Note note;
    note.plant();
    const std::uint32_t mine = here();
    while (note.runs.load() == 0) {
    }
    threads::join(note.seed);
    EXPECT_NE(note.worker, mine);
    EXPECT_EQ(note.holder, &bubble);
  });
  engine().remove(bubble);
}

TEST_F(BubbleSeeds, AreJoinedThoughTheirPlanterHasMovedAndItsWorkerComputes) {
  open("pu:2", "flat");
  Bubble bubble;
  add(bubble);
  std::atomic<bool> is_over{false};
  threads::Semaphore has_gone;
  auto computes = [&] {
    threads::stay_on(0, 1);
    has_gone.release();
    while (!is_over.load()) {
    }
  };
  Entity entity;
  entity.program_place = pu(0);
  threads::Thread* other = nullptr;
  auto planter = [&] {
    std::vector<Note> notes(5);
    for (Note& note : notes) {
      note.plant();
    }
    engine().update(entity, [&](Entity& its) { its.program_place = pu(1); });
    other = team_->go(computes);
    while (here() != 1) {
      threads::yield();
    }
    for (Note& note : notes) {
      threads::join(note.seed);
      EXPECT_EQ(note.holder, &bubble);
      EXPECT_EQ(note.runs.load(), 1);
    }
  };
  threads::join(*start(bubble, entity, planter));
  is_over.store(true);
  threads::join(*other);
  engine().remove(bubble);
}

TEST_F(BubbleSeeds, AreJoinedByTheEndOfTheirPlanter) {
  open("pu:2", "flat");
  Bubble bubble;
  add(bubble);
  std::vector<Note> notes(10);
  run(bubble, [&] {
    for (Note& note : notes) {
      note.plant();
    }
  });
  for (const Note& note : notes) {
    EXPECT_EQ(note.runs.load(), 1);
    EXPECT_EQ(note.holder, &bubble);
  }
  EXPECT_TRUE(bubble.empty());
  engine().remove(bubble);
}

/// A policy that wants to hear of each thread that becomes ready.
class WakePolicy final : public Policy {
 public:
  void submit(View&, Entity&) noexcept override {}
  [[nodiscard]] bool wants_wake() const noexcept override { return true; }
};

TEST_F(BubbleSeeds, AreThreadsAtOnceWherePrioritiesOrWakeUpsCount) {
  open("pu:1", "flat");
  Bubble bubble;
  add(bubble);
  run(bubble, [&] {
    const auto is_thread = [&] {
      Note note;
      note.plant();
      const bool is = note.seed.thread != nullptr;
      threads::join(note.seed);
      EXPECT_EQ(note.holder, &bubble);
      return is;
    };
    EXPECT_FALSE(is_thread());
    engine().set_priority(bubble, kPriorityNormal + 1);
    EXPECT_TRUE(is_thread());
    engine().set_priority(bubble, kPriorityOfHolder);
    EXPECT_FALSE(is_thread());
    ASSERT_TRUE(engine().change_policy(std::make_unique<WakePolicy>()));
    EXPECT_TRUE(is_thread());
  });
  engine().remove(bubble);
}

TEST(SeedReach, IsWhatAThreadBesideWouldHave) {
  using Reach = Engine::Reach;
  Machine machine{"node:2 pu:2"};
  const auto reach = [&](const Entity& entity) {
    std::vector<Reach> all;
    for (std::uint32_t worker = 0; worker < 4; ++worker) {
      all.push_back(machine.engine->reach(entity, worker));
    }
    return all;
  };
  constexpr Reach kNo = Reach::no;
  constexpr Reach kMaybe = Reach::by_policy;
  constexpr Reach kYes = Reach::planned;
  Bubble& bubble = machine.bubble();
  Entity& thread = machine.thread(&bubble);
  EXPECT_EQ(reach(thread), (std::vector{kYes, kYes, kYes, kYes}));
  machine.engine->put(bubble, machine.place(topology::PlaceKind::pu, 1).id);
  EXPECT_EQ(reach(thread), (std::vector{kMaybe, kYes, kMaybe, kMaybe}));
  // Where the thread itself is planned does not count.
  machine.engine->put(thread, machine.place(topology::PlaceKind::pu, 2).id);
  EXPECT_EQ(reach(thread), (std::vector{kMaybe, kYes, kMaybe, kMaybe}));
  machine.engine->update(bubble, [&](Entity& its) {
    its.program_place = machine.place(topology::PlaceKind::numa, 0).id;
  });
  EXPECT_EQ(reach(thread), (std::vector{kMaybe, kYes, kNo, kNo}));
  // What the program says of the thread does.
  machine.engine->update(thread, [&](Entity& its) {
    its.program_place = machine.place(topology::PlaceKind::pu, 0).id;
  });
  EXPECT_EQ(reach(thread), (std::vector{kYes, kNo, kNo, kNo}));
  machine.engine->enable_worker(0, false);
  EXPECT_EQ(machine.engine->reach(thread, 0), kNo);
  machine.engine->enable_worker(0, true);
  machine.engine->put(bubble, kAside);
  EXPECT_EQ(reach(thread), (std::vector{kNo, kNo, kNo, kNo}));
}

}  // namespace
}  // namespace sterna::sched
