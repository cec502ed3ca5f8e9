// The commitment of plans: from where entities are planned to where their threads go.
#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "sched/engine.h"
#include "sched/event.h"

namespace sterna::sched {

namespace {

bool holds_more_than(const Bubble& bubble, std::uint32_t count) noexcept {
  const Entity* held = bubble.first();
  for (; held != nullptr && count > 0; --count) {
    held = held->next_sibling();
  }
  return held != nullptr;
}

}  // namespace

bool Engine::covers(std::uint32_t place, std::uint32_t processor) const noexcept {
  return place < topology_.places().size() && processor < topology_.places().size() &&
         sched::covers(*topology_.places()[place], *topology_.places()[processor]);
}

void Engine::commit() noexcept {
  put_back_what_is_lost();
  while (moved_ != nullptr) {
    Entity& entity = *moved_;
    moved_ = entity.next_moved_;
    entity.is_moved_ = false;
    retarget(entity);
  }
  if (has_recalled_) {
    // Those that wait behind a thread which computes are fetched by who is idle.
    has_recalled_ = false;
    host_.wake(0, static_cast<std::uint32_t>(routes_.size()));
  }
}

void Engine::put_back_what_is_lost() noexcept {
  for (Entity* entity = moved_; entity != nullptr; entity = entity->next_moved_) {
    if (entity->planned_ != kInHand) {
      continue;
    }
    entity->planned_ = entity->taken_from_;
    if (lost_count_.fetch_add(1, std::memory_order_relaxed) == 0) {
      (void)std::snprintf(first_lost_, sizeof first_lost_, "%s", words_for(*entity).c_str());
      event_notice_->note_lost(first_lost_);
    }
  }
}

std::uint32_t Engine::confined(const Entity& entity, std::uint32_t place) const noexcept {
  if (place >= topology_.places().size()) {
    return place;  // Aside is aside.
  }
  // From the outermost, so that the innermost decides where they contradict each other.
  const Entity* chain[kNestingMax + 1];
  std::size_t count = 0;
  for (const Entity* one = &entity; one != nullptr && count <= kNestingMax; one = one->holder()) {
    if (one->program_place != kNoPlace) {
      chain[count++] = one;
    }
  }
  const topology::Place* allowed = &topology_.root();
  while (count-- > 0) {
    const topology::Place& asked = *topology_.places()[chain[count]->program_place];
    allowed = sched::covers(asked, *allowed) ? allowed : &asked;
  }
  return confined_[sched::covers(*allowed, *topology_.places()[place]) ? place : allowed->id];
}

void Engine::retarget(Entity& entity) noexcept {
  const std::uint32_t from_holder = entity.holder() != nullptr
                                        ? entity.holder()->target_.load(std::memory_order_relaxed)
                                        : topology_.root().id;
  apply(entity, confined(entity, entity.planned_ != kNoPlace ? entity.planned_ : from_holder));
}

void Engine::apply(Entity& entity, std::uint32_t target) noexcept {
  const std::uint32_t former = entity.target_.exchange(target, std::memory_order_seq_cst);
  // That was (3), see place_queue.h.
  if (former != target && trace::is_on()) [[unlikely]] {
    record_bubble(trace::Kind::placed, entity, target);
  }
  if (entity.is_bubble_) {
    auto& bubble = static_cast<Bubble&>(entity);
    if (former == kAside && target < topology_.places().size() &&
        holds_more_than(bubble, ranges_[target].count)) {
      // They are queued in this order, so each has its turn to be the first: of a gang with more
      // threads than processors the last ones would run least, slice after slice. Of any other one
      // each finds its processor again.
      Entity* const first = bubble.first_;
      bubble.first_ = first->next_;
      bubble.first_->previous_ = nullptr;
      first->previous_ = bubble.last_;
      first->next_ = nullptr;
      bubble.last_->next_ = first;
      bubble.last_ = first;
    }
    for (Entity* held = bubble.first_; held != nullptr; held = held->next_) {
      if (held->planned_ == kNoPlace) {
        apply(*held, held->program_place == kNoPlace ? target : confined(*held, target));
      }
    }
    return;
  }
  const std::uint32_t keeper = entity.kept_.load(std::memory_order_seq_cst);  // As (4): keep().
  if (keeper != kNoPlace && !is_own_place(keeper, target)) {
    host_.recall(entity);
    has_recalled_ = true;
  }
  const std::uint32_t at = entity.queued_at_.load(std::memory_order_seq_cst);  // (4)
  if (at != kNoPlace) {
    // Also when only its priority changed.
    if (queues_[queue_index(at)].remove_misplaced(entity, at, target)) {
      note_queue(trace::Kind::taken, entity, at);
      enqueue(entity);
    }
    return;
  }
  const std::uint32_t processor = entity.actual_place();
  if (processor != kNoPlace && !covers(target, processor) && host_.is_running(entity) &&
      !is_unpreemptible(entity)) {
    host_.preempt(ranges_[processor].first);
  }
}

void Engine::refresh_priority(Entity& entity, std::uint8_t of_holder) noexcept {
  const std::uint8_t priority = entity.priority == kPriorityOfHolder
                                    ? of_holder
                                    : std::min<std::uint8_t>(entity.priority, kPriorityCount - 1);
  set_effective_priority(entity, priority);
  if (entity.is_bubble_) {
    for (Entity* held = static_cast<Bubble&>(entity).first_; held != nullptr; held = held->next_) {
      refresh_priority(*held, priority);
    }
  }
}

void Engine::set_effective_priority(Entity& entity, std::uint8_t priority) noexcept {
  const bool was_normal = entity.effective_priority() == kPriorityNormal;
  const bool is_normal = priority == kPriorityNormal;
  entity.effective_priority_.store(priority, std::memory_order_relaxed);
  priority_count_ += (was_normal ? 1 : 0) - (is_normal ? 1 : 0);
  uses_priorities_.store(priority_count_ != 0, std::memory_order_relaxed);
}

void Engine::allow_keeping() noexcept {
  const bool allows = priority_count_ == 0 && !policy_->wants_wake();
  if (allows == allows_keeping_.load(std::memory_order_relaxed)) {
    return;
  }
  allows_keeping_.store(allows, std::memory_order_seq_cst);
  host_.allow_seeds(allows);  // For the same reasons: who is ready would have to be compared.
  if (!allows) {
    recall_all(root_);
  }
}

void Engine::recall_all(Entity& entity) noexcept {
  if (entity.is_bubble_) {
    for (Entity* held = static_cast<Bubble&>(entity).first_; held != nullptr; held = held->next_) {
      recall_all(*held);
    }
  } else if (entity.kept_.load(std::memory_order_seq_cst) != kNoPlace) {
    host_.recall(entity);
    has_recalled_ = true;
  }
}

bool Engine::is_unpreemptible(const Entity& entity) const noexcept {
  const Entity* one = &entity;
  while (one != nullptr && !one->is_unpreemptible) {
    one = one->holder();
  }
  return one != nullptr;
}

}  // namespace sterna::sched
