// The engine over a team: the Dispatch of its threads that have an entity. Threads without one
// never come here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/spin_lock.h"
#include "sched/engine.h"
#include "sched/filiation.h"
#include "sched/pages.h"
#include "threads/dispatch.h"
#include "threads/team.h"

namespace sterna::sched {

struct SchedulerOptions {
  const topology::Topology* topology = nullptr;  // Outlives the scheduler.
  // The processor of each worker of the team; they need not be all of the topology.
  std::span<const topology::Place* const> workers = {};
  std::unique_ptr<Policy> policy = nullptr;  // Null: flat.
  Pages* pages = nullptr;                    // Null: the system's. Outlives the scheduler.
  // How often an idle worker tells on standard error what audit() finds; 0: never.
  std::uint64_t audit_ns = 0;
};

/// Open it, give it to TeamOptions::dispatch, then attach() the team. A thread's entity is inserted
/// before the thread is spawned, and leaves the tree when it ends.
class Scheduler final : public threads::Dispatch, private Host {
 public:
  static Result<std::unique_ptr<Scheduler>> open(SchedulerOptions options);
  /// The team has ended; the tree is empty but for the root (check).
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void attach(threads::Team& team) noexcept { team_.store(&team, std::memory_order_release); }

  /// The tree, the policy, what is to be known about them. From anywhere, not with locks held.
  [[nodiscard]] Engine& engine() noexcept { return *engine_; }
  [[nodiscard]] Bubble& root() noexcept { return engine_->root(); }
  /// The processor of a worker is taken away, or is back: of the team, too. REFUSED: it is the last
  /// one. From anywhere; two calls do not overlap.
  Result<> enable_worker(std::uint32_t worker, bool is_enabled) noexcept;
  /// That memory belongs to the entity: the policy memory sees on which node it is, and may bring
  /// it to another. Its pages are counted now. Until forget_memory(), before the entity goes.
  Result<> own_memory(Entity& entity, void* base, std::size_t bytes) noexcept;
  void forget_memory(const Entity& entity) noexcept { memory_->forget(entity); }
  [[nodiscard]] const MemoryMover& memory() const noexcept { return *memory_; }
  /// Entities of threads whose bubbles follow from who creates whom.
  [[nodiscard]] Filiation& filiation() noexcept { return *filiation_; }

  // Dispatch.
  threads::Thread* next(threads::Worker& worker, const threads::Thread* leaving) noexcept override;
  void ready(threads::Thread& thread, threads::Worker* hint) noexcept override;
  void ended(threads::Thread& thread) noexcept override;
  bool has_work(const threads::Worker& worker) const noexcept override;
  int highest(const threads::Worker& worker) const noexcept override;
  bool use_idleness() noexcept override;
  void poll() noexcept override;
  [[nodiscard]] bool wants_polls() const noexcept override;
  void expose(threads::Thread& thread) noexcept override;
  void settle(threads::Worker& worker) noexcept override;
  void priority_changed(threads::Thread& thread) noexcept override;
  [[nodiscard]] threads::Reach reach(const threads::Thread& thread,
                                     const threads::Worker& worker) const noexcept override;
  void wake_beside(const threads::Thread& thread, bool several) noexcept override;
  [[nodiscard]] void* add_sibling(const threads::Thread& thread) noexcept override;
  void start_sibling(threads::Thread& thread) noexcept override;
  void remove_sibling(void* entity) noexcept override;

 private:
  Scheduler() = default;

  class Sibling;
  [[nodiscard]] Sibling* take_sibling() noexcept;
  void give_sibling(Sibling& sibling) noexcept;
  void know(Entity& entity, threads::Thread& thread) noexcept;

  // Host.
  void wake(std::uint32_t first, std::uint32_t count) noexcept override;
  void preempt(std::uint32_t worker) noexcept override;
  void recall(Entity& entity) noexcept override;
  void allow_seeds(bool allows) noexcept override;
  [[nodiscard]] bool is_kept_ready(const Entity& entity) const noexcept override;
  [[nodiscard]] bool is_unserved(const Entity& entity) const noexcept override;
  [[nodiscard]] std::uint64_t trace_key(const Entity& entity) const noexcept override;
  [[nodiscard]] std::string name_of(const Entity& entity) const override;
  void move_memory(Entity& entity, std::uint32_t node) noexcept override;
  [[nodiscard]] bool is_running(const Entity& thread) const noexcept override;
  [[nodiscard]] bool is_busy(std::uint32_t worker) const noexcept override;
  [[nodiscard]] std::uint64_t now_ns() const noexcept override;
  [[nodiscard]] ThreadLook look_at(const Entity& entity) const noexcept override;

  void look_for_lost() const noexcept;

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Filiation> filiation_;
  std::unique_ptr<MemoryMover> memory_;
  mutable std::atomic<std::uint64_t> next_look_ns_{0};  // With audit_ns_. Relaxed: a hint.
  std::atomic<threads::Team*> team_{nullptr};
  std::uint64_t audit_ns_ = 0;  // Constant after open.
  SpinLock siblings_lock_;
  Sibling* free_siblings_ = nullptr;  // Guard: siblings_lock_. For the next ones.
};

}  // namespace sterna::sched
