// What the engine can say about its entities: sums over the tree, where everything is, and what is
// wrong.
#include <algorithm>
#include <cstdio>

#include "sched/engine.h"

namespace sterna::sched {

namespace {

/// By what the program knows it, or, if it has made none, by where it is.
std::uint64_t key_of(const Bubble& bubble) noexcept {
  const void* const handle = bubble.handle != nullptr ? bubble.handle : &bubble;
  return reinterpret_cast<std::uint64_t>(handle);
}

}  // namespace

/// Values of bits that are not set say nothing, but for those that are not 0.
void Engine::add_attributes(const std::array<std::uint64_t, kAttributes>& values, std::uint8_t set,
                            Stats& stats) const noexcept {
  for (std::size_t i = 0; i < kAttributes; ++i) {
    const auto bit = static_cast<std::uint8_t>(1U << i);
    if (values[i] != 0 || (set & bit) != 0) {
      stats.attributes[i] = (stats.set_attributes & bit) == 0
                                ? values[i]
                                : synthesis_[i](stats.attributes[i], values[i]);
      stats.set_attributes |= bit;
    }
  }
}

/// `joined` becomes the smallest place around both; kNoPlace: none.
void Engine::join_places(std::uint32_t& joined, std::uint32_t place) const noexcept {
  if (joined == kNoPlace || place == kNoPlace) {
    joined = joined == kNoPlace ? place : joined;
    return;
  }
  const auto& places = topology_.places();
  joined = topology::common_ancestor(*places[joined], *places[place]).id;
}

void Engine::add_sums(const Stats& from, Stats& to) const noexcept {
  to.threads += from.threads;
  to.ready += from.ready;
  to.running += from.running;
  to.load += from.load;
  to.memory.add(from.memory);
  add_attributes(from.attributes, from.set_attributes, to);
  join_places(to.last_place, from.last_place);
}

void Engine::add_stats(const Entity& entity, Stats& stats) const noexcept {
  stats.memory.add(entity.memory);
  add_attributes(entity.attributes, entity.set_attributes, stats);
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
  join_places(stats.last_place, entity.actual_place());
}

Stats Engine::stats(const Entity& entity) const noexcept {
  Stats stats;
  if (memory_nodes_ > 1) {
    stats.memory.reserve(memory_nodes_);  // Not under the lock. One node alone is not looked at.
  }
  const TreeGuard guard{lock_};
  add_stats(entity, stats);
  return stats;
}

void Engine::set_synthesis(std::size_t index, Synthesis synthesis) noexcept {
  const TreeGuard guard{lock_};
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
    if (held->holder() != &bubble) {
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
  const TreeGuard guard{lock_};
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

// What an entity says of itself: what is summed up comes later.
EntityInfo Engine::describe(const Entity& entity, std::uint32_t depth) const {
  EntityInfo info;
  info.depth = depth;
  info.is_bubble = entity.is_bubble_;
  info.name = entity.name != nullptr ? entity.name : "";
  info.place = place_name(entity.target_place());
  info.priority = entity.effective_priority();
  const Bubble* const holder = entity.holder() != &root_ ? entity.holder() : nullptr;
  info.holder = holder != nullptr ? key_of(*holder) : 0;
  if (entity.is_bubble_) {
    info.key = key_of(static_cast<const Bubble&>(entity));
    return info;
  }
  const ThreadLook look = host_.look_at(entity);
  info.key = look.id;
  info.cpu_ns = look.cpu_ns;
  info.name = info.name.empty() ? host_.name_of(entity) : info.name;
  info.state = host_.is_running(entity) ? "running" : is_ready(entity) ? "ready" : "waiting";
  const std::uint32_t last = entity.actual_place();
  info.processor = last != kNoPlace ? topology_.places()[last]->index : kNoPlace;
  return info;
}

// One walk over the tree, however deep: the sums of what is held make those of the holder.
Stats Engine::list_held(const Bubble& holder, std::uint32_t depth, std::size_t count_max,
                        std::vector<EntityInfo>& infos) const {
  Stats sum;
  for (const Entity* entity = holder.first_; entity != nullptr; entity = entity->next_) {
    const std::size_t at = infos.size();
    if (at < count_max) {
      infos.push_back(describe(*entity, depth));
    }
    Stats its;
    if (entity->is_bubble_) {
      its = list_held(static_cast<const Bubble&>(*entity), depth + 1, count_max, infos);
      its.memory.add(entity->memory);
      add_attributes(entity->attributes, entity->set_attributes, its);
    } else {
      add_stats(*entity, its);
    }
    add_sums(its, sum);
    if (at < count_max) {
      infos[at].last_place = its.last_place != kNoPlace ? place_name(its.last_place) : "";
      infos[at].stats = its;
    }
  }
  return sum;
}

std::vector<EntityInfo> Engine::list(std::size_t count_max) const {
  std::vector<EntityInfo> infos;
  infos.reserve(count_max);  // Not under the lock.
  const TreeGuard guard{lock_};
  static_cast<void>(list_held(root_, 0, count_max, infos));
  return infos;
}

void Engine::place_text(const Bubble& holder, std::string& text) const {
  for (const Entity* entity = holder.first_; entity != nullptr; entity = entity->next_) {
    text += text.empty() ? "" : ", ";
    const std::uint32_t target = entity->target_place();
    const bool is_inside = entity->planned_ == kNoPlace && entity->holder() != &root_ &&
                           target == entity->holder()->target_place();
    text += is_inside ? "inside" : place_name(target);
    if (entity->is_bubble_) {
      place_text(static_cast<const Bubble&>(*entity), text);
    }
  }
}

std::string Engine::placement() const {
  std::string text;
  const TreeGuard guard{lock_};
  place_text(root_, text);
  return text;
}

}  // namespace sterna::sched
