// To and from the code of a rank: which thread pointer is loaded.
//
// The rank's struct pthread carries a thread id of its own, the same on every worker and node: a
// recursive mutex held across a move is still its own. So nothing has to be adjusted when a rank
// resumes on another worker.
#pragma once

#include "base/thread_pointer.h"
#include "memory/rank_slot.h"
#include "threads/carriers/border.h"
#include "threads/this_thread.h"

namespace sterna::program {

/// Loads the rank's thread pointer. All of the runtime's work must be done.
inline void resume_user(const memory::RankSlot& slot) noexcept {
  threads::leave_runtime(*threads::self());
  set_thread_pointer(slot.thread_pointer);
}

/// Loads the thread pointer of the worker that runs the calling rank. On the rank's stack.
inline void leave_user() noexcept {
  (void)threads::enter_runtime(*threads::self());
  set_thread_pointer(reinterpret_cast<std::uintptr_t>(threads::worker_thread_pointer()));
}

/// The rank whose code calls: by the thread pointer, or, on a kernel thread that a rank has
/// created, by what that thread remembers. Null: code of no rank.
[[nodiscard]] memory::RankSlot* find_calling_slot() noexcept;

}  // namespace sterna::program
