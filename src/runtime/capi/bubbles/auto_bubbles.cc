// Threads of C programs whose bubbles follow from who creates whom: sched/filiation.h.
#include <algorithm>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

sched::Entity* caller_entity() noexcept {
  const threads::Thread* const me = threads::self();
  return me != nullptr ? static_cast<sched::Entity*>(me->entity) : nullptr;
}

bool caller_makes_bubbles(const Program& program, const sched::Entity* entity) noexcept {
  return entity != nullptr ? entity->makes_bubbles
                           : threads::self() == nullptr && program.has_auto_bubbles;
}

}  // namespace

std::uint32_t place_for(const Program& program, const sterna_thread_options& options,
                        const threads::ThreadOptions& spawned) noexcept {
  if (options.place != nullptr) {
    return workers_at(options.place).place;
  }
  if (!spawned.bound) {
    return sched::kNoPlace;
  }
  const topology::Place* const place = program.worker_places[spawned.worker];
  return std::ranges::count(program.worker_places, place) == 1 ? place->id : sched::kAside;
}

bool makes_bubbles(const Program& program, const sterna_thread_options& options) noexcept {
  return options.auto_bubbles == STERNA_AUTO_BUBBLES_INHERIT
             ? caller_makes_bubbles(program, caller_entity())
             : options.auto_bubbles == STERNA_AUTO_BUBBLES_FILIATION;
}

sterna_status join_filiation(const Program& program, const sterna_thread_options& options,
                             threads::ThreadOptions& spawned) noexcept {
  sched::Entity* const creator = caller_entity();
  const bool child_makes = makes_bubbles(program, options);
  if (!child_makes && !caller_makes_bubbles(program, creator)) {
    return STERNA_SUCCESS;
  }
  const std::uint32_t place = place_for(program, options, spawned);
  if (place == sched::kAside) {
    return STERNA_SUCCESS;  // As a thread without a bubble.
  }
  char name[threads::kNameBytes];
  const std::string_view shown =
      creator != nullptr ? threads::display_name(*threads::self(), name) : std::string_view{};
  auto entity = program.scheduler->filiation().birth(creator, {.program_place = place,
                                                               .load = std::max(options.load, 1U),
                                                               .makes_bubbles = child_makes,
                                                               .creator_name = shown});
  if (!entity) {
    return to_status(entity.error().code);
  }
  spawned.entity = entity.value();
  spawned.bound = false;
  spawned.preemptible_around = !program.scheduler->engine().forbids_preemption(*entity.value());
  return STERNA_SUCCESS;
}

}  // namespace sterna::runtime::capi
