// policy.h: policies of C programs.
#include "sched/policy.h"

#include <cstring>
#include <memory>
#include <new>

#include <sterna/policy.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"

namespace sched = sterna::sched;
namespace capi = sterna::runtime::capi;

namespace {

sched::View& view_of(sterna_view* view) noexcept {
  return *reinterpret_cast<sched::View*>(view);
}
sched::Entity& entity_of(sterna_entity* entity) noexcept {
  return *reinterpret_cast<sched::Entity*>(entity);
}
const sched::Entity& entity_of(const sterna_entity* entity) noexcept {
  return *reinterpret_cast<const sched::Entity*>(entity);
}
sterna_view* to_c(sched::View& view) noexcept {
  return reinterpret_cast<sterna_view*>(&view);
}
sterna_entity* to_c(sched::Entity* entity) noexcept {
  return reinterpret_cast<sterna_entity*>(entity);
}
const sterna::topology::Place* place_of(sterna_view* view, sterna_place place) noexcept {
  const auto places = view_of(view).topology().places();
  return place < places.size() ? places[place] : nullptr;
}

/// A policy whose events are functions of a program.
class ForeignPolicy final : public sched::Policy {
 public:
  explicit ForeignPolicy(const sterna_policy& calls) noexcept : calls_{calls} {}

  void submit(sched::View& view, sched::Entity& top) noexcept override {
    calls_.submit(to_c(view), to_c(&top), calls_.data);
  }
  [[nodiscard]] bool wants_meet() const noexcept override { return calls_.meet != nullptr; }
  bool meet(sched::View& view, sched::Entity& entity,
            const sterna::topology::Place& processor) noexcept override {
    return calls_.meet != nullptr && calls_.meet(to_c(view), to_c(&entity), entity.target_place(),
                                                 processor.id, calls_.data) != 0;
  }
  bool idle(sched::View& view, const sterna::topology::Place& processor) noexcept override {
    return calls_.idle != nullptr && calls_.idle(to_c(view), processor.id, calls_.data) != 0;
  }
  void tick(sched::View& view, sched::Bubble* expired) noexcept override {
    if (calls_.tick != nullptr) {
      calls_.tick(to_c(view), to_c(expired), calls_.data);
    }
  }
  [[nodiscard]] std::uint64_t tick_ns() const noexcept override {
    return calls_.tick != nullptr ? calls_.tick_ns : 0;
  }
  void leave(sched::View& view, sched::Entity& entity) noexcept override {
    if (calls_.leave != nullptr) {
      calls_.leave(to_c(view), to_c(&entity), calls_.data);
    }
  }

 private:
  const sterna_policy& calls_;
};

struct Registered {
  sterna_policy calls;
  sched::PolicyEntry entry;
};

sterna::Result<std::unique_ptr<sched::Policy>> make_foreign(const void* calls) {
  return sterna::try_make<sched::Policy, ForeignPolicy>(*static_cast<const sterna_policy*>(calls));
}

}  // namespace

sterna_status sterna_policy_register(const sterna_policy* policy) noexcept {
  if (policy == nullptr || policy->size_bytes != sizeof *policy || policy->name == nullptr ||
      policy->submit == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a policy has size_bytes (sizeof(sterna_policy)), a name and submit");
  }
  return capi::guarded([&] {
    auto registered = std::make_unique<Registered>();
    registered->calls = *policy;
    registered->entry.name = policy->name;
    registered->entry.summary = policy->summary != nullptr ? policy->summary : "";
    registered->entry.foreign = &registered->calls;
    registered->entry.make_foreign = make_foreign;
    if (sterna::Result<> added = sched::register_policy(registered->entry); !added) {
      return capi::refuse(
          added.error().code == sterna::Errc::refused ? STERNA_BUSY : STERNA_INVALID_ARGUMENT, "{}",
          added.error().text);
    }
    // Policies are never taken away: sterna_start may come at any time.
    [[maybe_unused]] const Registered* const kept = registered.release();
    return STERNA_SUCCESS;
  });
}

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

sterna_entity* sterna_entity_first(sterna_entity* bubble) noexcept {
  sched::Entity& entity = entity_of(bubble);
  return entity.is_bubble() ? to_c(static_cast<sched::Bubble&>(entity).first()) : nullptr;
}

sterna_entity* sterna_entity_next(sterna_entity* entity) noexcept {
  return to_c(entity_of(entity).next_sibling());
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
  const auto* const here = place_of(view, place);
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

void sterna_bubble_gather(sterna_view* view, sterna_entity* bubble) noexcept {
  sched::Entity& entity = entity_of(bubble);
  if (entity.is_bubble()) {
    view_of(view).gather(static_cast<sched::Bubble&>(entity));
  }
}

sterna_place sterna_view_domain(sterna_view* view) noexcept {
  return view_of(view).domain().id;
}

sterna_place sterna_place_holder(sterna_view* view, sterna_place place) noexcept {
  const auto* const here = place_of(view, place);
  return here != nullptr && here->parent != nullptr ? here->parent->id : STERNA_NO_PLACE;
}

sterna_place sterna_place_inner(sterna_view* view, sterna_place place, uint32_t index) noexcept {
  const auto* const here = place_of(view, place);
  return here != nullptr && index < here->children.size() ? here->children[index]->id
                                                          : STERNA_NO_PLACE;
}

uint32_t sterna_place_level(sterna_view* view, sterna_place place) noexcept {
  const auto* const here = place_of(view, place);
  return here != nullptr ? here->depth : UINT32_MAX;
}

uint32_t sterna_place_workers(sterna_view* view, sterna_place place) noexcept {
  const auto* const here = place_of(view, place);
  return here != nullptr ? view_of(view).worker_count(*here) : 0;
}

uint32_t sterna_place_waiting(sterna_view* view, sterna_place place) noexcept {
  const auto* const here = place_of(view, place);
  return here != nullptr ? view_of(view).waiting(*here) : 0;
}
