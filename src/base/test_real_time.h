// For tests: a real-time policy, under which nobody takes the processor from who spins.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace sterna {

/// The calling thread runs on that processor only, before all that have no such policy, and as long
/// as it likes beside others that rule there. False: this user may not (ulimit -r).
inline bool rule(int processor) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  const sched_param lowest{.sched_priority = ::sched_get_priority_min(SCHED_FIFO)};
  // In this order: on that processor nobody else may run.
  return ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &lowest) == 0 &&
         ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set) == 0;
}

}  // namespace sterna
