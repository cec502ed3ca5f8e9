// The mechanism of hierarchical scheduling: the tree of entities, a run queue per place of the
// machine, and the commitment of plans. It is the Dispatch of a team; threads without an entity
// never come here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/spin_lock.h"
#include "sched/policy.h"
#include "sched/shared_queue.h"
#include "threads/dispatch.h"
#include "threads/team.h"

namespace sterna::sched {

struct SchedulerOptions {
  const topology::Topology* topology = nullptr;  // Outlives the scheduler.
  // The processor of each worker of the team; they need not be all of the topology.
  std::span<const topology::Place* const> workers = {};
  const PolicyEntry* policy = nullptr;  // Null: flat.
  bool steal = true;  // A worker that finds nothing on its way to the root looks at other places.
};

/// Open it, give it to TeamOptions::dispatch, then attach() the team. insert, remove and plan: from
/// anywhere, not with locks held.
class Scheduler final : public threads::Dispatch {
 public:
  static Result<std::unique_ptr<Scheduler>> open(const SchedulerOptions& options);
  /// The team has ended; the tree is empty but for the root (check).
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void attach(threads::Team& team) noexcept { team_.store(&team, std::memory_order_release); }

  /// The bubble that holds what has no other holder.
  [[nodiscard]] Bubble& root() noexcept { return root_; }

  /// `entity` joins `holder`, and is planned to be where its holder is until the next plan(). A
  /// thread's entity is inserted before its thread is spawned, and is removed when its thread ends.
  void insert(Bubble& holder, Entity& entity) noexcept;
  /// A bubble must be empty.
  void remove(Entity& entity) noexcept;

  /// Asks the policy for the places of all entities and commits them: threads in queues move now,
  /// the others when they wake up.
  void plan();

  // Dispatch.
  threads::Thread* next(threads::Worker& worker) noexcept override;
  void ready(threads::Thread& thread, threads::Worker* hint) noexcept override;
  void ended(threads::Thread& thread) noexcept override;
  bool has_work(const threads::Worker& worker) const noexcept override;

 private:
  /// The places where a worker looks, in order; the first `own_count` are those from its processor
  /// to the root.
  struct Route {
    std::vector<std::uint32_t> places;
    std::size_t own_count = 0;
    std::uint32_t processor_place = 0;
  };
  /// The workers below a place: contiguous.
  struct WorkerRange {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Snapshot;
  struct Planned {
    const Entity* entity;
    std::uint32_t place;
  };

  explicit Scheduler(const SchedulerOptions& options);
  void take_snapshot(const Bubble& holder, std::uint32_t parent, Snapshot& snapshot) const;
  void commit(Bubble& holder, std::span<const Planned> plan) noexcept;
  void requeue() noexcept;
  void enqueue(threads::Thread& thread) noexcept;

  const topology::Topology& topology_;
  const PolicyEntry& policy_;
  const bool steal_;
  std::vector<Route> routes_;              // By worker; constant.
  std::vector<WorkerRange> ranges_;        // By place; constant.
  std::unique_ptr<SharedQueue[]> queues_;  // By place; each guards itself.
  std::atomic<threads::Team*> team_{nullptr};

  mutable SpinLock tree_lock_;
  Bubble root_;                     // Links below it: guard tree_lock_.
  std::uint32_t entity_count_ = 0;  // Guard: tree_lock_.
};

}  // namespace sterna::sched
