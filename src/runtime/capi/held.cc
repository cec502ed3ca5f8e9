// held.h: who holds threads and bubbles of C programs, and where they are.
#include <algorithm>
#include <cstring>
#include <string>

#include <sterna/held.h>

#include "runtime/capi/handle.h"
#include "runtime/capi/held_target.h"
#include "runtime/scope.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using sterna::runtime::RuntimeScope;

namespace {

sterna_status find_thread(sterna_thread* handle, capi::HeldTarget& target) noexcept {
  sterna::threads::Thread* const thread = capi::thread_of(handle);
  if (thread == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  target.thread = thread;
  target.member = capi::member_of(thread);
  if (target.member != nullptr) {
    target.entity = &target.member->entity;
    return STERNA_SUCCESS;
  }
  if (thread->entity == nullptr) {
    return capi::refuse(STERNA_UNSUPPORTED,
                        "{} was created outside of bubbles: give sterna_thread_options.bubble, or "
                        "use sterna_thread_stay_at",
                        capi::words_for(thread));
  }
  if (thread != sterna::threads::self()) {
    return capi::refuse(STERNA_UNSUPPORTED,
                        "{} is in the bubble of its creator's children (filiation): it calls this "
                        "itself",
                        capi::words_for(thread));
  }
  target.entity = static_cast<sched::Entity*>(thread->entity);
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status capi::find_held(sterna_held held, capi::HeldTarget& target) noexcept {
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if ((held.thread == nullptr) == (held.bubble == nullptr)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "what is held is a thread or a bubble: sterna_held_thread and "
                        "sterna_held_bubble make it");
  }
  if (held.bubble == nullptr) {
    return find_thread(held.thread, target);
  }
  target.bubble = held.bubble;
  target.entity = &held.bubble->bubble;
  return STERNA_SUCCESS;
}

namespace {

/// use(engine, entity) while the entity is in the tree, or is not submitted.
template <typename Use>
sterna_status with_entity(const capi::HeldTarget& target, Use use) noexcept {
  sched::Engine& engine = capi::program()->scheduler->engine();
  bool is_gone = false;
  {
    const sterna::SpinGuard guard{capi::bubbles_lock};
    is_gone = target.member != nullptr && target.member->has_left;
    if (!is_gone) {
      use(engine, *target.entity);
    }
  }
  return is_gone ? capi::tell(capi::kGoneVerdict) : STERNA_SUCCESS;
}

/// The id of a place that has a worker; kNoPlace: refused, with a text.
std::uint32_t place_id(const char* place) noexcept {
  const capi::WorkerRange range = capi::workers_at(place);
  return range.count != 0 ? range.place : sched::kNoPlace;
}

sterna_status begin_at(const capi::HeldTarget& target, std::uint32_t place) noexcept {
  return with_entity(target, [&](sched::Engine& engine, sched::Entity& entity) noexcept {
    if (target.bubble != nullptr && !target.bubble->is_submitted) {
      target.bubble->first_place = place;
    } else {
      engine.put(entity, place);
    }
  });
}

}  // namespace

sterna_status sterna_held_holder(sterna_held held, sterna_bubble** holder) noexcept {
  const RuntimeScope scope;
  if (holder == nullptr) {
    return capi::refuse_argument(__func__);
  }
  capi::HeldTarget target;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  const sterna::SpinGuard guard{capi::bubbles_lock};
  *holder = target.member != nullptr   ? target.member->bubble
            : target.bubble != nullptr ? target.bubble->holder
                                       : nullptr;
  return STERNA_SUCCESS;
}

sterna_status sterna_held_set_place(sterna_held held, const char* place) noexcept {
  const RuntimeScope scope;
  capi::HeldTarget target;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  const std::uint32_t id = place != nullptr ? place_id(place) : sched::kNoPlace;
  if (place != nullptr && id == sched::kNoPlace) {
    return STERNA_NOT_FOUND;
  }
  return with_entity(target, [&](sched::Engine& engine, sched::Entity& entity) noexcept {
    engine.update(entity, [&](sched::Entity& its) { its.program_place = id; });
  });
}

sterna_status sterna_held_begin_at(sterna_held held, const char* place) noexcept {
  const RuntimeScope scope;
  capi::HeldTarget target;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  if (place == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const std::uint32_t id = place_id(place);
  return id == sched::kNoPlace ? STERNA_NOT_FOUND : begin_at(target, id);
}

sterna_status sterna_held_begin_beside(sterna_held held, sterna_held neighbour) noexcept {
  const RuntimeScope scope;
  capi::HeldTarget target;
  capi::HeldTarget other;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  if (const sterna_status status = capi::find_held(neighbour, other); status != STERNA_SUCCESS) {
    return status;
  }
  std::uint32_t id = sched::kNoPlace;
  const sterna_status status =
      with_entity(other, [&](sched::Engine& engine, sched::Entity& entity) noexcept {
        id = engine.is_in_tree(entity) ? entity.target_place() : sched::kNoPlace;
      });
  if (status != STERNA_SUCCESS) {
    return status;
  }
  if (id == sched::kNoPlace || id == sched::kAside) {
    return capi::refuse(
        STERNA_BUSY, "the neighbour is nowhere: {}",
        id == sched::kAside ? "its policy has put it aside" : "it is not submitted yet");
  }
  return begin_at(target, id);
}

sterna_status sterna_held_place(sterna_held held, char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  capi::HeldTarget target;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  if (buffer == nullptr || bytes == 0) {
    return capi::refuse_argument(__func__);
  }
  std::uint32_t id = sched::kNoPlace;
  const sterna_status status = with_entity(
      target, [&](sched::Engine&, sched::Entity& entity) noexcept { id = entity.target_place(); });
  if (status != STERNA_SUCCESS) {
    return status;
  }
  return capi::guarded([&] {
    const auto places = capi::program()->topology->places();
    const std::string text = id < places.size() ? std::string{to_string(places[id]->kind)} + ":" +
                                                      std::to_string(places[id]->index)
                                                : "aside";
    const std::size_t stored = std::min(bytes - 1, text.size());
    std::memcpy(buffer, text.data(), stored);
    buffer[stored] = '\0';
    return stored == text.size() ? STERNA_SUCCESS : STERNA_TRUNCATED;
  });
}

sterna_status sterna_held_set_settled(sterna_held held, int is_settled) noexcept {
  const RuntimeScope scope;
  capi::HeldTarget target;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  return with_entity(target, [&](sched::Engine& engine, sched::Entity& entity) noexcept {
    engine.update(entity, [&](sched::Entity& its) { its.is_settled = is_settled != 0; });
  });
}

sterna_status sterna_held_is_settled(sterna_held held, int* is_settled) noexcept {
  const RuntimeScope scope;
  capi::HeldTarget target;
  if (const sterna_status status = capi::find_held(held, target); status != STERNA_SUCCESS) {
    return status;
  }
  if (is_settled == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return with_entity(target, [&](sched::Engine& engine, sched::Entity& entity) noexcept {
    // Under the lock of the engine.
    engine.update(entity, [&](sched::Entity& its) { *is_settled = its.is_settled ? 1 : 0; });
  });
}
