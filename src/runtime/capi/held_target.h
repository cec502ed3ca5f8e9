// What a call of held.h is about. Internal to the C API.
#pragma once

#include <sterna/held.h>

#include "runtime/capi/bubble_object.h"

namespace sterna::runtime::capi {

/// What a call is about. Its entity is in the tree while `member` has not left, while the caller is
/// the thread, or while the bubble was not joined.
struct HeldTarget {
  sched::Entity* entity = nullptr;
  threads::Thread* thread = nullptr;  // Null: a bubble.
  Member* member = nullptr;           // Of a thread of a bubble.
  sterna_bubble* bubble = nullptr;    // Of a bubble.
};

/// SUCCESS, or why not, with a text.
sterna_status find_held(sterna_held held, HeldTarget& target) noexcept;
inline constexpr Verdict kGoneVerdict{STERNA_REFUSED,
                                      "the thread has ended but for its last destructors"};

}  // namespace sterna::runtime::capi
