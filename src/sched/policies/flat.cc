// Flat: one queue for the whole domain; whoever is free takes the next thread. Bubbles mean
// nothing, but what the program asked for (a place of its own, or of a holder) counts.
#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

void plan_flat(const PlanInput& input, std::span<std::uint32_t> places) {
  for (std::size_t i = 0; i < input.entities.size(); ++i) {
    const EntityView& entity = input.entities[i];
    if (entity.program_place != kNoPlace) {
      places[i] = entity.program_place;
    } else {
      places[i] = entity.parent == kNoParent ? input.domain.id : places[entity.parent];
    }
  }
}

}  // namespace

constinit const PolicyEntry kFlatPolicy{
    .name = "flat",
    .summary = "one queue for all processors, bubbles are ignored",
    .plan = plan_flat,
};

}  // namespace sterna::sched
