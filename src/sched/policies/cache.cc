// Cache affinity: what ran somewhere goes there again, with the bubble it belongs to, unless that
// part of the machine has much more than its share. Bubbles are opened less readily than by spread,
// and a processor without work takes some within its own memory node, only then from others.
#include "sched/distribution.h"
#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/stealing.h"

namespace sterna::sched {
namespace {

/// The child of `place` below which all of the entity ran last.
std::uint32_t where_it_ran(const View& view, const Entity& entity, const topology::Place& place) {
  const std::uint32_t last = view.stats(entity).last_place;
  if (last != kNoPlace) {
    for (const topology::Place* const child : place.children) {
      if (covers(*child, view.place(last))) {
        return child->id;
      }
    }
  }
  return kNoPlace;
}

constexpr DistributionRules kRules{.tolerance_percent = 50, .attraction = where_it_ran};

class Cache final : public Policy {
 public:
  void submit(View& view, Entity&) noexcept override { shake(view); }
  void grow(View& view, Entity&) noexcept override { shake(view); }
  void shake(View& view) noexcept override { Distribution{view, kRules}.run(); }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    const auto* const node = topology::enclosing(processor, topology::PlaceKind::numa);
    return (node != nullptr && covers(view.domain(), *node) &&
            steal_nearest(view, processor, {.within = node})) ||
           steal_nearest(view, processor, {});
  }
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  if (!arguments.empty()) {
    return unexpected_argument("cache", arguments.front(), {});
  }
  return try_make<Policy, Cache>();
}

}  // namespace

constinit const PolicyEntry kCachePolicy{
    .name = "cache",
    .arguments = "",
    .summary = "what ran on a processor returns there with its bubble, if the load allows it",
    .make = make,
};

}  // namespace sterna::sched
