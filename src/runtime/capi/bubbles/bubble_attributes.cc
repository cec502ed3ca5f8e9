// bubble.h: what policies and workers look at of a bubble, set before it runs and while it does.
#include <algorithm>

#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/preemption/preempt.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using sterna::runtime::RuntimeScope;

namespace {

/// change(bubble) under the lock of the engine, and what follows from it.
template <typename Change>
sterna_status update(sterna_bubble* bubble, Change change) noexcept {
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (bubble == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a bubble is what sterna_bubble_create gave");
  }
  program->scheduler->engine().update(
      bubble->bubble, [&](sched::Entity& its) { change(static_cast<sched::Bubble&>(its)); });
  return STERNA_SUCCESS;
}

}  // namespace

void capi::tell_preemptible(const sched::Engine& engine, Member& member) noexcept {
  if (member.thread != nullptr && !member.has_left) {
    threads::set_preemptible_around(*member.thread, !engine.forbids_preemption(member.entity));
  }
}

void capi::tell_all_preemptible(const sched::Engine& engine, const sterna_bubble& bubble) noexcept {
  for (const auto& member : bubble.members) {
    tell_preemptible(engine, *member);
  }
  for (const auto& child : bubble.children) {
    tell_all_preemptible(engine, *child);
  }
}

sterna_status sterna_bubble_set_level(sterna_bubble* bubble, uint32_t level) noexcept {
  const RuntimeScope scope;
  return update(bubble, [&](sched::Bubble& its) { its.level = capi::level_of_machine(level); });
}

sterna_status sterna_bubble_set_priority(sterna_bubble* bubble, uint32_t priority) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (bubble == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a bubble is what sterna_bubble_create gave");
  }
  if (priority >= sterna::kPriorityCount) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: priority {} is not 0 to {}",
                        capi::words_for(*bubble), priority, STERNA_PRIORITY_MAX);
  }
  program->scheduler->engine().set_priority(bubble->bubble, static_cast<std::uint8_t>(priority));
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_set_slice(sterna_bubble* bubble, uint64_t slice_ns) noexcept {
  const RuntimeScope scope;
  return update(bubble, [&](sched::Bubble& its) { its.slice_ns = slice_ns; });
}

sterna_status sterna_bubble_set_preemptible(sterna_bubble* bubble, int is_preemptible) noexcept {
  const RuntimeScope scope;
  const sterna_status status =
      update(bubble, [&](sched::Bubble& its) { its.is_unpreemptible = is_preemptible == 0; });
  if (status != STERNA_SUCCESS) {
    return status;
  }
  // Threads that begin, or are moved, ask under this lock: before it, and are told here, or after.
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (bubble->is_submitted) {
    capi::tell_all_preemptible(capi::program()->scheduler->engine(), *bubble);
  }
  return status;
}
