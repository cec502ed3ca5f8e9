// What the program changes of entities that are in the tree, running or not: their holder, and
// where they are now, how urgent they are.
#include "base/check.h"
#include "sched/event.h"

namespace sterna::sched {

/// Before it is taken out of its holder.
std::uint32_t Engine::plan_that_stays(const Entity& entity, const Bubble& holder) const noexcept {
  const std::uint32_t plan = entity.planned_ != kNoPlace
                                 ? entity.planned_
                                 : entity.target_.load(std::memory_order_relaxed);
  return plan == kAside && &holder != &root_ ? kNoPlace : plan;
}

Result<> Engine::change_holder(Bubble& holder, Entity& entity, HolderChange change) noexcept {
  Event event{*this};
  Bubble* const former = entity.holder();
  check(former != nullptr, "an entity changes its holder while it has one");
  if (Result<> allowed = check_holder(holder, entity); !allowed) {
    return allowed;
  }
  const std::uint32_t ruler = top_of(entity).ruler_;
  const bool becomes_outermost = &holder == &root_;
  if (former == &root_ && !becomes_outermost) {
    event.policy().leave(event.view, entity);  // One less of those that it places.
  }
  const std::uint32_t plan =
      change == HolderChange::stays ? plan_that_stays(entity, holder) : kNoPlace;
  unlink(entity);
  link(holder, entity);
  entity.ruler_ = ruler;
  if (top_of(entity).ruler_ != ruler) {  // What another policy has noted means nothing here.
    entity.policy_word = 0;
    if (entity.is_bubble_) {
      forget_policy(static_cast<Bubble&>(entity));
    }
  }
  if (change == HolderChange::now && entity.is_bubble_) {
    event.view.gather(static_cast<Bubble&>(entity));
  }
  event.view.plan(entity, plan);
  updated(entity);
  if (change == HolderChange::now && becomes_outermost) {
    event.policy().submit(event.view, entity);
  }
  return Done{};
}

void Engine::put(Entity& entity, std::uint32_t place) noexcept {
  Event event{*this};
  if (entity.is_bubble_) {
    event.view.gather(static_cast<Bubble&>(entity));
  }
  event.view.plan(entity, place);
}

void Engine::set_priority(Entity& entity, std::uint8_t priority) noexcept {
  Event event{*this};
  entity.priority = priority;
  updated(entity);
  if (entity.holder() != nullptr) {
    event.policy().adjust(event.view, entity);
  }
}

}  // namespace sterna::sched
