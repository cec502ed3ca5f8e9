// What policy.h calls view, entity and place is here.
#pragma once

#include <sterna/policy.h>

#include "sched/policy.h"

namespace sterna::runtime::capi {

static_assert(STERNA_NO_PLACE == sched::kNoPlace && STERNA_PLACE_ASIDE == sched::kAside);

[[nodiscard]] inline sched::View& view_of(sterna_view* view) noexcept {
  return *reinterpret_cast<sched::View*>(view);
}
[[nodiscard]] inline sched::Entity& entity_of(sterna_entity* entity) noexcept {
  return *reinterpret_cast<sched::Entity*>(entity);
}
[[nodiscard]] inline const sched::Entity& entity_of(const sterna_entity* entity) noexcept {
  return *reinterpret_cast<const sched::Entity*>(entity);
}
/// Null: a thread.
[[nodiscard]] inline sched::Bubble* bubble_of(sterna_entity* entity) noexcept {
  sched::Entity& its = entity_of(entity);
  return its.is_bubble() ? static_cast<sched::Bubble*>(&its) : nullptr;
}
[[nodiscard]] inline sterna_view* to_c(sched::View& view) noexcept {
  return reinterpret_cast<sterna_view*>(&view);
}
[[nodiscard]] inline sterna_entity* to_c(sched::Entity* entity) noexcept {
  return reinterpret_cast<sterna_entity*>(entity);
}
/// Null: there is no such place.
[[nodiscard]] inline const topology::Place* place_of(sterna_view* view,
                                                     sterna_place place) noexcept {
  const auto places = view_of(view).topology().places();
  return place < places.size() ? places[place] : nullptr;
}

}  // namespace sterna::runtime::capi
