// How a lock is taken from its owner.
#include "threads/queues/owned_lock.h"

#include "base/backoff.h"
#include "threads/scheduler.h"

namespace sterna::threads {

void OwnedLock::take_from_owner() noexcept {
  Worker* const owner = owner_.load(std::memory_order_relaxed);
  if (owner == current_worker()) {
    return;
  }
  Backoff backoff;
  while (!owner->lock.try_lock_from_outside()) {
    backoff.pause();  // Another thief; the owner itself is waited for inside.
  }
  const std::uint16_t uses = count_.load(std::memory_order_relaxed);
  disown();
  owner->lock.unlock_from_outside();
  // What changes hands too soon costs more than it gains.
  const std::uint16_t attempts = attempts_.load(std::memory_order_relaxed);
  attempts_.store(uses >= kUsesWorthWhile   ? kAttemptsMin
                  : attempts < kAttemptsMax ? static_cast<std::uint16_t>(2 * attempts)
                                            : attempts,
                  std::memory_order_relaxed);
}

}  // namespace sterna::threads
