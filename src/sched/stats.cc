// What the engine can say about its entities: sums over the tree, where everything is, and what is
// wrong.
#include <algorithm>

#include "sched/engine.h"

namespace sterna::sched {

void Engine::add_stats(const Entity& entity, Stats& stats) const noexcept {
  stats.load += entity.load;
  stats.memory.add(entity.memory);
  for (std::size_t i = 0; i < stats.attributes.size(); ++i) {
    stats.attributes[i] += entity.attributes[i];
  }
  if (entity.is_bubble_) {
    const auto& bubble = static_cast<const Bubble&>(entity);
    for (const Entity* held = bubble.first_; held != nullptr; held = held->next_) {
      add_stats(*held, stats);
    }
    return;
  }
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
  const SpinGuard guard{lock_};
  Stats stats;
  add_stats(entity, stats);
  return stats;
}

namespace {

std::string text_of(const Entity& entity) {
  return std::string{entity.is_bubble() ? "bubble " : "thread "} +
         (entity.name != nullptr ? entity.name : "without a name");
}

}  // namespace

void Engine::audit_entity(const Entity& entity, std::vector<std::string>& found) const {
  const std::uint32_t target = entity.target_place();
  if (target != kAside && (target >= topology_.places().size() || ranges_[target].count == 0)) {
    found.push_back(text_of(entity) + " is planned where no worker looks");
  }
  if (entity.is_bubble_) {
    const auto& bubble = static_cast<const Bubble&>(entity);
    for (const Entity* held = bubble.first_; held != nullptr; held = held->next_) {
      if (held->holder_ != &bubble) {
        found.push_back(text_of(*held) + " is in a bubble that it does not know");
      }
      audit_entity(*held, found);
    }
    return;
  }
  const std::uint32_t at = entity.queued_at_.load(std::memory_order_relaxed);
  if (at != kNoPlace && at != target) {
    found.push_back(text_of(entity) + " waits in a queue where the plan does not want it");
  }
  if (at != kNoPlace && host_.is_running(entity)) {
    found.push_back(text_of(entity) + " runs and waits at the same time");
  }
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

std::vector<std::string> Engine::audit() const {
  std::vector<std::string> found;
  const SpinGuard guard{lock_};
  audit_entity(root_, found);
  audit_queues(found);
  if (lost_count() != 0) {
    found.push_back("policies took " + std::to_string(lost_count()) +
                    " entities and did not put them back");
  }
  return found;
}

void Engine::place_text(const Bubble& holder, std::string& text) const {
  for (const Entity* entity = holder.first_; entity != nullptr; entity = entity->next_) {
    text += text.empty() ? "" : ", ";
    const std::uint32_t target = entity->target_place();
    if (entity->planned_ == kNoPlace && entity->holder_ != &root_ &&
        target == entity->holder_->target_place()) {
      text += "inside";
    } else if (target >= topology_.places().size()) {
      text += target == kAside ? "aside" : "nowhere";
    } else {
      const topology::Place& place = *topology_.places()[target];
      text += std::string{topology::to_string(place.kind)} + " " + std::to_string(place.index);
    }
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
