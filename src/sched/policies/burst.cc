// Burst (paper 003 §3.4.1, fig. 5): processors pull bubbles towards themselves; at its level a
// bubble bursts and its content comes out there. So affinity is kept and every processor serves
// itself. When the time slice of a bubble is over it is regenerated: its content returns into it,
// and it is back on the list of the whole domain, to be distributed again.
#include <algorithm>

#include "sched/engine.h"
#include "sched/policies/arguments.h"
#include "sched/policies/builtin.h"
#include "sched/stealing.h"

namespace sterna::sched {
namespace {

constexpr std::uint64_t kSliceNs = 100'000'000;  // For each processor that serves a bubble.

class Burst final : public Policy {
 public:
  explicit Burst(std::uint64_t slice_ns) noexcept : slice_ns_{slice_ns} {}

  [[nodiscard]] bool wants_meet() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t tick_ns() const noexcept override { return slice_ns_ / 10 + 1; }

  void submit(View& view, Entity& top) noexcept override { view.move(top, view.domain()); }

  bool meet(View& view, Entity& entity, const topology::Place& processor) noexcept override {
    const topology::Place& here = view.place(entity.target_place());
    const topology::Place& wanted = burst_place(view, entity, here, processor);
    if (&wanted != &here) {
      // Too high: down towards this processor, or, after a regeneration, where it was.
      view.move(entity, former_place(view, entity, here, wanted));
      return true;
    }
    if (!entity.is_bubble()) {
      return false;  // A thread runs where it was met.
    }
    auto& bubble = static_cast<Bubble&>(entity);
    view.set_slice(bubble, slice_ns_ * view.worker_count(here));
    view.burst(bubble, here);
    return true;
  }

  void tick(View& view, Bubble* expired) noexcept override {
    if (expired == nullptr || expired->holder() == nullptr) {
      return;
    }
    Entity& top = view.top_of(*expired);
    if (view.is_ruled_by(top, *this) && top.is_bubble()) {
      view.gather(static_cast<Bubble&>(top));
      view.move(top, view.domain());
    }
  }

  bool idle(View& view, const topology::Place& processor) noexcept override {
    return steal_nearest(view, processor, {});
  }

 private:
  /// From `here` down to `processor`: the level the program gave it. Without one a thread stays,
  /// and a bubble bursts at the deepest place that has a processor for each of its threads, or,
  /// where there are that many bubbles beside it, of a level with a place for each.
  static const topology::Place& burst_place(const View& view, const Entity& entity,
                                            const topology::Place& here,
                                            const topology::Place& processor) noexcept {
    const topology::Place* place = &processor;
    if (entity.level != kNoLevel) {
      while (place->depth > entity.level && place != &here && place->parent != nullptr) {
        place = place->parent;
      }
      return covers(here, *place) ? *place : here;
    }
    if (!entity.is_bubble()) {
      return here;
    }
    const std::uint32_t threads = std::max(view.stats(entity).threads, 1U);
    const std::size_t siblings = sibling_count(entity);
    while (place != &here && place->parent != nullptr && view.worker_count(*place) < threads &&
           view.topology().level(place->depth).size() > siblings) {
      place = place->parent;
    }
    return covers(here, *place) ? *place : here;
  }

  /// Where a bubble ran last, at the level of `wanted`, if its threads have room there beside those
  /// that wait; else `wanted`. Bubbles that share a place are regenerated together: the first to
  /// return leaves room for the others.
  static const topology::Place& former_place(const View& view, const Entity& entity,
                                             const topology::Place& here,
                                             const topology::Place& wanted) noexcept {
    const std::uint32_t last = entity.is_bubble() ? view.stats(entity).last_place : kNoPlace;
    if (last == kNoPlace) {
      return wanted;
    }
    const topology::Place* place = &view.place(last);
    while (place->depth > wanted.depth) {
      place = place->parent;
    }
    const std::uint32_t waiting = view.waiting(*place);
    const bool is_free =
        place->depth == wanted.depth && covers(here, *place) && view.worker_count(*place) != 0 &&
        (waiting == 0 || waiting + view.stats(entity).threads <= view.worker_count(*place));
    return is_free ? *place : wanted;
  }

  static std::size_t sibling_count(const Entity& entity) noexcept {
    std::size_t count = 0;
    for (const Entity* one = entity.holder()->first(); one != nullptr; one = one->next_sibling()) {
      count += one->is_bubble() ? 1 : 0;
    }
    return count;
  }

  const std::uint64_t slice_ns_;
};

Result<std::unique_ptr<Policy>> make(PolicyArguments arguments) {
  std::uint64_t slice_ns = kSliceNs;
  for (const std::string_view argument : arguments) {
    auto slice = to_slice_ns(argument);
    if (!slice) {
      return slice.error();
    }
    if (!slice.value()) {
      return unexpected_argument("burst", argument, kBurstPolicy.arguments);
    }
    slice_ns = *slice.value();
  }
  return try_make<Policy, Burst>(slice_ns);
}

}  // namespace

constinit const PolicyEntry kBurstPolicy{
    .name = "burst",
    .arguments = "slice=MS",
    .summary = "processors pull bubbles down, which burst at their level and are regenerated later",
    .make = make,
};

}  // namespace sterna::sched
