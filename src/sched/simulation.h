// The state of a simulation. Internal to simulator*.cc.
#pragma once

#include <memory>
#include <queue>
#include <vector>

#include "base/random.h"
#include "sched/engine.h"
#include "sched/simulator.h"

namespace sterna::sched {

struct Task {
  Entity entity;
  const WorkloadThread* what = nullptr;
  std::uint32_t index = 0;
  std::uint32_t party = 0;  // Among the threads of its group.
  std::uint32_t round = 0;
  std::size_t step = 0;
  std::uint64_t left_ns = 0;           // Of the present piece, with local memory and a warm cache.
  std::uint32_t home_node = kNoPlace;  // Memory node of its data: where it ran first.
  const topology::Place* machine = nullptr;  // Where it and its memory are; null: not yet.
  std::uint32_t worker = kNoPlace;           // On which it runs now.
  bool is_spinning = false;                  // At a barrier, on the processor or in a queue.
  bool has_ended = false;
};

/// A virtual worker.
struct Virtual {
  Task* task = nullptr;
  std::uint64_t since_ns = 0;  // What was before is accounted.
  std::uint64_t until_ns = 0;  // End of the piece.
  std::uint64_t quantum_end_ns = 0;
  std::uint64_t cold_ns = 0;  // That are left to fill the cache.
  double slowness = 1;
  std::uint32_t cached_group = kNoPlace;
  std::uint64_t generation = 0;  // Of its event: others are void.
  bool is_woken = false;
};

/// The loop of a group, in the round of the thread that is furthest.
struct SharedLoop {
  std::unique_ptr<LoopChunks> chunks;
  std::uint32_t round = 0;
  std::uint32_t parties = 0;
};

struct Happening {
  std::uint64_t at_ns;
  std::uint64_t order;
  std::uint32_t worker;  // kNoPlace: time for ticks, and for idle workers to look around.
  std::uint64_t generation;
  bool operator>(const Happening& other) const noexcept {
    return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
  }
};

class Simulation final : private Host {
 public:
  Simulation(const SimulationOptions& options, const Workload& workload)
      : options_{options}, workload_{workload}, random_{options.seed} {}
  ~Simulation() = default;

  Result<SimulationResult> run();

 private:
  Result<> open();
  Result<> choose_processors();
  Result<> make_tree();
  Result<> place_by_program(Task& task);
  void close();
  void handle(const Happening& next);
  [[nodiscard]] SimulationProgress progress(std::uint64_t events) const noexcept;
  void stop_at(std::uint64_t end_ns);
  void dispatch(std::uint32_t worker);
  void serve_woken();
  void schedule(std::uint32_t worker, std::uint64_t at_ns) noexcept;
  [[nodiscard]] bool is_stuck() noexcept;
  [[nodiscard]] std::uint64_t quantum() noexcept;
  [[nodiscard]] std::uint32_t node_of(std::uint32_t worker) const noexcept;
  [[nodiscard]] SimulationResult result() const;

  // simulator_turns.cc.
  bool go_on(Task& task);
  [[nodiscard]] double take_chunk(Task& task);
  bool arrive(Task& task, Step::Kind kind);
  /// All who wait at that barrier go on.
  void let_go(std::uint32_t barrier);
  void pass(Task& task);
  void end(Task& task);
  void begin_turn(std::uint32_t worker, Task& task);
  void cross_network(std::uint32_t worker, Task& task);
  void account(std::uint32_t worker);
  void leave(std::uint32_t worker);
  void end_turn(std::uint32_t worker);

  void wake(std::uint32_t first, std::uint32_t count) noexcept override;
  void preempt(std::uint32_t worker) noexcept override;
  void move_memory(Entity& entity, std::uint32_t node) noexcept override;
  [[nodiscard]] bool is_running(const Entity& thread) const noexcept override;
  [[nodiscard]] bool is_busy(std::uint32_t worker) const noexcept override {
    return workers_[worker].task != nullptr;
  }
  [[nodiscard]] std::uint64_t now_ns() const noexcept override { return now_; }
  // A job simulates while it is traced: balance/policies/places.cc.
  [[nodiscard]] bool has_traced_bubbles() const noexcept override { return false; }

  const SimulationOptions& options_;
  const Workload& workload_;
  Random random_;
  std::unique_ptr<topology::Topology> topology_;
  std::vector<const topology::Place*> processors_;  // By worker.
  std::unique_ptr<Engine> engine_;
  std::vector<SharedLoop> loops_;                 // By group.
  std::vector<std::unique_ptr<Bubble>> bubbles_;  // By group; null: none.
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Virtual> workers_;
  bool has_woken_ = false;
  std::vector<std::vector<Task*>> waiting_;  // By barrier.
  std::vector<std::uint32_t> members_;       // By barrier: threads that have not ended.
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> happenings_;
  std::uint64_t order_ = 0;
  std::uint64_t now_ = 0;
  std::size_t open_tasks_ = 0;
  std::uint64_t quiet_looks_ = 0;  // One after the other, at which nothing ran.
  SimulationResult result_;
  double local_ns_ = 0;  // Work done on the node of its memory, and all.
  double all_ns_ = 0;
};

}  // namespace sterna::sched
