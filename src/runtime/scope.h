// The border between the code of a rank and the runtime: which thread pointer is loaded.
//
// User code of a rank runs on the rank's thread pointer, runtime code on its worker's
// (docs/rules/switching.md). In process mode, and on threads that belong to no rank, both scopes cost
// a comparison and do nothing.
#pragma once

#include "base/thread_pointer.h"
#include "memory/rank_slot.h"

namespace sterna::runtime {

/// Opened first in every entry point of the public APIs. May be nested: an inner one does nothing.
class RuntimeScope {
 public:
  RuntimeScope() noexcept : slot_{memory::rank_slot_of(thread_pointer())} {
    if (slot_ != nullptr) {
      enter_runtime(slot_);
    }
  }
  ~RuntimeScope() {
    if (slot_ != nullptr) {
      enter_user(slot_);
    }
  }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

  /// Loads the thread pointer of the worker that runs the rank now.
  static void enter_runtime(memory::RankSlot* slot) noexcept;
  /// Loads the rank's thread pointer, made to fit the worker that runs it now.
  static void enter_user(memory::RankSlot* slot) noexcept;

 private:
  memory::RankSlot* const slot_;  // Null: no rank, or already in the runtime.
};

/// Inside a RuntimeScope: calls back into the rank's code (operators, attribute functions, error
/// handlers). The rank may call the runtime again from there, and switch.
class UserScope {
 public:
  UserScope() noexcept;
  ~UserScope();
  UserScope(const UserScope&) = delete;
  UserScope& operator=(const UserScope&) = delete;

 private:
  memory::RankSlot* slot_;  // Null: the caller runs on no rank's stack.
};

}  // namespace sterna::runtime
