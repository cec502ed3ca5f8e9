// What a policy sees and plans; the lock of the engine is held in all of it.
#include "sched/event.h"

namespace sterna::sched {
namespace {
constinit std::atomic<std::uint32_t> next_policy_id{1};
}  // namespace

Policy::Policy() noexcept : id_{next_policy_id.fetch_add(1, std::memory_order_relaxed)} {}

std::uint32_t Policy::last_id() noexcept {
  return next_policy_id.load(std::memory_order_relaxed) - 1;
}

Result<> Policy::prepare(const topology::Topology&) {
  return Done{};
}

void Policy::shake(View& view) noexcept {
  for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
    if (top->is_bubble()) {
      view.gather(static_cast<Bubble&>(*top));
    }
    submit(view, *top);
  }
}
void Policy::grow(View&, Entity&) noexcept {}
bool Policy::meet(View&, Entity&, const topology::Place&) noexcept {
  return false;
}
void Policy::wake(View&, Entity&) noexcept {}
bool Policy::idle(View&, const topology::Place&) noexcept {
  return false;
}
void Policy::tick(View&, Bubble*) noexcept {}
void Policy::phase(View&, std::uint32_t) noexcept {}
void Policy::leave(View&, Entity&) noexcept {}
void Policy::adjust(View&, Entity&) noexcept {}
bool Policy::offers(std::uint32_t) const noexcept {
  return false;
}

const topology::Topology& View::topology() const noexcept {
  return engine_.topology_;
}

std::uint32_t View::worker_count(const topology::Place& place) const noexcept {
  return engine_.enabled_count(place.id);
}

std::uint64_t View::now_ns() const noexcept {
  return engine_.host_.now_ns();
}

std::pmr::memory_resource& View::scratch() const noexcept {
  return *engine_.event_memory_;
}

Entity* View::first_top() const noexcept {
  Entity* const first = engine_.root_.first_;
  return first == nullptr || policy_->owns(first->ruler_) ? first : next_top(*first);
}

Entity* View::next_top(const Entity& entity) const noexcept {
  Entity* next = entity.next_;
  while (next != nullptr && !policy_->owns(next->ruler_)) {
    next = next->next_;
  }
  return next;
}

Entity& View::top_of(Entity& entity) const noexcept {
  return engine_.top_of(entity);
}

Stats View::stats(const Entity& entity) const noexcept {
  Stats stats{.memory = MemoryMap{scratch()}};
  engine_.add_stats(entity, stats);
  return stats;
}

std::uint64_t View::load(const Entity& entity) const noexcept {
  if (!entity.is_bubble_) {
    return entity.load;
  }
  std::uint64_t sum = 0;
  const auto& bubble = static_cast<const Bubble&>(entity);
  for (const Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    sum += load(*held);
  }
  return sum;
}

bool View::is_running(const Entity& thread) const noexcept {
  return !thread.is_bubble_ && engine_.host_.is_running(thread);
}

bool View::is_active(const Entity& entity) const noexcept {
  if (!entity.is_bubble_) {
    return engine_.is_ready(entity) || engine_.host_.is_running(entity);
  }
  const Entity* held = static_cast<const Bubble&>(entity).first_;
  while (held != nullptr && !is_active(*held)) {
    held = held->next_;
  }
  return held != nullptr;
}

const topology::Place& View::allowed(const Entity& entity) const noexcept {
  const std::uint32_t id = engine_.confined(entity, domain_->id);
  return *topology().places()[id];
}

bool View::may_run(const Entity& entity, const topology::Place& processor) const noexcept {
  return engine_.confined(entity, processor.id) == processor.id;
}

std::uint32_t View::free_workers(const topology::Place& place) const noexcept {
  const Engine::WorkerRange range = engine_.ranges_[place.id];
  std::uint32_t count = 0;
  for (std::uint32_t worker = range.first; worker < range.first + range.count; ++worker) {
    count += engine_.is_enabled(worker) && !engine_.host_.is_busy(worker) ? 1 : 0;
  }
  return count;
}

std::uint32_t View::waiting(const topology::Place& place) const noexcept {
  return engine_.queues_[place.id].count();
}

Entity* View::find_movable(const topology::Place& place,
                           const topology::Place& processor) const noexcept {
  Entity* unit = nullptr;
  engine_.queues_[place.id].find([&](Entity& thread) noexcept {
    unit = &thread;
    // Itself, and not only what is around it: else idle processors take from each other, for ever,
    // a bubble whose waiting thread the program has fixed elsewhere.
    bool is_free = !thread.is_settled && policy_->owns(engine_.top_of(thread).ruler_) &&
                   may_run(thread, processor);
    while (is_free && unit->planned_ == kNoPlace && unit->holder() != &engine_.root_) {
      unit = unit->holder();
      is_free = !unit->is_settled;
    }
    if (is_free && may_run(*unit, processor)) {
      return true;
    }
    unit = nullptr;
    return false;
  });
  return unit;
}

std::uint32_t View::list_waiting(std::uint32_t place, std::span<Entity*> threads) const noexcept {
  std::uint32_t count = 0;
  engine_.queues_[engine_.queue_index(place)].find([&](Entity& thread) noexcept {
    if (count < threads.size()) {
      threads[count] = &thread;
    }
    ++count;
    return false;
  });
  return count;
}

void View::ask_again(const topology::Place& place) noexcept {
  engine_.news_count_.fetch_add(Engine::kAskAgain, std::memory_order_seq_cst);
  const Engine::WorkerRange range = engine_.ranges_[place.id];
  engine_.host_.wake(range.first, range.count);
}

void View::plan(Entity& entity, std::uint32_t place) noexcept {
  if (place == kInHand && entity.planned_ != kInHand) {
    entity.taken_from_ = entity.planned_;
  }
  entity.planned_ = place;
  if (!entity.is_moved_) {
    entity.is_moved_ = true;
    entity.next_moved_ = nullptr;
    (engine_.moved_ == nullptr ? engine_.moved_ : engine_.last_moved_->next_moved_) = &entity;
    engine_.last_moved_ = &entity;
  }
}

void View::set_slice(Bubble& bubble, std::uint64_t slice_ns) noexcept {
  bubble.policy_slice_ns_ = slice_ns;
}

void View::gather(Bubble& bubble) noexcept {
  bubble.policy_slice_ns_ = 0;
  for (Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    if (held->planned_ != kNoPlace) {
      keep_inside(*held);
    }
    if (held->is_bubble_) {
      gather(static_cast<Bubble&>(*held));
    }
  }
}

void View::burst(Bubble& bubble, const topology::Place& place) noexcept {
  for (Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    if (held->planned_ == kNoPlace) {
      move(*held, place);
    }
  }
}

void View::move_memory(Entity& entity, std::uint32_t node) noexcept {
  engine_.host_.move_memory(entity, node);
}

void View::set_ruler(Entity& top, const Policy& policy) noexcept {
  top.ruler_ = policy.id();
}

bool View::is_ruled_by(const Entity& entity, const Policy& policy) const noexcept {
  return policy.owns(ruler_of(entity));
}

std::uint32_t View::ruler_of(const Entity& entity) const noexcept {
  return engine_.top_of(const_cast<Entity&>(entity)).ruler_;
}

}  // namespace sterna::sched
