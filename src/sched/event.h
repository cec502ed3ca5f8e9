// One event of a policy: the lock of the engine, memory for its time, and the commitment at its
// end. Internal to sched/.
#pragma once

#include <cstdio>

#include "sched/engine.h"

namespace sterna::sched {

/// What an event has to tell on standard error: told when it is over, without the lock.
class EventNotice {
 public:
  EventNotice() noexcept { text_[0] = '\0'; }
  ~EventNotice() {
    if (text_[0] != '\0') [[unlikely]] {
      (void)std::fputs(text_, stderr);
    }
  }
  EventNotice(const EventNotice&) = delete;
  EventNotice& operator=(const EventNotice&) = delete;

  void note_lost(const char* entity) noexcept {
    (void)std::snprintf(text_, sizeof text_,
                        "sched: a policy took %.95s and did not put it back in the same event; it "
                        "stays where it was\n",
                        entity);
  }

 private:
  char text_[224];
};

class Engine::Event {
  // In this order: all that is of the engine is read under its lock, the policy too.
  Engine& engine_;
  EventNotice notice_;  // Before the guard: it ends after it.
  const TreeGuard guard_;
  std::pmr::monotonic_buffer_resource memory_;  // From the heap, if the scratch is too small.

 public:
  explicit Event(Engine& engine) noexcept STERNA_LOCKS_UNCHECKED
      : engine_{engine},
        guard_{engine.lock_},
        memory_{engine.scratch_.get(), engine.scratch_bytes_},
        view{engine, *engine.policy_, engine.topology_.root()} {
    engine.event_memory_ = &memory_;
    engine.event_notice_ = &notice_;
  }
  ~Event() STERNA_LOCKS_UNCHECKED {
    engine_.commit();
    engine_.event_memory_ = nullptr;
    engine_.event_notice_ = nullptr;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] Policy& policy() const noexcept { return *engine_.policy_; }

  View view;
};

}  // namespace sterna::sched
