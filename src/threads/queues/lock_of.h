// The section of any worker's queue, from anywhere. Internal to threads/.
#pragma once

#include "base/backoff.h"
#include "threads/scheduler.h"

namespace sterna::threads {

/// Runs `section` under the biased lock of `worker`; that lock is not held yet.
template <typename Section>
void with_lock_of(Worker& worker, Section&& section) noexcept {
  if (current_worker() == &worker) {
    worker.lock.lock();
    section();
    worker.lock.unlock();
    return;
  }
  Backoff backoff;
  while (!worker.lock.try_lock_from_outside()) {
    backoff.pause();
  }
  section();
  worker.lock.unlock_from_outside();
}

}  // namespace sterna::threads
