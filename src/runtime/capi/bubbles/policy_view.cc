// policy.h: what a policy of a C program sees and does.
#include "runtime/capi/bubbles/policy_view.h"

#include "sched/engine.h"
#include "sched/stealing.h"

namespace sched = sterna::sched;
using sterna::runtime::capi::bubble_of;
using sterna::runtime::capi::entity_of;
using sterna::runtime::capi::place_of;
using sterna::runtime::capi::to_c;
using sterna::runtime::capi::view_of;
using sterna::topology::Place;

namespace {

/// That place, as far as it is of the policy.
const Place& widest_of(sterna_view* view, sterna_place within) noexcept {
  const Place& domain = view_of(view).domain();
  const Place* const wanted = place_of(view, within);
  return wanted != nullptr && sched::covers(domain, *wanted) ? *wanted : domain;
}

/// That place and all inside it.
int see_all(sterna_view* view, const Place& place, sterna_place_see see, void* context) noexcept {
  int answer = see(view, place.id, context);
  for (std::size_t i = 0; answer == 0 && i < place.children.size(); ++i) {
    answer = see_all(view, *place.children[i], see, context);
  }
  return answer;
}

}  // namespace

sterna_entity* sterna_view_first(sterna_view* view) noexcept {
  return to_c(view_of(view).first_top());
}

sterna_entity* sterna_view_next(sterna_view* view, sterna_entity* entity) noexcept {
  return to_c(view_of(view).next_top(entity_of(entity)));
}

sterna_entity* sterna_view_at(sterna_view* view, sterna_place place) noexcept {
  sched::Entity* top = view_of(view).first_top();
  while (top != nullptr && top->planned_place() != place) {
    top = view_of(view).next_top(*top);
  }
  return to_c(top);
}

sterna_entity* sterna_view_next_ready(sterna_view* view, sterna_entity* entity) noexcept {
  sched::View& its = view_of(view);
  sched::Entity* const from = entity != nullptr ? &entity_of(entity) : nullptr;
  const auto find = [&](sched::Entity* top, const sched::Entity* end) noexcept {
    while (top != nullptr && top != end && its.stats(*top).ready == 0) {
      top = its.next_top(*top);
    }
    return top != end ? top : nullptr;
  };
  sched::Entity* found = find(from != nullptr ? its.next_top(*from) : its.first_top(), nullptr);
  if (found == nullptr && from != nullptr) {
    found = find(its.first_top(), from);
  }
  const bool is_last = found == nullptr && from != nullptr && its.stats(*from).ready != 0;
  return to_c(is_last ? from : found);
}

uint64_t sterna_view_now_ns(sterna_view* view) noexcept {
  return view_of(view).now_ns();
}

int sterna_view_steal(sterna_view* view, sterna_place processor, sterna_place within) noexcept {
  const Place* const here = place_of(view, processor);
  const Place& widest = widest_of(view, within);
  return here != nullptr && sched::covers(widest, *here) &&
                 sched::steal_nearest(view_of(view), *here, {.within = &widest})
             ? 1
             : 0;
}

void sterna_view_ask_again(sterna_view* view, sterna_place place) noexcept {
  if (const Place* const here = place_of(view, place); here != nullptr) {
    view_of(view).ask_again(*here);
  }
}

sterna_entity* sterna_entity_first(sterna_entity* bubble) noexcept {
  const sched::Bubble* const its = bubble_of(bubble);
  return its != nullptr ? to_c(its->first()) : nullptr;
}

sterna_entity* sterna_entity_next(sterna_entity* entity) noexcept {
  return to_c(entity_of(entity).next_sibling());
}

sterna_entity* sterna_entity_holder(const sterna_entity* entity) noexcept {
  sched::Bubble* const holder = entity_of(entity).holder();
  return holder != nullptr && holder->holder() != nullptr ? to_c(holder) : nullptr;
}

int sterna_entity_is_bubble(const sterna_entity* entity) noexcept {
  return entity_of(entity).is_bubble() ? 1 : 0;
}

uint32_t sterna_entity_level(const sterna_entity* entity) noexcept {
  return entity_of(entity).level;
}

sterna_place sterna_entity_place(const sterna_entity* entity) noexcept {
  return entity_of(entity).planned_place();
}

int sterna_entity_may_run(sterna_view* view, const sterna_entity* entity,
                          sterna_place processor) noexcept {
  const Place* const here = place_of(view, processor);
  return here != nullptr && view_of(view).may_run(entity_of(entity), *here) ? 1 : 0;
}

sterna_place sterna_entity_allowed(sterna_view* view, const sterna_entity* entity) noexcept {
  return view_of(view).allowed(entity_of(entity)).id;
}

int sterna_entity_is_settled(const sterna_entity* entity) noexcept {
  return entity_of(entity).is_settled ? 1 : 0;
}

uint64_t sterna_entity_word(const sterna_entity* entity) noexcept {
  return entity_of(entity).policy_word;
}

void sterna_entity_set_word(sterna_entity* entity, uint64_t word) noexcept {
  entity_of(entity).policy_word = word;
}

uint64_t sterna_entity_load(sterna_view* view, const sterna_entity* entity) noexcept {
  return view_of(view).load(entity_of(entity));
}

uint32_t sterna_entity_threads(sterna_view* view, const sterna_entity* entity) noexcept {
  return view_of(view).stats(entity_of(entity)).threads;
}

uint32_t sterna_entity_ready(sterna_view* view, const sterna_entity* entity) noexcept {
  return view_of(view).stats(entity_of(entity)).ready;
}

uint32_t sterna_entity_running(sterna_view* view, const sterna_entity* entity) noexcept {
  return view_of(view).stats(entity_of(entity)).running;
}

uint64_t sterna_entity_attribute(sterna_view* view, const sterna_entity* entity,
                                 uint32_t index) noexcept {
  const sched::Stats stats = view_of(view).stats(entity_of(entity));
  return index < stats.attributes.size() ? stats.attributes[index] : 0;
}

uint64_t sterna_entity_memory(sterna_view* view, const sterna_entity* entity,
                              sterna_place place) noexcept {
  const Place* const here = place_of(view, place);
  const sched::MemoryMap memory = view_of(view).stats(entity_of(entity)).memory;
  return here != nullptr && here->kind == sterna::topology::PlaceKind::numa ? memory.on(here->index)
         : here == nullptr || here->parent == nullptr                       ? memory.total()
                                                                            : 0;
}

sterna_place sterna_entity_last_place(sterna_view* view, const sterna_entity* entity) noexcept {
  return view_of(view).stats(entity_of(entity)).last_place;
}

void sterna_entity_get(sterna_view* view, sterna_entity* entity) noexcept {
  if (entity == nullptr) {
    return;
  }
  view_of(view).plan(entity_of(entity), sched::kInHand);
}

void sterna_entity_put(sterna_view* view, sterna_entity* entity, sterna_place place) noexcept {
  if (entity == nullptr) {
    return;
  }
  const bool exists = place == STERNA_PLACE_ASIDE || place_of(view, place) != nullptr;
  view_of(view).plan(entity_of(entity), exists ? place : sched::kNoPlace);
}

void sterna_bubble_burst(sterna_view* view, sterna_entity* bubble, sterna_place place) noexcept {
  sched::Bubble* const its = bubble_of(bubble);
  if (const Place* const here = place_of(view, place); its != nullptr && here != nullptr) {
    view_of(view).burst(*its, *here);
  }
}

void sterna_bubble_gather(sterna_view* view, sterna_entity* bubble) noexcept {
  if (sched::Bubble* const its = bubble_of(bubble); its != nullptr) {
    view_of(view).gather(*its);
  }
}

void sterna_view_set_slice(sterna_view* view, sterna_entity* bubble, uint64_t slice_ns) noexcept {
  if (sched::Bubble* const its = bubble_of(bubble); its != nullptr) {
    view_of(view).set_slice(*its, slice_ns);
  }
}

sterna_place sterna_view_domain(sterna_view* view) noexcept {
  return view_of(view).domain().id;
}

sterna_place sterna_place_holder(sterna_view* view, sterna_place place) noexcept {
  const Place* const here = place_of(view, place);
  return here != nullptr && here->parent != nullptr ? here->parent->id : STERNA_NO_PLACE;
}

sterna_place sterna_place_inner(sterna_view* view, sterna_place place, uint32_t index) noexcept {
  const Place* const here = place_of(view, place);
  return here != nullptr && index < here->children.size() ? here->children[index]->id
                                                          : STERNA_NO_PLACE;
}

uint32_t sterna_place_level(sterna_view* view, sterna_place place) noexcept {
  const Place* const here = place_of(view, place);
  return here != nullptr ? here->depth : UINT32_MAX;
}

uint32_t sterna_place_workers(sterna_view* view, sterna_place place) noexcept {
  const Place* const here = place_of(view, place);
  return here != nullptr ? view_of(view).worker_count(*here) : 0;
}

uint32_t sterna_place_waiting(sterna_view* view, sterna_place place) noexcept {
  const Place* const here = place_of(view, place);
  return here != nullptr ? view_of(view).waiting(*here) : 0;
}

uint32_t sterna_place_free_workers(sterna_view* view, sterna_place place) noexcept {
  const Place* const here = place_of(view, place);
  return here != nullptr ? view_of(view).free_workers(*here) : 0;
}

uint32_t sterna_place_list_waiting(sterna_view* view, sterna_place place, sterna_entity** threads,
                                   uint32_t capacity) noexcept {
  if (place != STERNA_PLACE_ASIDE && place_of(view, place) == nullptr) {
    return 0;
  }
  // A sterna_entity is the Entity under another name.
  return view_of(view).list_waiting(
      place, {reinterpret_cast<sched::Entity**>(threads), threads != nullptr ? capacity : 0});
}

sterna_entity* sterna_place_movable(sterna_view* view, sterna_place place,
                                    sterna_place processor) noexcept {
  const Place* const from = place_of(view, place);
  const Place* const to = place_of(view, processor);
  return from != nullptr && to != nullptr ? to_c(view_of(view).find_movable(*from, *to)) : nullptr;
}

int sterna_place_browse(sterna_view* view, sterna_place from, sterna_place within,
                        sterna_place_see see, void* context) noexcept {
  const Place* inner = place_of(view, from);
  const Place& widest = widest_of(view, within);
  if (inner == nullptr || see == nullptr || !sched::covers(widest, *inner)) {
    return 0;
  }
  for (int answer = 0; inner != &widest; inner = inner->parent) {
    for (const Place* const beside : inner->parent->children) {
      answer = beside != inner ? see_all(view, *beside, see, context) : 0;
      if (answer != 0) {
        return answer;
      }
    }
  }
  return 0;
}
