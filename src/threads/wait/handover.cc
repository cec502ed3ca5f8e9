// A thread goes on at another worker. See handover.h.
#include "threads/wait/handover.h"

#include "threads/scheduler.h"
#include "threads/this_thread.h"

namespace sterna::threads {

bool go_to(Worker& worker) noexcept {
  Thread& me = *self();
  constexpr std::uint32_t kTied =
      ThreadFlag::bound | ThreadFlag::assorted | ThreadFlag::managed | ThreadFlag::placed;
  if (&worker == me.worker.load(std::memory_order_relaxed) || (me.flags & kTied) != 0 ||
      worker.is_disabled.load(std::memory_order_relaxed)) {
    return false;
  }
  // Nobody wakes it meanwhile: it is published nowhere but there, by who continues here, when its
  // registers are saved. A wake of something else that it waits for is a token, as while it runs.
  (void)suspend(
      me, []() noexcept { return true; },
      [](Thread& thread, void* to) noexcept {
        thread.activity.store(Activity::ready, std::memory_order_relaxed);
        // Relaxed: as in pass_on().
        thread.worker.store(static_cast<Worker*>(to), std::memory_order_relaxed);
        send_home(*static_cast<Worker*>(to), thread);
      },
      &worker);
  return true;
}

}  // namespace sterna::threads
