// held.h: who holds threads and bubbles of C programs, and where they are.
#include <algorithm>
#include <cstring>
#include <string>

#include <sterna/held.h>

#include "runtime/capi/held/held_target.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/flags.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using sterna::runtime::RuntimeScope;

static_assert(STERNA_NO_LEVEL == sched::kNoLevel);

namespace {

capi::Verdict find_thread(sterna_thread* handle, capi::HeldTarget& target) noexcept {
  sterna::threads::Thread* const thread = capi::living_thread_of(handle);
  if (thread == nullptr) {
    return {STERNA_INVALID_ARGUMENT, "the thread is gone: it was joined, or its bubble was"};
  }
  target.thread = thread;
  target.member = capi::living_member_of(*thread);
  if (target.member != nullptr) {
    target.entity = &target.member->entity;
    return {};
  }
  if (capi::member_of(thread) != nullptr) {
    return {STERNA_REFUSED, "the thread has ended but for its last destructors"};
  }
  if ((sterna::threads::flags_of(*thread) & sterna::threads::ThreadFlag::placed) == 0) {
    return {STERNA_UNSUPPORTED,
            "the thread was created outside of bubbles: give sterna_thread_options.bubble, or use "
            "sterna_thread_stay_at"};
  }
  if (thread != sterna::threads::self()) {
    return {STERNA_UNSUPPORTED,
            "the thread is in the bubble of its creator's children (filiation): it calls this "
            "itself"};
  }
  target.entity = static_cast<sched::Entity*>(thread->entity);
  return {};
}

}  // namespace

sterna_status capi::check_held(sterna_held held) noexcept {
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if ((held.thread == nullptr) == (held.bubble == nullptr)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "what is held is a thread or a bubble: sterna_held_thread and "
                        "sterna_held_bubble make it");
  }
  return held.bubble != nullptr || capi::thread_of(held.thread) != nullptr
             ? STERNA_SUCCESS
             : STERNA_INVALID_ARGUMENT;
}

sterna_status capi::refuse_held(sterna_held held, const Verdict& verdict) noexcept {
  if (verdict.status == STERNA_SUCCESS || verdict.rule == nullptr) {
    return verdict.status;
  }
  if (held.bubble != nullptr) {
    return refuse(verdict.status, "{}: {}", words_for(*held.bubble), verdict.rule);
  }
  const sterna::threads::Thread* const thread = living_thread_of(held.thread);
  return thread != nullptr ? refuse(verdict.status, "{}: {}", words_for(thread), verdict.rule)
                           : refuse(verdict.status, "{}", verdict.rule);
}

capi::Verdict capi::find_held(sterna_held held, capi::HeldTarget& target) noexcept {
  if (held.bubble == nullptr) {
    return find_thread(held.thread, target);
  }
  target.bubble = held.bubble;
  target.entity = &held.bubble->bubble;
  return {};
}

namespace {

sched::Engine& engine() noexcept {
  return capi::program()->scheduler->engine();
}

/// The id of a place that has a worker; kNoPlace: refused, with a text.
std::uint32_t place_id(const char* place) noexcept {
  const capi::WorkerRange range = capi::workers_at(place);
  return range.count != 0 ? range.place : sched::kNoPlace;
}

/// Of a thread of filiation: what the tree says. Null: a bubble that no program made.
sterna_bubble* holder_of_child(const sched::Entity& entity) noexcept {
  sched::Bubble* const holder = engine().holder_of(entity);
  return holder != nullptr ? static_cast<sterna_bubble*>(holder->handle) : nullptr;
}

sterna_status begin_at(sterna_held held, std::uint32_t place) noexcept {
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    if (target.bubble != nullptr && !target.bubble->is_submitted) {
      target.bubble->first_place = place;
    } else if (target.member != nullptr && capi::is_unstarted(*target.member)) {
      target.member->first_place = place;
    } else {
      engine().put(*target.entity, place);
    }
    return capi::Verdict{};
  });
}

}  // namespace

sterna_status sterna_held_holder(sterna_held held, sterna_bubble** holder) noexcept {
  const RuntimeScope scope;
  if (holder == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    *holder = target.member != nullptr   ? target.member->bubble
              : target.bubble != nullptr ? target.bubble->holder
                                         : holder_of_child(*target.entity);
    return capi::Verdict{};
  });
}

sterna_status sterna_held_set_place(sterna_held held, const char* place) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = capi::check_held(held); status != STERNA_SUCCESS) {
    return status;
  }
  const std::uint32_t id = place != nullptr ? place_id(place) : sched::kNoPlace;
  if (place != nullptr && id == sched::kNoPlace) {
    return STERNA_NOT_FOUND;
  }
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    engine().update(*target.entity, [&](sched::Entity& its) { its.program_place = id; });
    return capi::Verdict{};
  });
}

sterna_status sterna_held_begin_at(sterna_held held, const char* place) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = capi::check_held(held); status != STERNA_SUCCESS) {
    return status;
  }
  if (place == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const std::uint32_t id = place_id(place);
  return id == sched::kNoPlace ? STERNA_NOT_FOUND : begin_at(held, id);
}

sterna_status sterna_held_begin_beside(sterna_held held, sterna_held neighbour) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = capi::check_held(held); status != STERNA_SUCCESS) {
    return status;
  }
  std::uint32_t id = sched::kNoPlace;
  const sterna_status status =
      capi::with_held(neighbour, [&](const capi::HeldTarget& target) noexcept {
        if (sched::Engine::is_in_tree(*target.entity)) {
          id = target.entity->target_place();
        }
        return capi::Verdict{};
      });
  if (status != STERNA_SUCCESS) {
    return status;
  }
  if (id == sched::kNoPlace || id == sched::kAside) {
    return capi::refuse(
        STERNA_BUSY, "the neighbour is nowhere: {}",
        id == sched::kAside ? "its policy has put it aside" : "it is not submitted yet");
  }
  return begin_at(held, id);
}

sterna_status sterna_held_place(sterna_held held, char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  if (buffer == nullptr || bytes == 0) {
    return capi::refuse_argument(__func__);
  }
  std::uint32_t id = sched::kNoPlace;
  const sterna_status status = capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    id = target.entity->target_place();
    return capi::Verdict{};
  });
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

std::uint32_t capi::level_of_machine(std::uint32_t level) noexcept {
  return level == STERNA_NO_LEVEL ? sched::kNoLevel
                                  : std::min(level, program()->topology->depth_count() - 1);
}

sterna_status sterna_held_set_level(sterna_held held, uint32_t level) noexcept {
  const RuntimeScope scope;
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    engine().note(*target.entity,
                  [&](sched::Entity& its) { its.level = capi::level_of_machine(level); });
    return capi::Verdict{};
  });
}

sterna_status sterna_held_level(sterna_held held, uint32_t* level) noexcept {
  const RuntimeScope scope;
  if (level == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    engine().note(*target.entity, [&](sched::Entity& its) { *level = its.level; });
    return capi::Verdict{};
  });
}

sterna_status sterna_held_set_settled(sterna_held held, int is_settled) noexcept {
  const RuntimeScope scope;
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    engine().update(*target.entity, [&](sched::Entity& its) { its.is_settled = is_settled != 0; });
    return capi::Verdict{};
  });
}

sterna_status sterna_held_is_settled(sterna_held held, int* is_settled) noexcept {
  const RuntimeScope scope;
  if (is_settled == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    *is_settled = engine().is_settled(*target.entity) ? 1 : 0;
    return capi::Verdict{};
  });
}
