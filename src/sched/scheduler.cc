// The tree, the queues and the plans.
#include "sched/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "sched/policies/builtin.h"
#include "threads/traced.h"

namespace sterna::sched {
namespace {

namespace ThreadFlag = threads::ThreadFlag;
using trace::Kind;

std::uint64_t place_key(std::uint32_t place) noexcept {
  return trace::key_of(trace::KeyClass::place, place);
}

void name_places(const topology::Topology& topology) noexcept {
  for (const topology::Place* const place : topology.places()) {
    trace::name(place_key(place->id),
                std::string{to_string(place->kind)} + " " + std::to_string(place->index));
  }
}

}  // namespace

struct Scheduler::Snapshot {
  std::vector<EntityView> views;
  std::vector<Entity*> entities;
};

Result<std::unique_ptr<Scheduler>> Scheduler::open(const SchedulerOptions& options) {
  check(options.topology != nullptr, "a scheduler has a topology");
  if (options.workers.empty()) {
    return Error{Errc::invalid_argument, "sched: no worker is given; a scheduler needs 1 at least"};
  }
  for (std::size_t i = 0; i < options.workers.size(); ++i) {
    const topology::Place& place = *options.workers[i];
    if (!place.children.empty()) {
      return Error{Errc::invalid_argument,
                   "sched: worker " + std::to_string(i) + " is not on a processor of the topology"};
    }
    if (i > 0 && place.pu_first < options.workers[i - 1]->pu_first) {
      return Error{Errc::invalid_argument,
                   "sched: workers must be in the order of their processors; worker " +
                       std::to_string(i) + " is not"};
    }
  }
  return std::unique_ptr<Scheduler>{new Scheduler{options}};
}

Scheduler::Scheduler(const SchedulerOptions& options)
    : topology_{*options.topology},
      policy_{options.policy != nullptr ? *options.policy : kFlatPolicy},
      steal_{options.steal},
      ranges_(options.topology->places().size()),
      queues_{std::make_unique<SharedQueue[]>(options.topology->places().size())} {
  root_.planned_place.store(topology_.root().id, std::memory_order_relaxed);
  if (trace::is_on()) {
    name_places(topology_);
  }
  for (std::uint32_t worker = 0; worker < options.workers.size(); ++worker) {
    const topology::Place& own = *options.workers[worker];
    Route route{.places = {}, .own_count = 0, .processor_place = own.id};
    for (const topology::Place* place = &own; place != nullptr; place = place->parent) {
      route.places.push_back(place->id);
      WorkerRange& range = ranges_[place->id];
      if (range.count == 0) {
        range.first = worker;
      }
      range.count = worker - range.first + 1;
    }
    route.own_count = route.places.size();
    if (steal_) {
      std::vector<const topology::Place*> others;
      for (const topology::Place* const place : topology_.places()) {
        if (std::find(route.places.begin(), route.places.end(), place->id) == route.places.end()) {
          others.push_back(place);
        }
      }
      std::stable_sort(others.begin(), others.end(), [&](const auto* a, const auto* b) {
        return topology::distance(own, *a) < topology::distance(own, *b);
      });
      for (const topology::Place* const place : others) {
        route.places.push_back(place->id);
      }
    }
    routes_.push_back(std::move(route));
  }
}

Scheduler::~Scheduler() {
  check(root_.empty(), "all entities have left the tree when the scheduler ends");
}

void Scheduler::insert(Bubble& holder, Entity& entity) noexcept {
  check(entity.program_place == kNoPlace || entity.program_place < topology_.places().size(),
        "the place of an entity is one of the topology");
  const SpinGuard guard{tree_lock_};
  check(entity.holder_ == nullptr && &entity != &root_, "an entity has one holder at a time");
  entity.holder_ = &holder;
  entity.previous_ = holder.last_;
  entity.next_ = nullptr;
  (holder.last_ == nullptr ? holder.first_ : holder.last_->next_) = &entity;
  holder.last_ = &entity;
  ++entity_count_;
  const std::uint32_t place = entity.program_place != kNoPlace
                                  ? entity.program_place
                                  : holder.planned_place.load(std::memory_order_relaxed);
  entity.planned_place.store(place, std::memory_order_relaxed);
}

void Scheduler::remove(Entity& entity) noexcept {
  const SpinGuard guard{tree_lock_};
  Bubble* const holder = entity.holder_;
  check(holder != nullptr, "an entity is removed once, after it was inserted");
  check(!entity.is_bubble_ || static_cast<Bubble&>(entity).empty(),
        "a bubble is empty when it leaves the tree");
  (entity.previous_ == nullptr ? holder->first_ : entity.previous_->next_) = entity.next_;
  (entity.next_ == nullptr ? holder->last_ : entity.next_->previous_) = entity.previous_;
  entity.holder_ = nullptr;
  --entity_count_;
}

void Scheduler::take_snapshot(const Bubble& holder, std::uint32_t parent,
                              Snapshot& snapshot) const {
  for (Entity* entity = holder.first_; entity != nullptr; entity = entity->next_) {
    const auto index = static_cast<std::uint32_t>(snapshot.views.size());
    snapshot.views.push_back({.parent = parent,
                              .is_bubble = entity->is_bubble_,
                              .load = entity->load,
                              .program_place = entity->program_place});
    snapshot.entities.push_back(entity);
    if (entity->is_bubble_) {
      take_snapshot(static_cast<const Bubble&>(*entity), index, snapshot);
    }
  }
}

void Scheduler::plan() {
  // The policy thinks without the lock; whoever joins or leaves the tree meanwhile is not in the
  // plan.
  Snapshot snapshot;
  for (bool is_taken = false; !is_taken;) {
    std::uint32_t count = 0;
    {
      const SpinGuard guard{tree_lock_};
      count = entity_count_;
    }
    snapshot.views.reserve(count);
    snapshot.entities.reserve(count);
    const SpinGuard guard{tree_lock_};
    is_taken = entity_count_ <= count;  // Nothing allocates under the lock.
    if (is_taken) {
      take_snapshot(root_, kNoParent, snapshot);
    }
  }
  std::vector<std::uint32_t> places(snapshot.views.size(), kNoPlace);
  policy_.plan({topology_, topology_.root(), snapshot.views}, places);
  std::vector<Planned> plan;
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::uint32_t place = places[i];
    check(place < topology_.places().size(), "a policy places every entity on the machine");
    // A place without a worker would starve: the nearest one above that has workers.
    while (ranges_[place].count == 0) {
      place = topology_.places()[place]->parent->id;
    }
    plan.push_back({snapshot.entities[i], place});
  }
  std::sort(plan.begin(), plan.end(),
            [](const Planned& a, const Planned& b) { return a.entity < b.entity; });
  {
    const SpinGuard guard{tree_lock_};
    commit(root_, plan);
  }
  requeue();
}

void Scheduler::commit(Bubble& holder, std::span<const Planned> plan) noexcept {
  for (Entity* entity = holder.first_; entity != nullptr; entity = entity->next_) {
    const auto found = std::lower_bound(
        plan.begin(), plan.end(), entity,
        [](const Planned& planned, const Entity* wanted) { return planned.entity < wanted; });
    if (found != plan.end() && found->entity == entity) {
      entity->planned_place.store(found->place, std::memory_order_relaxed);
    }
    if (entity->is_bubble_) {
      commit(static_cast<Bubble&>(*entity), plan);
    }
  }
}

void Scheduler::requeue() noexcept {
  // Each thread is popped once here and pushed once: it is in one queue or in our hands.
  threads::RunQueue all;
  for (std::size_t place = 0; place < topology_.places().size(); ++place) {
    while (threads::Thread* const thread = queues_[place].pop()) {
      all.push_back(*thread);
    }
  }
  while (threads::Thread* const thread = all.pop_front()) {
    enqueue(*thread);
  }
}

void Scheduler::enqueue(threads::Thread& thread) noexcept {
  const auto& entity = *static_cast<const Entity*>(thread.entity);
  std::uint32_t place = entity.planned_place.load(std::memory_order_relaxed);
  if (place == kNoPlace || ranges_[place].count == 0) {
    place = topology_.root().id;
  }
  if ((thread.flags & ThreadFlag::traced) != 0) [[unlikely]] {
    threads::trace_queue(Kind::queued, thread, place_key(place));
  }
  queues_[place].push(thread);  // From here on the thread may run and end.
  if (threads::Team* const team = team_.load(std::memory_order_acquire); team != nullptr) {
    const WorkerRange range = ranges_[place];
    team->wake_idle(range.first, range.count);
  }
}

threads::Thread* Scheduler::next(threads::Worker& worker) noexcept {
  const Route& route = routes_[threads::worker_index(worker)];
  for (const std::uint32_t place : route.places) {
    if (threads::Thread* const thread = queues_[place].pop(); thread != nullptr) {
      static_cast<Entity*>(thread->entity)
          ->actual_place.store(route.processor_place, std::memory_order_relaxed);
      if ((thread->flags & ThreadFlag::traced) != 0) [[unlikely]] {
        threads::trace_queue(Kind::taken, *thread, place_key(place));
      }
      return thread;
    }
  }
  return nullptr;
}

void Scheduler::ready(threads::Thread& thread, threads::Worker*) noexcept {
  enqueue(thread);
}

void Scheduler::ended(threads::Thread& thread) noexcept {
  remove(*static_cast<Entity*>(thread.entity));
}

bool Scheduler::has_work(const threads::Worker& worker) const noexcept {
  const Route& route = routes_[threads::worker_index(worker)];
  return std::any_of(route.places.begin(), route.places.end(),
                     [&](std::uint32_t place) { return queues_[place].has_any(); });
}

}  // namespace sterna::sched
