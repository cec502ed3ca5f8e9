// Priority for short measurements on a machine that is shared.
#pragma once

#include <sched.h>

namespace sterna::bench {

/// Real-time priority for the calling kernel thread, if allowed, as long as this lives. Threads and
/// processes that are started meanwhile inherit it. For seconds, not minutes: others wait.
class Preferred {
 public:
  Preferred() noexcept { set(SCHED_FIFO, 1); }
  ~Preferred() { set(SCHED_OTHER, 0); }
  Preferred(const Preferred&) = delete;
  Preferred& operator=(const Preferred&) = delete;

 private:
  static void set(int policy, int priority) noexcept {
    sched_param parameters{};
    parameters.sched_priority = priority;
    static_cast<void>(::sched_setscheduler(0, policy, &parameters));
  }
};

}  // namespace sterna::bench
