// Memory affinity: entities go to the memory node (NUMA) that has most of what they use, as far as
// the load allows it; within a node as with cache. A processor without work prefers what has its
// memory near. What runs away from its memory can have it brought along: Host::move_memory().
#include "sched/distribution.h"
#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/stealing.h"

namespace sterna::sched {
namespace {

/// Bytes of it on the memory nodes within `place`.
std::uint64_t bytes_within(const View& view, const MemoryMap& memory,
                           const topology::Place& place) noexcept {
  if (const auto* const node = topology::enclosing(place, topology::PlaceKind::numa)) {
    return memory.on(node->index);
  }
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < view.topology().count(topology::PlaceKind::numa); ++i) {
    if (const topology::Place* const node = view.topology().find(topology::PlaceKind::numa, i);
        covers(place, *node)) {
      sum += memory.on(i);
    }
  }
  return sum;
}

/// The child with most of its memory; where all are on one node, where it ran last.
std::uint32_t where_its_memory_is(const View& view, const Entity& entity,
                                  const topology::Place& place) {
  const Stats stats = view.stats(entity);
  const bool is_in_node = topology::enclosing(place, topology::PlaceKind::numa) != nullptr;
  std::uint32_t best = kNoPlace;
  std::uint64_t most = 0;
  for (const topology::Place* const child : place.children) {
    if (is_in_node) {
      if (stats.last_place != kNoPlace && covers(*child, view.place(stats.last_place))) {
        best = child->id;
      }
    } else if (const std::uint64_t bytes = bytes_within(view, stats.memory, *child); bytes > most) {
      best = child->id;
      most = bytes;
    }
  }
  return best;
}

/// Parts in a thousand of its memory that are near, then those without memory, which go anywhere.
std::uint64_t nearness(const View& view, const Entity& entity, const topology::Place& processor) {
  const MemoryMap memory = view.stats(entity).memory;
  const std::uint64_t total = memory.total();
  return total == 0 ? 1 : 2 + bytes_within(view, memory, processor) / (total / 1000 + 1);
}

constexpr DistributionRules kRules{.tolerance_percent = 25, .attraction = where_its_memory_is};

class Memory final : public Policy {
 public:
  void submit(View& view, Entity&) noexcept override { shake(view); }
  void grow(View& view, Entity&) noexcept override { shake(view); }
  void shake(View& view) noexcept override {
    Distribution{view, kRules}.run();
    for (Entity* top = view.first_top(); top != nullptr; top = view.next_top(*top)) {
      bring_memory(view, *top);
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    const auto* const node = topology::enclosing(processor, topology::PlaceKind::numa);
    return (node != nullptr && covers(view.domain(), *node) &&
            steal_nearest(view, processor, {.within = node})) ||
           steal_nearest(view, processor, {.score = nearness});
  }

 private:
  /// Threads that the load has sent to a node without any of their memory.
  static void bring_memory(View& view, Entity& entity) noexcept {
    if (entity.is_bubble()) {
      auto& bubble = static_cast<Bubble&>(entity);
      for (Entity* held = bubble.first(); held != nullptr; held = held->next_sibling()) {
        bring_memory(view, *held);
      }
    }
    const std::uint32_t planned = entity.planned_place();
    if (planned >= view.topology().places().size() || entity.memory.total() == 0) {
      return;
    }
    const auto* const node = topology::enclosing(view.place(planned), topology::PlaceKind::numa);
    if (node != nullptr && entity.memory.on(node->index) == 0) {
      view.move_memory(entity, node->index);
    }
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  if (!arguments.empty()) {
    return unexpected_argument("memory", arguments.front(), {});
  }
  return try_make<Policy, Memory>();
}

}  // namespace

constinit const PolicyEntry kMemoryPolicy{
    .name = "memory",
    .arguments = "",
    .summary = "bubbles go to the memory node that has most of their data, if the load allows it",
    .make = make,
};

}  // namespace sterna::sched
