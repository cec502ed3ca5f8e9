// Turns of a simulation: what a task does on a processor, and at its barriers.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "sched/engine.h"
#include "sched/simulation.h"

namespace sterna::sched {
namespace {
constexpr std::uint32_t kHalfFilled = kNoPlace - 1;  // A cache, with nothing that helps.
}  // namespace

/// What the next iterations cost that its loop has for it; 0: none are left. Rounds have a barrier
/// between them, so that nobody begins the loop anew while another one is in it.
double Simulation::take_chunk(Task& task) {
  const WorkloadLoop& loop = workload_.groups[task.what->group].loop;
  SharedLoop& shared = loops_[task.what->group];
  if (shared.chunks == nullptr || shared.round < task.round) {
    shared.chunks =
        LoopChunks::make({.count = loop.count, .parties = shared.parties, .scheme = loop.scheme});
    shared.round = task.round;
  }
  const LoopRange range = shared.chunks == nullptr || task.round < shared.round
                              ? LoopRange{}
                              : shared.chunks->next(task.party);
  if (range.size() == 0) {
    return 0;
  }
  const auto size = static_cast<double>(range.size());
  const double middle = static_cast<double>(range.begin + range.end - 1) / 2;
  const double step = (loop.last_ns - loop.first_ns) / static_cast<double>(loop.count);
  return std::max(size * (loop.first_ns + middle * step), 1.0);
}

/// To its next piece of work (or of spinning). False: it waits, or has ended.
bool Simulation::go_on(Task& task) {
  for (;;) {
    if (task.step == task.what->steps.size()) {
      task.step = 0;
      if (++task.round >= workload_.rounds) {
        task.has_ended = true;
        return false;
      }
    }
    const Step& step = task.what->steps[task.step++];
    if (step.kind == Step::Kind::loop) {
      if (const double ns = take_chunk(task); ns > 0) {
        --task.step;  // Then the next one.
        result_.work_ns += static_cast<std::uint64_t>(ns);
        task.left_ns =
            static_cast<std::uint64_t>(ns) + workload_.groups[task.what->group].loop.chunk_ns;
        return true;
      }
      continue;
    }
    if (step.kind == Step::Kind::compute) {
      const double factor = 1 + workload_.jitter * (2 * random_.unit() - 1);
      task.left_ns = static_cast<std::uint64_t>(static_cast<double>(step.ns) * factor);
      result_.work_ns += task.left_ns;
      return true;
    }
    if (!arrive(task, step.kind)) {
      return task.is_spinning;
    }
  }
}

/// At its barrier. True: it was the last, and the others go on.
bool Simulation::arrive(Task& task, Step::Kind kind) {
  const std::uint32_t barrier = workload_.groups[task.what->group].barrier;
  std::vector<Task*>& waiting = waiting_[barrier];
  if (waiting.size() + 1 < members_[barrier]) {
    waiting.push_back(&task);
    task.is_spinning = kind == Step::Kind::spin;
    return false;
  }
  let_go(barrier);
  return true;
}

void Simulation::let_go(std::uint32_t barrier) {
  std::vector<Task*> all;
  all.swap(waiting_[barrier]);
  for (Task* const other : all) {
    pass(*other);
  }
}

/// The barrier has opened for a task that waited there.
void Simulation::pass(Task& task) {
  const bool was_spinning = task.is_spinning;
  const std::uint32_t worker = task.worker;
  if (was_spinning && worker != kNoPlace) {
    account(worker);
  }
  task.is_spinning = false;
  const bool goes_on = go_on(task);
  if (!was_spinning && goes_on) {
    engine_->ready(task.entity);
  } else if (worker != kNoPlace && goes_on) {
    begin_turn(worker, task);
  } else if (worker != kNoPlace) {
    leave(worker);
    workers_[worker].is_woken = true;
    has_woken_ = true;
  }
  if (task.has_ended) {
    end(task);
  }
}

void Simulation::end(Task& task) {
  const std::uint32_t barrier = workload_.groups[task.what->group].barrier;
  --members_[barrier];
  --open_tasks_;
  if (!task.entity.is_queued()) {
    engine_->remove(task.entity);
  }  // Else when it comes to a processor: dispatch().
  if (!waiting_[barrier].empty() && waiting_[barrier].size() == members_[barrier]) {
    let_go(barrier);  // They waited for this one only.
  }
}

void Simulation::leave(std::uint32_t worker) {
  workers_[worker].task->worker = kNoPlace;
  workers_[worker].task = nullptr;
  ++workers_[worker].generation;
}

/// A task that comes from another machine brings its memory, which takes time.
void Simulation::cross_network(std::uint32_t worker, Task& task) {
  const topology::Place* const here =
      topology::enclosing(*processors_[worker], topology::PlaceKind::machine);
  const topology::Place* const before = std::exchange(task.machine, here);
  if (before == nullptr || before == here) {
    return;
  }
  workers_[worker].cold_ns += workload_.network_ns;
  ++result_.network_moves;
  task.home_node = node_of(worker);
  engine_->update(task.entity, [&](Entity& entity) { entity.memory.move_to(task.home_node); });
}

void Simulation::begin_turn(std::uint32_t worker, Task& task) {
  Virtual& its = workers_[worker];
  its.task = &task;
  task.worker = worker;
  its.since_ns = now_;
  const std::uint32_t node = node_of(worker);
  if (task.home_node == kNoPlace) {
    task.home_node = node;  // First touch.
    engine_->update(task.entity, [&](Entity& entity) { entity.memory.add(node, 1 << 20); });
  }
  if (its.cached_group != task.what->group) {
    its.cold_ns = its.cached_group == kNoPlace ? 0 : workload_.cold_ns;
    its.cached_group = task.what->group;
  }
  cross_network(worker, task);
  result_.thread_processor[task.index] = processors_[worker]->pu_first;
  its.slowness =
      task.home_node != node ? 1 + workload_.memory_part * (workload_.remote_factor - 1) : 1;
  const auto needed = its.cold_ns + static_cast<std::uint64_t>(
                                        static_cast<double>(task.left_ns) * its.slowness + 0.5);
  its.until_ns = task.is_spinning ? kNever : now_ + std::max<std::uint64_t>(needed, 1);
  schedule(worker, std::min(its.until_ns, its.quantum_end_ns));
  ++result_.switches;
}

void Simulation::account(std::uint32_t worker) {
  Virtual& its = workers_[worker];
  Task& task = *its.task;
  const std::uint64_t used = now_ - its.since_ns;
  its.since_ns = now_;
  result_.busy_ns[worker] += used;
  result_.thread_ns[task.index] += used;
  const std::uint64_t cold = std::min(used, its.cold_ns);
  its.cold_ns -= cold;
  if (task.is_spinning) {
    return;
  }
  const double done = static_cast<double>(used - cold) / its.slowness;
  all_ns_ += done;
  local_ns_ += task.home_node == node_of(worker) ? done : 0;
  const auto whole = static_cast<std::uint64_t>(done + 0.5);
  task.left_ns = now_ >= its.until_ns ? 0 : task.left_ns - std::min(whole, task.left_ns);
}

void Simulation::end_turn(std::uint32_t worker) {
  Virtual& its = workers_[worker];
  Task& task = *its.task;
  account(worker);
  if (task.left_ns != 0 || task.is_spinning) {
    its.cached_group = its.cold_ns != 0 ? kHalfFilled : its.cached_group;
    its.cold_ns = 0;
    leave(worker);
    engine_->ready(task.entity);
    return;
  }
  const bool goes_on = go_on(task);
  if (goes_on && now_ < its.quantum_end_ns) {
    // The next piece follows without a look at others, as in a thread that does not yield.
    begin_turn(worker, task);
    return;
  }
  leave(worker);
  if (goes_on) {
    engine_->ready(task.entity);
  } else if (task.has_ended) {
    end(task);
  }
}

}  // namespace sterna::sched
