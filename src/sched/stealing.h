// Taking work from the nearest place that has some: what policies do for an idle processor.
#pragma once

#include "sched/policy.h"

namespace sterna::sched {

struct StealingRules {
  // Not from places outside the smallest place of this kind around the processor; null: the domain.
  const topology::Place* within = nullptr;
  // Of several victims equally near, the one with the higher score; null: the one with most
  // waiting.
  std::uint64_t (*score)(const View& view, const Entity& entity,
                         const topology::Place& processor) = nullptr;
};

/// Plans something for `processor`, from the nearest place with waiting threads. A bubble comes
/// whole when its former place keeps something to do, else it is opened there and half of it comes.
/// False: there is nothing that may come.
bool steal_nearest(View& view, const topology::Place& processor,
                   const StealingRules& rules) noexcept;

}  // namespace sterna::sched
