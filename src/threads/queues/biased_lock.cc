// The slow halves of the biased lock, and the barrier that it is built on.
#include "threads/queues/biased_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/backoff.h"
#include "base/check.h"
#include "base/syscall.h"

namespace sterna::threads {

bool register_process_barrier() noexcept {
  return raw_system_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0;
}

void process_barrier() noexcept {
  check(raw_system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0,
        "membarrier works after it was registered");
}

bool BiasedLock::try_lock_from_outside(std::uint32_t pauses_max) noexcept {
  if (is_wanted() || owner_waits_.load(std::memory_order_relaxed) != 0 ||
      thief_.exchange(kThief, std::memory_order_seq_cst) == kThief) {
    return false;
  }
  if (is_asymmetric_) {
    process_barrier();
  }
  Backoff backoff;
  // A: acquires what the owner did in its last section.
  for (std::uint32_t pauses = 0; owner_.load(std::memory_order_seq_cst) != 0; ++pauses) {
    if (pauses == pauses_max) {
      unlock_from_outside();  // It never was inside; the owner may wait for that.
      return false;
    }
    backoff.pause();
  }
  return true;
}

void BiasedLock::lock_slow() noexcept {
  if (!is_asymmetric_) {
    // Plain Dekker: what lock() has stored may not be seen yet.
    owner_.exchange(1, std::memory_order_seq_cst);
    if (thief_.load(std::memory_order_seq_cst) != kThief) {  // B
      return;
    }
  }
  // The thief goes first: it has paid, and holds the lock for a few instructions.
  owner_waits_.store(1, std::memory_order_relaxed);
  Backoff backoff;
  do {
    owner_.store(0, std::memory_order_release);                 // A
    while (thief_.load(std::memory_order_acquire) == kThief) {  // B
      backoff.pause();
    }
    owner_.exchange(1, std::memory_order_seq_cst);
  } while (thief_.load(std::memory_order_seq_cst) == kThief);
  owner_waits_.store(0, std::memory_order_relaxed);
}

}  // namespace sterna::threads
