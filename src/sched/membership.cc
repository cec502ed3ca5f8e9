// The tree: who comes into it, and who leaves. Inside a bubble that takes the lock of the bubble
// alone, see tree_lock.h, unless the policy has to hear of it.
#include <algorithm>
#include <memory>
#include <new>

#include "base/check.h"
#include "sched/event.h"

namespace sterna::sched {
namespace {

constexpr std::size_t kScratchBytesPerEntity = 256;

std::string name_of(const Entity& entity) {
  const std::string kind = entity.is_bubble() ? "bubble" : "thread";
  return entity.name != nullptr ? kind + " \"" + entity.name + "\"" : "a " + kind;
}

Error refusal(const Bubble& holder, const Entity& entity, const std::string& rule) {
  return Error{Errc::invalid_argument, "sched: " + name_of(entity) + " cannot be put into " +
                                           name_of(holder) + ": " + rule};
}

std::uint32_t height(const Entity& entity) noexcept {
  std::uint32_t most = 0;
  if (entity.is_bubble()) {
    const auto& bubble = static_cast<const Bubble&>(entity);
    for (const Entity* held = bubble.first(); held != nullptr; held = held->next_sibling()) {
      most = std::max(most, 1 + height(*held));
    }
  }
  return most;
}

}  // namespace

void Engine::grow_scratch() noexcept {
  const std::size_t wanted = std::size_t{lock_.held_about()} * kScratchBytesPerEntity;
  if (scratch_bytes_.load(std::memory_order_relaxed) >= wanted) {
    return;
  }
  // Outside the lock. Without memory events take theirs from the heap, when they need it.
  std::unique_ptr<std::byte[]> larger{new (std::nothrow) std::byte[2 * wanted]};
  if (larger != nullptr) {
    const TreeGuard guard{lock_};
    if (scratch_bytes_.load(std::memory_order_relaxed) < 2 * wanted) {
      scratch_.swap(larger);
      scratch_bytes_.store(2 * wanted, std::memory_order_relaxed);
    }
  }
}

Result<> Engine::check_insert(const Bubble& holder, const Entity& entity) const noexcept {
  if (entity.holder() != nullptr) {
    return refusal(holder, entity, "an entity has one holder at a time");
  }
  return check_holder(holder, entity);
}

/// Whatever holds it now.
Result<> Engine::check_holder(const Bubble& holder, const Entity& entity) const noexcept {
  const auto refuse = [&](const std::string& rule) { return refusal(holder, entity, rule); };
  if (entity.program_place != kNoPlace && entity.program_place >= topology_.places().size()) {
    return refuse("its place " + std::to_string(entity.program_place) +
                  " does not exist; the machine has " + std::to_string(topology_.places().size()));
  }
  if (entity.level != kNoLevel && entity.level >= topology_.depth_count()) {
    return refuse("its level " + std::to_string(entity.level) + " does not exist; the deepest is " +
                  std::to_string(topology_.depth_count() - 1));
  }
  if (entity.priority != kPriorityOfHolder && entity.priority >= kPriorityCount) {
    return refuse("its priority " + std::to_string(entity.priority) + " is above " +
                  std::to_string(kPriorityCount - 1));
  }
  if (&entity == &root_) {
    return refuse("an entity has one holder at a time");
  }
  std::uint32_t depth = 1;
  for (const Bubble* outer = &holder; outer != nullptr; outer = outer->holder()) {
    if (outer == &entity) {
      return refuse("a bubble does not hold itself");
    }
    ++depth;
  }
  if (depth + height(entity) > kNestingMax) {
    return refuse("bubbles are nested " + std::to_string(kNestingMax) + " deep at most");
  }
  return Done{};
}

void Engine::link(Bubble& holder, Entity& entity) noexcept {
  entity.holder_.store(&holder, std::memory_order_relaxed);
  entity.previous_ = holder.last_;
  entity.next_ = nullptr;
  (holder.last_ == nullptr ? holder.first_ : holder.last_->next_) = &entity;
  holder.last_ = &entity;
  lock_.count(&holder, true);
  if (trace::is_on()) [[unlikely]] {
    record_join(entity);
  }
}

/// Its holder is stored by what follows.
void Engine::unlink(Entity& entity) noexcept {
  Bubble& holder = *entity.holder();
  (entity.previous_ == nullptr ? holder.first_ : entity.previous_->next_) = entity.next_;
  (entity.next_ == nullptr ? holder.last_ : entity.next_->previous_) = entity.previous_;
  lock_.count(&holder, false);
}

/// Under the lock of all.
Result<> Engine::join_tree(Bubble& holder, Entity& entity) noexcept {
  if (Result<> allowed = check_insert(holder, entity); !allowed) {
    return allowed;
  }
  link(holder, entity);
  entity.ruler_ = policy_->id();
  entity.planned_ = kNoPlace;
  updated(entity);
  return Done{};
}

/// Under the lock of `holder`, or of all: it follows its holder, and nothing else changes.
bool Engine::joins_quietly(const Bubble& holder, const Entity& entity) const noexcept {
  const std::uint8_t priority =
      entity.priority == kPriorityOfHolder ? holder.effective_priority() : entity.priority;
  return &holder != &root_ && priority == kPriorityNormal &&
         entity.effective_priority() == kPriorityNormal &&
         (!entity.is_bubble_ || static_cast<const Bubble&>(entity).empty());
}

/// join_tree() under the lock of `holder`.
Result<> Engine::join_quietly(Bubble& holder, Entity& entity) noexcept {
  if (Result<> allowed = check_insert(holder, entity); !allowed) {
    return allowed;
  }
  link(holder, entity);
  entity.planned_ = kNoPlace;
  retarget(entity);
  return Done{};
}

/// No value: all of the tree is needed for it. `holder` may be one that `neighbour` has left.
template <typename Prepare>
std::optional<Result<>> Engine::try_join(Bubble* holder, const Entity* neighbour, Entity& entity,
                                         Prepare&& prepare) noexcept {
  const HolderGuard guard{lock_, holder};
  if (!guard.is_held() || (neighbour != nullptr && neighbour->holder() != holder)) {
    return std::nullopt;
  }
  prepare();
  return joins_quietly(*holder, entity) ? std::optional{join_quietly(*holder, entity)}
                                        : std::nullopt;
}

Result<> Engine::insert(Bubble& holder, Entity& entity) noexcept {
  auto joined = try_join(&holder, nullptr, entity, [] {});
  if (!joined) {
    const TreeGuard guard{lock_};
    joined = join_tree(holder, entity);
  }
  grow_scratch();
  return *joined;
}

Result<Bubble*> Engine::insert_beside(const Entity& neighbour, Entity& entity) noexcept {
  Bubble* holder = neighbour.holder();
  auto joined = try_join(holder, &neighbour, entity, [] {});
  if (!joined) {
    const TreeGuard guard{lock_};
    holder = neighbour.holder();
    joined = join_tree(*holder, entity);
  }
  grow_scratch();
  if (!*joined) {
    return joined->error();
  }
  return holder;
}

Result<> Engine::insert_like(const Entity& neighbour, Entity& entity) noexcept {
  const auto take_after = [&] {
    entity.program_place = neighbour.program_place;
    entity.level = neighbour.level;
    entity.priority = neighbour.priority;
    entity.name = neighbour.name;
    entity.makes_bubbles = neighbour.makes_bubbles;
  };
  auto joined = try_join(neighbour.holder(), &neighbour, entity, take_after);
  if (!joined) {
    const TreeGuard guard{lock_};
    take_after();
    joined = join_tree(*neighbour.holder(), entity);
  }
  grow_scratch();
  return *joined;
}

/// False: all of the tree is needed for it.
bool Engine::try_leave(Entity& entity) noexcept {
  Bubble* const holder = entity.holder();
  const HolderGuard guard{lock_, holder};
  if (!guard.is_held() || entity.holder() != holder || holder == nullptr || holder == &root_ ||
      entity.effective_priority() != kPriorityNormal || policy_->wants_leave()) {
    return false;
  }
  check_leaves(entity);
  forget(entity);
  return true;
}

void Engine::check_leaves(const Entity& entity) const noexcept {
  check(entity.holder() != nullptr, "an entity is removed once, after it was inserted");
  check(!entity.is_bubble_ || static_cast<const Bubble&>(entity).empty(),
        "a bubble is empty when it leaves the tree");
  check(!entity.is_queued(), "a thread that waits for a processor does not leave the tree");
}

void Engine::forget(Entity& entity) noexcept {
  forget_running(entity);
  entity.kept_.store(kNoPlace, std::memory_order_relaxed);
  unlink(entity);
  if (trace::is_on()) [[unlikely]] {
    record_bubble(trace::Kind::ended, entity, kNoPlace);
  }
  // Last of all, as is_in_tree() says: afterwards its memory may be gone.
  entity.holder_.store(nullptr, std::memory_order_release);
}

void Engine::remove(Entity& entity) noexcept {
  if (try_leave(entity)) {
    return;
  }
  const Event event{*this};
  check_leaves(entity);
  View view = event.view;
  event.policy().leave(view, entity);
  commit();  // What leaves is in no list of a plan.
  set_effective_priority(entity, kPriorityNormal);
  allow_keeping();
  forget(entity);
}

}  // namespace sterna::sched
