// See scheduler.h: between threads and entities.
#include "sched/scheduler.h"

#include <cstdio>

#include "base/clock.h"
#include "threads/control/measure.h"
#include "threads/control/roster.h"
#include "threads/observation/traced.h"
#include "threads/queues/kept.h"

namespace sterna::sched {
namespace {

std::uint64_t place_key(std::uint32_t place) noexcept {
  return trace::key_of(trace::KeyClass::place, place);
}

void name_places(const topology::Topology& topology) noexcept {
  for (const topology::Place* const place : topology.places()) {
    trace::name(place_key(place->id),
                std::string{to_string(place->kind)} + " " + std::to_string(place->index));
  }
  trace::name(place_key(kAside), "aside");
}

constexpr std::uint32_t kSettledMax = 1024;

Entity& entity_of(const threads::Thread& thread) noexcept {
  return *static_cast<Entity*>(thread.entity);
}

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::open(SchedulerOptions options) {
  std::unique_ptr<Scheduler> scheduler{new Scheduler};
  auto engine = Engine::open({.topology = options.topology,
                              .workers = options.workers,
                              .policy = std::move(options.policy),
                              .host = scheduler.get()});
  if (!engine) {
    return engine.error();
  }
  scheduler->engine_ = std::move(engine.value());
  scheduler->audit_ns_ = options.audit_ns;
  scheduler->filiation_ = std::make_unique<Filiation>(*scheduler->engine_);
  scheduler->memory_ = std::make_unique<MemoryMover>(
      *options.topology, options.pages != nullptr ? *options.pages : system_pages());
  if (trace::is_on()) {
    name_places(*options.topology);
  }
  return scheduler;
}

threads::Thread* Scheduler::next(threads::Worker& worker, const threads::Thread* leaving) noexcept {
  const Entity* const entity = leaving != nullptr ? &entity_of(*leaving) : nullptr;
  const std::uint32_t index = threads::worker_index(worker);
  Entity* const found = engine_->next(index, entity);
  if (found == nullptr) {
    return nullptr;
  }
  auto* const thread = static_cast<threads::Thread*>(found->thread.load(std::memory_order_relaxed));
  if (threads::can_keep(*thread)) {
    if (const std::uint32_t keeper = engine_->keep(*found); keeper == index) {
      threads::mark_kept(*thread, worker);
    } else if (keeper != kNoPlace) {
      engine_->unkeep(*found);  // Its plan has changed since it was taken.
    }
  }
  return thread;
}

/// It runs for the first time.
void Scheduler::know(Entity& entity, threads::Thread& thread) noexcept {
  // Release: who looks at the tree without a lock finds the thread whole.
  entity.thread.store(&thread, std::memory_order_release);
  if (trace::is_on()) [[unlikely]] {
    engine_->trace_join(entity);
  }
  if (thread.priority.load(std::memory_order_relaxed) != kPriorityNormal) {
    priority_changed(thread);  // What its options say.
  }
}

void Scheduler::ready(threads::Thread& thread, threads::Worker*) noexcept {
  Entity& entity = entity_of(thread);
  // Who finds the entity in a queue sees it through the lock of that queue.
  if (entity.thread.load(std::memory_order_relaxed) != &thread) {
    know(entity, thread);
  }
  threads::Team* const team = team_.load(std::memory_order_acquire);
  if (team != nullptr && threads::can_keep(thread)) {
    if (const std::uint32_t worker = engine_->keep(entity); worker != kNoPlace) {
      threads::keep(*team, thread, worker);
      return;
    }
  } else {
    engine_->unkeep(entity);
  }
  engine_->ready(entity);
}

void Scheduler::expose(threads::Thread& thread) noexcept {
  engine_->expose(entity_of(thread));
}

void Scheduler::settle(threads::Worker& worker) noexcept {
  for (std::uint32_t i = 0; i < kSettledMax; ++i) {
    Entity* const entity = engine_->take_own(threads::worker_index(worker));
    if (entity == nullptr) {
      return;
    }
    ready(*static_cast<threads::Thread*>(entity->thread.load(std::memory_order_relaxed)), &worker);
  }
}

void Scheduler::poll() noexcept {
  if (wants_polls()) {
    engine_->poll_tick();
  }
}

bool Scheduler::wants_polls() const noexcept {
  return engine_->tick_ns() != 0;
}

void Scheduler::priority_changed(threads::Thread& thread) noexcept {
  std::uint8_t priority = 0;
  do {  // The lock of the engine orders those who change it: who was late for it looks once more.
    priority = thread.priority.load(std::memory_order_relaxed);
    engine_->set_priority(entity_of(thread), priority);
  } while (thread.priority.load(std::memory_order_relaxed) != priority);
}

void Scheduler::ended(threads::Thread& thread) noexcept {
  filiation_->ended(entity_of(thread));
}

bool Scheduler::has_work(const threads::Worker& worker) const noexcept {
  if (audit_ns_ != 0) [[unlikely]] {
    look_for_lost();
  }
  return engine_->has_work(threads::worker_index(worker));
}

int Scheduler::highest(const threads::Worker& worker) const noexcept {
  return engine_->highest(threads::worker_index(worker));
}

bool Scheduler::use_idleness() noexcept {
  return memory_->serve();
}

Result<> Scheduler::enable_worker(std::uint32_t worker, bool is_enabled) noexcept {
  threads::Team& team = *team_.load(std::memory_order_acquire);
  if (is_enabled) {
    team.enable(worker);
    engine_->enable_worker(worker, true);
    return Done{};
  }
  // The team's first, which knows whether it is the last one; what it finds there that is kept
  // comes back through expose(), for the plan that follows.
  Result<> disabled = team.disable(worker);
  if (disabled) {
    engine_->enable_worker(worker, false);
  }
  return disabled;
}

void Scheduler::look_for_lost() const noexcept {
  std::uint64_t due = next_look_ns_.load(std::memory_order_relaxed);
  const std::uint64_t now = sterna::now_ns();
  if (now < due ||
      !next_look_ns_.compare_exchange_strong(due, now + audit_ns_, std::memory_order_relaxed)) {
    return;
  }
  for (const std::string& fault : engine_->audit()) {
    std::fprintf(stderr, "sched: %s\n", fault.c_str());
  }
}

void Scheduler::wake(std::uint32_t first, std::uint32_t count) noexcept {
  if (threads::Team* const team = team_.load(std::memory_order_acquire); team != nullptr) {
    team->wake_idle(first, count);
  }
}

void Scheduler::preempt(std::uint32_t worker) noexcept {
  if (threads::Team* const team = team_.load(std::memory_order_acquire); team != nullptr) {
    threads::ask_to_leave(*team, worker);
  }
}

void Scheduler::move_memory(Entity& entity, std::uint32_t node) noexcept {
  memory_->order(entity, node);
  // As if it were done: the next plan counts on it.
  entity.memory.move_to(node);
}

Result<> Scheduler::own_memory(Entity& entity, void* base, std::size_t bytes) noexcept {
  if (Result<> owned = memory_->own(entity, base, bytes); !owned) {
    return owned;
  }
  MemoryMap map = memory_->measure(entity);
  engine_->update(entity, [&](Entity& its) { its.memory.swap(map); });  // Freed without the lock.
  return Done{};
}

bool Scheduler::is_running(const Entity& entity) const noexcept {
  const auto* const thread =
      static_cast<const threads::Thread*>(entity.thread.load(std::memory_order_acquire));
  // Relaxed: a hint.
  return thread != nullptr &&
         (entity.is_kept() ? threads::is_running(*thread)
                           : thread->on_processor.load(std::memory_order_relaxed) != 0);
}

void Scheduler::recall(Entity& entity) noexcept {
  threads::recall(*static_cast<threads::Thread*>(entity.thread.load(std::memory_order_relaxed)));
}

bool Scheduler::is_kept_ready(const Entity& entity) const noexcept {
  return threads::is_ready(
      *static_cast<const threads::Thread*>(entity.thread.load(std::memory_order_acquire)));
}

bool Scheduler::is_unserved(const Entity& entity) const noexcept {
  const auto* const thread =
      static_cast<const threads::Thread*>(entity.thread.load(std::memory_order_acquire));
  return thread != nullptr && !is_running(entity) &&
         threads::is_unserved(*thread, entity.is_kept());
}

std::uint64_t Scheduler::trace_key(const Entity& entity) const noexcept {
  const auto* const thread =
      static_cast<const threads::Thread*>(entity.thread.load(std::memory_order_acquire));
  return thread != nullptr ? threads::trace_key(*thread) : trace::kNobody;
}

std::string Scheduler::name_of(const Entity& entity) const {
  const auto* const thread =
      static_cast<const threads::Thread*>(entity.thread.load(std::memory_order_acquire));
  char name[threads::kNameBytes] = {};
  if (thread != nullptr) {
    threads::read_name(*thread, name);
  }
  return name;
}

ThreadLook Scheduler::look_at(const Entity& entity) const noexcept {
  auto* const thread = static_cast<threads::Thread*>(entity.thread.load(std::memory_order_acquire));
  return thread != nullptr ? ThreadLook{.id = thread->id.load(std::memory_order_relaxed),
                                        .cpu_ns = threads::measure(*thread)}
                           : ThreadLook{};
}

bool Scheduler::is_busy(std::uint32_t worker) const noexcept {
  const threads::Team* const team = team_.load(std::memory_order_acquire);
  return team != nullptr && team->is_busy(worker);
}

std::uint64_t Scheduler::now_ns() const noexcept {
  const threads::Team* const team = team_.load(std::memory_order_acquire);
  return team != nullptr ? team->now_ns() : sterna::now_ns();
}

}  // namespace sterna::sched
