// Threads that come to be beside others: entities made of seeds, and who may make them.
#include <memory>
#include <new>
#include <utility>

#include "sched/engine.h"
#include "sched/scheduler.h"

namespace sterna::sched {

/// Under the lock of its holder, or of all.
std::uint32_t Engine::target_beside(const Entity& neighbour) const noexcept {
  return confined(neighbour, neighbour.holder()->target_.load(std::memory_order_relaxed));
}

std::uint32_t Engine::place_beside(const Entity& neighbour) const noexcept {
  return look_up_from(neighbour, [&] { return target_beside(neighbour); });
}

Engine::Reach Engine::reach(const Entity& neighbour, std::uint32_t worker) const noexcept {
  if (!is_enabled(worker)) {
    return Reach::no;
  }
  const std::uint32_t here = routes_[worker].front();
  return look_up_from(neighbour, [&] {
    const std::uint32_t target = target_beside(neighbour);
    if (target == kAside) {
      return Reach::no;  // Who gives it a place again knows where.
    }
    return covers(target, here)                ? Reach::planned
           : confined(neighbour, here) == here ? Reach::by_policy
                                               : Reach::no;
  });
}

/// An entity of our own.
class Scheduler::Sibling final : public Entity {
 public:
  Sibling* next_free = nullptr;
};

Scheduler::~Scheduler() {
  while (free_siblings_ != nullptr) {
    delete std::exchange(free_siblings_, free_siblings_->next_free);
  }
}

/// As new; null: no memory.
Scheduler::Sibling* Scheduler::take_sibling() noexcept {
  Sibling* sibling = nullptr;
  {
    const SpinGuard guard{siblings_lock_};
    sibling = free_siblings_;
    free_siblings_ = sibling != nullptr ? sibling->next_free : nullptr;
  }
  if (sibling == nullptr) {
    return new (std::nothrow) Sibling;
  }
  std::destroy_at(sibling);
  return std::construct_at(sibling);
}

void Scheduler::give_sibling(Sibling& sibling) noexcept {
  const SpinGuard guard{siblings_lock_};
  sibling.next_free = free_siblings_;
  free_siblings_ = &sibling;
}

void* Scheduler::add_sibling(const threads::Thread& thread) noexcept {
  Sibling* const sibling = take_sibling();
  if (sibling == nullptr) {
    return nullptr;
  }
  if (!engine_->insert_like(*static_cast<const Entity*>(thread.entity), *sibling)) {
    give_sibling(*sibling);
    return nullptr;
  }
  return static_cast<Entity*>(sibling);
}

void Scheduler::remove_sibling(void* entity) noexcept {
  auto& its = static_cast<Sibling&>(*static_cast<Entity*>(entity));
  if (its.holder() != nullptr) {
    engine_->remove(its);  // It could not be started.
  }
  give_sibling(its);
}

void Scheduler::start_sibling(threads::Thread& thread) noexcept {
  Entity& entity = *static_cast<Entity*>(thread.entity);
  know(entity, thread);
  engine_->ready(entity);
}

threads::Reach Scheduler::reach(const threads::Thread& thread,
                                const threads::Worker& worker) const noexcept {
  switch (
      engine_->reach(*static_cast<const Entity*>(thread.entity), threads::worker_index(worker))) {
    case Engine::Reach::planned:
      return threads::Reach::here;
    case Engine::Reach::by_policy:
      return threads::Reach::perhaps;
    default:
      return threads::Reach::no;
  }
}

void Scheduler::wake_beside(const threads::Thread& thread, bool several) noexcept {
  const std::uint32_t place = engine_->place_beside(*static_cast<const Entity*>(thread.entity));
  if (place >= engine_->topology().places().size()) {
    return;
  }
  const auto [first, count] = engine_->workers_below(place);
  wake(first, count);
  if (several && count < engine_->worker_count()) {
    wake(0, engine_->worker_count());  // Others may come for what waits there.
  }
}

void Scheduler::allow_seeds(bool allows) noexcept {
  takes_seeds_.store(allows, std::memory_order_relaxed);
}

}  // namespace sterna::sched
