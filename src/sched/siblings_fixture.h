// For tests: threads of bubbles on the workers of a synthetic machine.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "sched/scheduler.h"
#include "threads/scheduler.h"
#include "threads/team_fixture.h"

namespace sterna::sched {

/// Which worker the caller runs on.
inline std::uint32_t here() {
  return threads::worker_index(*threads::self()->worker.load());
}

/// A machine with a team on it. Every worker has a processor of the topology.
class BubbleSeeds : public testing::Test {
 protected:
  void open(const char* machine, std::unique_ptr<Policy> policy, bool steal = true) {
    topology_ = std::move(topology::Topology::synthetic(machine).value());
    scheduler_ = std::move(
        Scheduler::open(
            {.topology = topology_.get(), .workers = topology_->pus(), .policy = std::move(policy)})
            .value());
    team_ = std::make_unique<threads::TestTeam>(
        topology_->pu_count(), threads::TeamOptions{.steal = steal, .dispatch = scheduler_.get()});
    scheduler_->attach(**team_);
  }
  void open(const char* machine, const char* policy, bool steal = true) {
    open(machine, std::move(make_policy(policy).value()), steal);
  }
  void close() {
    team_.reset();
    scheduler_.reset();
  }
  Engine& engine() { return scheduler_->engine(); }
  std::uint32_t pu(std::uint32_t index) const { return topology_->pus()[index]->id; }

  void add(Bubble& bubble, std::uint32_t program_place = kNoPlace) {
    bubble.program_place = program_place;
    ASSERT_TRUE(engine().insert(scheduler_->root(), bubble));
    engine().submit(bubble);
  }
  template <typename Function>
  threads::Thread* start(Bubble& bubble, Entity& entity, Function& function) {
    check(engine().insert(bubble, entity).has_value(), "the entity is inserted");
    return team_->go(function, {.entity = &entity});
  }
  /// `function` as the only thread of the bubble, until it has ended.
  template <typename Function>
  void run(Bubble& bubble, Function&& function) {
    Entity entity;
    threads::join(*start(bubble, entity, function));
  }

  std::unique_ptr<topology::Topology> topology_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<threads::TestTeam> team_;
};

}  // namespace sterna::sched
