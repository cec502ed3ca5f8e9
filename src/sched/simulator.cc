// See simulator.h. Events in the order of their virtual time; of equal ones the one made first.
#include "sched/simulator.h"

#include <algorithm>

#include <fmt/format.h>

#include "sched/simulation.h"

namespace sterna::sched {
namespace {

constexpr std::uint64_t kLookNs = 1'000'000;      // Idle workers look around that often.
constexpr std::uint64_t kQuietLooksMax = 10'000;  // Without anything that runs: it is stuck.
constexpr std::uint64_t kEventsPerReport = std::uint64_t{1} << 14;

}  // namespace

void Simulation::wake(std::uint32_t first, std::uint32_t count) noexcept {
  // As the threads' wake_idle: one worker that has nothing to do.
  for (std::uint32_t worker = first; worker < first + count; ++worker) {
    if (workers_[worker].task == nullptr && !workers_[worker].is_woken) {
      workers_[worker].is_woken = true;
      has_woken_ = true;
      return;
    }
  }
}

void Simulation::preempt(std::uint32_t worker) noexcept {
  if (workers_[worker].task != nullptr) {
    schedule(worker, now_);  // Its turn ends now.
  }
}

void Simulation::move_memory(Entity& entity, std::uint32_t node) noexcept {
  if (!entity.is_bubble()) {
    static_cast<Task*>(entity.thread.load(std::memory_order_relaxed))->home_node = node;
  }
}

bool Simulation::is_running(const Entity& thread) const noexcept {
  const auto* const task = static_cast<const Task*>(thread.thread.load(std::memory_order_relaxed));
  return task != nullptr && task->worker != kNoPlace;
}

std::uint64_t Simulation::quantum() noexcept {
  // Ticks of processors are not in step.
  return options_.quantum_ns / 2 + random_.below(options_.quantum_ns + 1);
}

std::uint32_t Simulation::node_of(std::uint32_t worker) const noexcept {
  const auto* const node = topology::enclosing(*processors_[worker], topology::PlaceKind::numa);
  return node != nullptr ? node->index : 0;
}

void Simulation::schedule(std::uint32_t worker, std::uint64_t at_ns) noexcept {
  happenings_.push({at_ns, order_++, worker, ++workers_[worker].generation});
}

Result<> Simulation::open() {
  auto topology = topology::Topology::synthetic(options_.topology);
  if (!topology) {
    return topology.error();
  }
  topology_ = std::move(topology.value());
  auto policy = make_policy(options_.policy);
  if (!policy) {
    return policy.error();
  }
  if (Result<> chosen = choose_processors(); !chosen) {
    return chosen;
  }
  workers_.resize(processors_.size());
  auto engine = Engine::open({.topology = topology_.get(),
                              .workers = processors_,
                              .policy = std::move(policy.value()),
                              .host = this});
  if (!engine) {
    return engine.error();
  }
  engine_ = std::move(engine.value());
  return make_tree();
}

Result<> Simulation::choose_processors() {
  if (options_.processors.empty()) {
    processors_.assign(topology_->pus().begin(), topology_->pus().end());
  }
  for (const std::uint32_t processor : options_.processors) {
    if (processor >= topology_->pu_count()) {
      return Error{Errc::invalid_argument, "sched: there is no processor " +
                                               std::to_string(processor) + " in a machine with " +
                                               std::to_string(topology_->pu_count())};
    }
    processors_.push_back(topology_->pus()[processor]);
  }
  return Done{};
}

/// What the workload says of places: where the thread stays, and where it was.
Result<> Simulation::place_by_program(Task& task) {
  const WorkloadThread& what = *task.what;
  for (const std::uint32_t processor : {what.processor, what.last}) {
    if (processor != kNoPlace && processor >= topology_->pu_count()) {
      return Error{Errc::invalid_argument, "sched: a thread is fixed on processor " +
                                               std::to_string(processor) + " of a machine with " +
                                               std::to_string(topology_->pu_count())};
    }
  }
  if (what.processor != kNoPlace) {
    const topology::Place& processor = *topology_->pus()[what.processor];
    const topology::Place* const around = topology::enclosing(processor, what.within);
    task.entity.program_place = (around != nullptr ? *around : processor).id;
  }
  if (what.last != kNoPlace) {
    Engine::ran_on(task.entity, *topology_->pus()[what.last]);
  }
  return Done{};
}

Result<> Simulation::make_tree() {
  for (const WorkloadGroup& group : workload_.groups) {
    bubbles_.push_back(group.has_bubble ? std::make_unique<Bubble>() : nullptr);
    if (group.has_bubble) {
      (void)engine_->insert(engine_->root(), *bubbles_.back());
    }
    members_.resize(std::max<std::size_t>(members_.size(), group.barrier + 1));
  }
  waiting_.resize(members_.size());
  loops_.resize(workload_.groups.size());
  for (const WorkloadThread& thread : workload_.threads) {
    auto task = std::make_unique<Task>();
    task->what = &thread;
    task->index = static_cast<std::uint32_t>(tasks_.size());
    task->party = loops_[thread.group].parties++;
    task->entity.load = thread.load;
    task->entity.thread = task.get();
    if (Result<> placed = place_by_program(*task); !placed) {
      return placed;
    }
    Bubble* const bubble = bubbles_[thread.group].get();
    (void)engine_->insert(bubble != nullptr ? *bubble : engine_->root(), task->entity);
    ++members_[workload_.groups[thread.group].barrier];
    tasks_.push_back(std::move(task));
  }
  result_.thread_ns.assign(tasks_.size(), 0);
  result_.thread_processor.assign(tasks_.size(), kNoPlace);
  result_.busy_ns.assign(workers_.size(), 0);
  open_tasks_ = tasks_.size();
  for (Entity* top = engine_->root().first(); top != nullptr; top = top->next_sibling()) {
    engine_->submit(*top);
  }
  return Done{};
}

void Simulation::dispatch(std::uint32_t worker) {
  while (workers_[worker].task == nullptr) {
    Entity* const entity = engine_->next(worker, nullptr);
    if (entity == nullptr) {
      return;
    }
    Task& task = *static_cast<Task*>(entity->thread.load(std::memory_order_relaxed));
    if (!task.has_ended) {
      workers_[worker].quantum_end_ns = now_ + quantum();
      begin_turn(worker, task);
      return;
    }
    engine_->remove(task.entity);  // It ended in a queue: see end().
  }
}

void Simulation::serve_woken() {
  while (std::exchange(has_woken_, false)) {
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      if (std::exchange(workers_[worker].is_woken, false)) {
        dispatch(worker);
      }
    }
  }
}

void Simulation::close() {
  for (Virtual& worker : workers_) {
    if (worker.task != nullptr) {
      worker.task->worker = kNoPlace;
      worker.task = nullptr;
    }
  }
  if (engine_ == nullptr) {
    return;
  }
  // What is left, after an error, leaves the tree by way of a queue that all look at.
  (void)engine_->change_policy(std::move(make_policy("flat").value()));
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    while (engine_->next(worker, nullptr) != nullptr) {
    }
  }
  for (const auto& task : tasks_) {
    if (task->entity.holder() != nullptr) {
      engine_->remove(task->entity);
    }
  }
  for (const auto& bubble : bubbles_) {
    if (bubble != nullptr) {
      engine_->remove(*bubble);
    }
  }
}

SimulationResult Simulation::result() const {
  SimulationResult result = result_;
  result.makespan_ns = now_;
  result.speedup = now_ == 0 ? 0 : static_cast<double>(result.work_ns) / static_cast<double>(now_);
  result.locality = all_ns_ == 0 ? 1 : local_ns_ / all_ns_;
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  for (const std::uint64_t busy : result.busy_ns) {
    sum += busy;
    most = std::max(most, busy);
  }
  result.balance =
      most == 0 ? 1 : static_cast<double>(sum) / static_cast<double>(most * result.busy_ns.size());
  return result;
}

bool Simulation::is_stuck() noexcept {
  const bool is_quiet =
      std::ranges::none_of(workers_, [](const Virtual& one) { return one.task != nullptr; });
  quiet_looks_ = is_quiet ? quiet_looks_ + 1 : 0;
  return quiet_looks_ > kQuietLooksMax;
}

SimulationProgress Simulation::progress(std::uint64_t events) const noexcept {
  return {.virtual_ns = now_,
          .events = events,
          .ended = tasks_.size() - open_tasks_,
          .threads = tasks_.size()};
}

void Simulation::stop_at(std::uint64_t end_ns) {
  now_ = end_ns;
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].task != nullptr) {
      account(worker);
    }
  }
}

void Simulation::handle(const Happening& next) {
  now_ = next.at_ns;
  if (next.worker != kNoPlace) {
    end_turn(next.worker);
    dispatch(next.worker);
  } else {
    engine_->poll_tick();
    const std::uint64_t tick_ns = engine_->tick_ns();
    happenings_.push(
        {now_ + (tick_ns == 0 ? kLookNs : std::min(tick_ns, kLookNs)), order_++, kNoPlace, 0});
    for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
      dispatch(worker);
    }
  }
  serve_woken();
}

Result<SimulationResult> Simulation::run() {
  if (Result<> opened = open(); !opened) {
    close();
    return opened.error();
  }
  for (const auto& task : tasks_) {
    if (go_on(*task)) {
      engine_->ready(task->entity);
    } else if (task->has_ended) {
      end(*task);
    }
  }
  happenings_.push({0, order_++, kNoPlace, 0});
  bool is_over = false;
  std::uint64_t count = 0;
  for (; open_tasks_ != 0 && count < options_.events_max; ++count) {
    if (count % kEventsPerReport == 0 && options_.on_progress) {
      options_.on_progress(progress(count));
    }
    const Happening next = happenings_.top();
    is_over = options_.end_ns != 0 && next.at_ns >= options_.end_ns;
    if (is_over) {
      stop_at(options_.end_ns);
      break;
    }
    happenings_.pop();
    if (next.worker != kNoPlace && next.generation != workers_[next.worker].generation) {
      continue;
    }
    handle(next);
    if (next.worker == kNoPlace && is_stuck()) {
      break;
    }
  }
  const std::size_t left = is_over ? 0 : open_tasks_;
  SimulationResult result = this->result();
  const std::vector<std::string> wrong = engine_->audit();
  close();
  if (left != 0 && count == options_.events_max && wrong.empty()) {
    return Error{Errc::refused,
                 fmt::format("sched: given up after {} events, at {:.3f} s of virtual time: "
                             "{} of {} threads had ended under policy {}; give it fewer threads, "
                             "less work, or a longer quantum",
                             options_.events_max, static_cast<double>(now_) * 1e-9,
                             tasks_.size() - left, tasks_.size(), options_.policy)};
  }
  if (left != 0) {
    return Error{Errc::refused, "sched: policy " + options_.policy + " leaves " +
                                    std::to_string(left) + " threads that never end" +
                                    (wrong.empty() ? "" : ": " + wrong.front())};
  }
  return result;
}

Result<SimulationResult> simulate(const SimulationOptions& options, const Workload& workload) {
  return Simulation{options, workload}.run();
}

}  // namespace sterna::sched
