// See stealing.h.
#include "sched/stealing.h"

#include "sched/engine.h"

namespace sterna::sched {
namespace {

struct Victim {
  const topology::Place* place = nullptr;
  Entity* unit = nullptr;
  std::uint64_t score = 0;
};

/// The best victim below `around` but not on the way to the processor itself.
Victim find_victim(const View& view, const topology::Place& around,
                   const topology::Place& processor, const StealingRules& rules) noexcept {
  Victim best;
  for (const topology::Place* const place : view.topology().places()) {
    if (!covers(around, *place) || covers(*place, processor) || view.waiting(*place) == 0 ||
        view.waiting(*place) <= view.free_workers(*place)) {
      continue;
    }
    Entity* const unit = view.find_movable(*place, processor);
    if (unit == nullptr) {
      continue;
    }
    const std::uint64_t score =
        rules.score != nullptr ? rules.score(view, *unit, processor) : view.waiting(*place);
    if (best.unit == nullptr || score > best.score) {
      best = {place, unit, score};
    }
  }
  return best;
}

/// Threads of it that are on a processor or wait for one.
std::uint32_t active_count(const View& view, const Entity& entity) noexcept {
  const Stats stats = view.stats(entity);
  return stats.ready + stats.running;
}

/// Its former place keeps something to do without it.
bool has_other_work(const View& view, const Victim& victim) noexcept {
  const Stats stats = view.stats(*victim.unit);
  return view.waiting(*victim.place) > stats.ready;
}

/// Opens `bubble` at `place`; half of its active threads, in whole entities, go to the processor.
/// Whatever is active in the one that is left.
void take_half(View& view, Bubble& opened, const topology::Place& place,
               const topology::Place& processor) noexcept {
  Bubble* bubble = &opened;
  for (;;) {
    const std::uint32_t all = active_count(view, *bubble);
    std::uint32_t taken = 0;
    Entity* last_active = nullptr;
    view.burst(*bubble, place);
    for (Entity* held = bubble->first(); held != nullptr; held = held->next_sibling()) {
      const std::uint32_t active = active_count(view, *held);
      if (active == 0 || held->is_settled) {
        continue;
      }
      // What waits only: a running thread stays where it is.
      const bool is_waiting = view.stats(*held).ready != 0 && view.may_run(*held, processor);
      if (is_waiting && active < all && (taken + active) * 2 <= all + 1) {
        view.move(*held, processor);
        taken += active;
      } else {
        last_active = held;
      }
    }
    if (taken != 0 || last_active == nullptr || !last_active->is_bubble()) {
      return;
    }
    bubble = static_cast<Bubble*>(last_active);  // All is in one bubble: open that.
  }
}

}  // namespace

bool steal_nearest(View& view, const topology::Place& processor,
                   const StealingRules& rules) noexcept {
  const topology::Place& widest = rules.within != nullptr ? *rules.within : view.domain();
  const topology::Place* around = &processor;
  while (around != &widest && around->parent != nullptr) {
    around = around->parent;
    const Victim victim = find_victim(view, *around, processor, rules);
    if (victim.unit != nullptr) {
      if (!victim.unit->is_bubble() || active_count(view, *victim.unit) <= 1 ||
          has_other_work(view, victim)) {
        view.move(*victim.unit, processor);
      } else {
        take_half(view, static_cast<Bubble&>(*victim.unit), *victim.place, processor);
      }
      return true;
    }
  }
  return false;
}

}  // namespace sterna::sched
