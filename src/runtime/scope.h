// The border between the code of a rank and the runtime: which thread pointer is loaded.
//
// User code of a rank runs on the rank's thread pointer, runtime code on its worker's
// (docs/rules/switching.md). In process mode, and on threads that belong to no rank, both scopes
// cost a comparison and do nothing; on kernel threads of a rank they say whose memory is taken.
#pragma once

#include "base/thread_pointer.h"
#include "memory/rank_slot.h"
#include "progress/one_caller.h"
#include "runtime/background/background.h"
#include "threads/carriers/border.h"
#include "threads/foreign.h"
#include "threads/this_thread.h"

namespace sterna::runtime {

/// Which threads call, as far as a process counts them (progress/one_caller.h).
enum class Callers : std::uint8_t {
  one,   // This call waits by progress and completions only: the caller may be the only one.
  many,  // Others must be able to call whatever it waits for.
  // What MPI lets every thread call at any time, whatever the level of threads: it goes to objects
  // in memory, never as far as a poll, and does not count where one caller at a time is taken for
  // granted. That one may be inside a call, or have handed the runtime over (background.h).
  any,
};

/// Opened first in every entry point of the public APIs. May be nested: an inner one does nothing.
class RuntimeScope {
 public:
  // Entered first: what follows needs the worker. Left first: who waits gets it on the runtime's
  // thread pointer.
  explicit RuntimeScope(Callers callers = Callers::many) noexcept
      : callers_{callers}, slot_{memory::rank_slot_of(thread_pointer())} {
    if (slot_ != nullptr) {
      set_thread_pointer(reinterpret_cast<std::uintptr_t>(threads::worker_thread_pointer()));
      return;
    }
    if (auto* const caller = progress::process_caller.load(std::memory_order_acquire)) {
      callers == Callers::many ? caller->share() : caller->enter();
    }
    if (Background* const beside = find_background()) {
      beside->enter();
    }
  }
  // Each of the two may have been made, or gone, since we entered.
  ~RuntimeScope() {
    if (slot_ != nullptr) {
      set_thread_pointer(slot_->thread_pointer);
      return;
    }
    if (Background* const beside = find_background()) {
      beside->leave();
    }
    if (auto* const caller = progress::process_caller.load(std::memory_order_acquire)) {
      caller->leave();
    }
  }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  [[nodiscard]] Background* find_background() const noexcept {
    return callers_ != Callers::any ? process_background.load(std::memory_order_relaxed) : nullptr;
  }

  const threads::RuntimeEntry entry_;
  const Callers callers_;
  memory::RankSlot* const slot_;  // Null: no rank, or already in the runtime.
  const threads::ForeignSide side_{true};
};

/// Inside a RuntimeScope: calls back into the rank's code (operators, attribute functions, error
/// handlers). The rank may call the runtime again from there, and switch.
class UserScope {
 public:
  UserScope() noexcept
      : slot_{memory::rank_slot_of(__builtin_frame_address(0))}, me_{user_thread(slot_)} {
    if (me_ != nullptr) {
      threads::leave_runtime(*me_);
    }
    if (slot_ != nullptr) {
      set_thread_pointer(slot_->thread_pointer);
    }
  }
  ~UserScope() {
    if (me_ != nullptr) {
      (void)threads::enter_runtime(*me_);
    }
    if (slot_ != nullptr) {
      set_thread_pointer(reinterpret_cast<std::uintptr_t>(threads::worker_thread_pointer()));
    }
  }
  UserScope(const UserScope&) = delete;
  UserScope& operator=(const UserScope&) = delete;

 private:
  static threads::Thread* user_thread(const memory::RankSlot* slot) noexcept {
    threads::Thread* const me = threads::self();
    return me != nullptr && (slot != nullptr || (me->flags & threads::ThreadFlag::user_code) != 0)
               ? me
               : nullptr;
  }

  memory::RankSlot* const slot_;  // Null: the caller runs on no rank's stack.
  threads::Thread* const me_;     // Null: a kernel thread, or one of the runtime's own.
  const threads::ForeignSide side_{false};
  // Of a process, which has one runtime: it lives longer than any call.
  const progress::OneCaller::Away away_{
      slot_ == nullptr ? progress::process_caller.load(std::memory_order_acquire) : nullptr};
};

}  // namespace sterna::runtime
