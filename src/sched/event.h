// One event of a policy: the lock of the engine, memory for its time, and the commitment at its
// end. Internal to sched/.
#pragma once

#include "sched/engine.h"

namespace sterna::sched {

class Engine::Event {
 public:
  explicit Event(Engine& engine) noexcept STERNA_LOCKS_UNCHECKED
      : view{engine, *engine.policy_, engine.topology_.root()},
        engine_{engine},
        guard_{engine.lock_},
        memory_{engine.scratch_.get(), engine.scratch_bytes_} {
    view.policy_ = engine.policy_.get();  // It may have changed before we had the lock.
    engine.event_memory_ = &memory_;
  }
  ~Event() STERNA_LOCKS_UNCHECKED {
    engine_.commit();
    engine_.event_memory_ = nullptr;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] Policy& policy() const noexcept { return *engine_.policy_; }

  View view;

 private:
  Engine& engine_;
  const SpinGuard guard_;
  std::pmr::monotonic_buffer_resource memory_;  // From the heap, if the scratch is too small.
};

}  // namespace sterna::sched
