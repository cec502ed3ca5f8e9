// What the engine can say about its entities: sums over the tree, where everything is, and what is
// wrong.
#include <algorithm>
#include <cstdio>

#include "sched/engine.h"

namespace sterna::sched {

void Engine::add_stats(const Entity& entity, Stats& stats) const noexcept {
  stats.memory.add(entity.memory);
  for (std::size_t i = 0; i < kAttributes; ++i) {
    const auto bit = static_cast<std::uint8_t>(1U << i);
    const std::uint64_t value = entity.attributes[i];
    if (value != 0 || (entity.set_attributes & bit) != 0) {
      stats.attributes[i] =
          (stats.set_attributes & bit) == 0 ? value : synthesis_[i](stats.attributes[i], value);
      stats.set_attributes |= bit;
    }
  }
  if (entity.is_bubble_) {
    const auto& bubble = static_cast<const Bubble&>(entity);
    for (const Entity* held = bubble.first_; held != nullptr; held = held->next_) {
      add_stats(*held, stats);
    }
    return;
  }
  stats.load += entity.load;
  ++stats.threads;
  if (host_.is_running(entity)) {
    ++stats.running;
  } else if (is_ready(entity)) {
    ++stats.ready;
  }
  const std::uint32_t last = entity.actual_place();
  if (last != kNoPlace) {
    stats.last_place = stats.last_place == kNoPlace
                           ? last
                           : topology::common_ancestor(*topology_.places()[stats.last_place],
                                                       *topology_.places()[last])
                                 .id;
  }
}

Stats Engine::stats(const Entity& entity) const noexcept {
  Stats stats;
  if (memory_nodes_ > 1) {
    stats.memory.reserve(memory_nodes_);  // Not under the lock. One node alone is not looked at.
  }
  const SpinGuard guard{lock_};
  add_stats(entity, stats);
  return stats;
}

void Engine::set_synthesis(std::size_t index, Synthesis synthesis) noexcept {
  const SpinGuard guard{lock_};
  synthesis_[index] = synthesis;
}

void Engine::audit_entity(Entity& entity, std::vector<std::string>& found) {
  const std::uint32_t target = entity.target_place();
  if (target != kAside && (target >= topology_.places().size() || enabled_count(target) == 0)) {
    found.push_back(words_for(entity) + " is planned where no worker looks");
  }
  if (!entity.is_bubble_) {
    audit_thread(entity, found);
    return;
  }
  auto& bubble = static_cast<Bubble&>(entity);
  for (Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    if (held->holder_ != &bubble) {
      found.push_back(words_for(*held) + " is in a bubble that it does not know");
    }
    audit_entity(*held, found);
  }
}

void Engine::audit_thread(Entity& thread, std::vector<std::string>& found) {
  const std::uint32_t at = thread.queued_at_.load(std::memory_order_relaxed);
  if (at != kNoPlace && at != thread.target_place()) {
    found.push_back(words_for(thread) + " waits in a queue where the plan does not want it");
  }
  if (at != kNoPlace && host_.is_running(thread)) {
    found.push_back(words_for(thread) + " runs and waits at the same time");
  }
  const bool is_nowhere = at == kNoPlace && host_.is_unserved(thread);
  thread.lost_looks_ =
      is_nowhere ? static_cast<std::uint8_t>(std::min(thread.lost_looks_ + 1, 255)) : 0;
  if (thread.lost_looks_ >= kLostLooks) {
    found.push_back(words_for(thread) +
                    " is ready and in no queue: nobody will ever run it, a fault of the runtime");
  }
}

std::string Engine::words_for(const Entity& entity) const {
  std::string name = entity.name != nullptr ? entity.name : "";
  if (name.empty() && !entity.is_bubble_) {
    name = host_.name_of(entity);
  }
  if (name.empty() && entity.is_bubble_) {
    char address[32] = "";
    const void* const handle = static_cast<const Bubble&>(entity).handle;
    (void)std::snprintf(address, sizeof address, "%p", handle);
    name = handle != nullptr ? address : "";
  }
  return std::string{entity.is_bubble_ ? "bubble " : "thread "} +
         (name.empty() ? "without a name" : name);
}

void Engine::audit_queues(std::vector<std::string>& found) const {
  bool has_runnable = false;
  for (std::size_t place = 0; place < topology_.places().size(); ++place) {
    has_runnable = has_runnable || queues_[place].count() != 0;
  }
  bool has_running = false;
  for (std::size_t worker = 0; worker < routes_.size(); ++worker) {
    const Entity* const thread = running_[worker].load(std::memory_order_relaxed);
    has_running = has_running || (thread != nullptr && host_.is_running(*thread));
  }
  const std::uint32_t aside = queues_[topology_.places().size()].count();
  if (aside != 0 && !has_runnable && !has_running) {
    found.push_back(std::to_string(aside) +
                    " threads wait aside while no processor has anything to run: the policy keeps "
                    "them from running");
  }
}

std::vector<std::string> Engine::audit() {
  std::vector<std::string> found;
  const SpinGuard guard{lock_};
  audit_entity(root_, found);
  audit_queues(found);
  if (lost_count() != 0) {
    found.push_back("policies took " + std::to_string(lost_count()) +
                    " entities and did not put them back, the first was " + first_lost_);
  }
  return found;
}

std::string Engine::place_name(std::uint32_t target) const {
  if (target >= topology_.places().size()) {
    return target == kAside ? "aside" : "nowhere";
  }
  const topology::Place& place = *topology_.places()[target];
  return std::string{topology::to_string(place.kind)} + " " + std::to_string(place.index);
}

void Engine::list_held(const Bubble& holder, std::uint32_t depth, std::size_t count_max,
                       std::vector<EntityInfo>& infos) const {
  for (const Entity* entity = holder.first_; entity != nullptr && infos.size() < count_max;
       entity = entity->next_) {
    EntityInfo& info = infos.emplace_back();
    info.depth = depth;
    info.is_bubble = entity->is_bubble_;
    info.name = entity->name != nullptr ? entity->name : "";
    info.place = place_name(entity->target_place());
    info.priority = entity->effective_priority();
    if (entity->is_bubble_) {
      list_held(static_cast<const Bubble&>(*entity), depth + 1, count_max, infos);
      continue;
    }
    info.name = info.name.empty() ? host_.name_of(*entity) : info.name;
    info.state = host_.is_running(*entity) ? "running" : is_ready(*entity) ? "ready" : "waiting";
    const std::uint32_t last = entity->actual_place();
    info.processor = last != kNoPlace ? topology_.places()[last]->index : kNoPlace;
  }
}

std::vector<EntityInfo> Engine::list(std::size_t count_max) const {
  std::vector<EntityInfo> infos;
  infos.reserve(count_max);  // Not under the lock.
  const SpinGuard guard{lock_};
  list_held(root_, 0, count_max, infos);
  return infos;
}

void Engine::place_text(const Bubble& holder, std::string& text) const {
  for (const Entity* entity = holder.first_; entity != nullptr; entity = entity->next_) {
    text += text.empty() ? "" : ", ";
    const std::uint32_t target = entity->target_place();
    const bool is_inside = entity->planned_ == kNoPlace && entity->holder_ != &root_ &&
                           target == entity->holder_->target_place();
    text += is_inside ? "inside" : place_name(target);
    if (entity->is_bubble_) {
      place_text(static_cast<const Bubble&>(*entity), text);
    }
  }
}

std::string Engine::placement() const {
  std::string text;
  const SpinGuard guard{lock_};
  place_text(root_, text);
  return text;
}

}  // namespace sterna::sched
