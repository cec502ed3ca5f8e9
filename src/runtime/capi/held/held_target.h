// What a call of held.h is about. Internal to the C API.
#pragma once

#include <sterna/held.h>

#include "runtime/capi/bubbles/bubble_object.h"

namespace sterna::runtime::capi {

/// What a call is about, for one section of bubbles_lock: a thread of a bubble that has not left, a
/// thread of filiation that is the caller, or a bubble, which is its caller's not to have freed.
struct HeldTarget {
  sched::Entity* entity = nullptr;    // In the tree, unless it is an unsubmitted bubble's.
  threads::Thread* thread = nullptr;  // Null: a bubble.
  Member* member = nullptr;           // Of a thread of a bubble.
  sterna_bubble* bubble = nullptr;    // Of a bubble.
};

/// SUCCESS, or what is wrong with `held` itself, with a text.
sterna_status check_held(sterna_held held) noexcept;
/// bubbles_lock is held, and held was checked.
[[nodiscard]] Verdict find_held(sterna_held held, HeldTarget& target) noexcept;

/// The status of a verdict, with a text that names what is held.
sterna_status refuse_held(sterna_held held, const Verdict& verdict) noexcept;

/// The verdict of use(target), in one section of bubbles_lock with the look-up: afterwards the
/// thread may have left, and its member be freed.
template <typename Use>
sterna_status with_held(sterna_held held, Use use) noexcept {
  if (const sterna_status status = check_held(held); status != STERNA_SUCCESS) {
    return status;
  }
  Verdict verdict;
  {
    const FairGuard guard{bubbles_lock};
    HeldTarget target;
    verdict = find_held(held, target);
    if (verdict.status == STERNA_SUCCESS) {
      verdict = use(target);
    }
  }
  return refuse_held(held, verdict);
}

}  // namespace sterna::runtime::capi
