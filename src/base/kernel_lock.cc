// After Drepper, "Futexes Are Tricky" (2011), section 5: the second mutex.
#include "base/kernel_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/syscall.h"

namespace sterna {

void KernelLock::lock() noexcept STERNA_LOCKS_UNCHECKED {
  if (try_lock()) {
    return;
  }
  // Acquire: pairs with the release of unlock().
  while (state_.exchange(2, std::memory_order_acquire) != 0) {
    raw_system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAIT_PRIVATE, 2, 0);
  }
}

bool KernelLock::try_lock() noexcept {
  std::uint32_t free = 0;
  return state_.compare_exchange_strong(free, 1, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

void KernelLock::unlock() noexcept STERNA_LOCKS_UNCHECKED {
  if (state_.exchange(0, std::memory_order_release) == 2) {
    raw_system_call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAKE_PRIVATE, 1);
  }
}

}  // namespace sterna
