// The border between the code of a rank and the runtime: which thread pointer is loaded.
//
// User code of a rank runs on the rank's thread pointer, runtime code on its worker's
// (docs/rules/switching.md). In process mode, and on threads that belong to no rank, both scopes
// cost a comparison and do nothing.
#pragma once

#include "base/thread_pointer.h"
#include "memory/rank_slot.h"
#include "threads/this_thread.h"

namespace sterna::runtime {

/// Opened first in every entry point of the public APIs. May be nested: an inner one does nothing.
class RuntimeScope {
 public:
  RuntimeScope() noexcept : slot_{memory::rank_slot_of(thread_pointer())} {
    if (slot_ != nullptr) {
      set_thread_pointer(reinterpret_cast<std::uintptr_t>(threads::worker_thread_pointer()));
    }
  }
  ~RuntimeScope() {
    if (slot_ != nullptr) {
      set_thread_pointer(slot_->thread_pointer);
    }
  }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  memory::RankSlot* const slot_;  // Null: no rank, or already in the runtime.
};

/// Inside a RuntimeScope: calls back into the rank's code (operators, attribute functions, error
/// handlers). The rank may call the runtime again from there, and switch.
class UserScope {
 public:
  UserScope() noexcept : slot_{memory::rank_slot_of(__builtin_frame_address(0))} {
    if (slot_ != nullptr) {
      set_thread_pointer(slot_->thread_pointer);
    }
  }
  ~UserScope() {
    if (slot_ != nullptr) {
      set_thread_pointer(reinterpret_cast<std::uintptr_t>(threads::worker_thread_pointer()));
    }
  }
  UserScope(const UserScope&) = delete;
  UserScope& operator=(const UserScope&) = delete;

 private:
  memory::RankSlot* const slot_;  // Null: the caller runs on no rank's stack.
};

}  // namespace sterna::runtime
