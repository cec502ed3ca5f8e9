// See scheduler.h: between threads and entities.
#include "sched/scheduler.h"

#include "base/clock.h"
#include "threads/traced.h"

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

void trace_place(trace::Kind kind, const threads::Thread& thread, const Entity& entity) noexcept {
  if ((thread.flags & threads::ThreadFlag::traced) != 0) [[unlikely]] {
    threads::trace_queue(kind, thread, place_key(entity.target_place()));
  }
}

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
  if (trace::is_on()) {
    name_places(*options.topology);
  }
  return scheduler;
}

threads::Thread* Scheduler::next(threads::Worker& worker, const threads::Thread* leaving) noexcept {
  const Entity* const entity = leaving != nullptr ? &entity_of(*leaving) : nullptr;
  Entity* const found = engine_->next(threads::worker_index(worker), entity);
  if (found == nullptr) {
    return nullptr;
  }
  auto* const thread = static_cast<threads::Thread*>(found->thread.load(std::memory_order_relaxed));
  trace_place(trace::Kind::taken, *thread, *found);
  return thread;
}

void Scheduler::ready(threads::Thread& thread, threads::Worker*) noexcept {
  Entity& entity = entity_of(thread);
  // Relaxed: who finds the entity in a queue sees it through the lock of that queue.
  if (entity.thread.load(std::memory_order_relaxed) != &thread) {
    entity.thread.store(&thread, std::memory_order_relaxed);
  }
  trace_place(trace::Kind::queued, thread, entity);
  engine_->ready(entity);
}

void Scheduler::ended(threads::Thread& thread) noexcept {
  engine_->remove(entity_of(thread));
}

bool Scheduler::has_work(const threads::Worker& worker) const noexcept {
  return engine_->has_work(threads::worker_index(worker));
}

void Scheduler::wake(std::uint32_t first, std::uint32_t count) noexcept {
  if (threads::Team* const team = team_.load(std::memory_order_acquire); team != nullptr) {
    team->wake_idle(first, count);
  }
}

// Threads leave when they yield or wait: there is nothing here that stops a computation.
void Scheduler::preempt(std::uint32_t) noexcept {}

void Scheduler::move_memory(Entity&, std::uint32_t) noexcept {}

bool Scheduler::is_running(const Entity& entity) const noexcept {
  const auto* const thread =
      static_cast<const threads::Thread*>(entity.thread.load(std::memory_order_relaxed));
  // Relaxed: a hint.
  return thread != nullptr && thread->on_processor.load(std::memory_order_relaxed) != 0;
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
