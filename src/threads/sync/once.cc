// The first calls of a Once.
#include "threads/sync/once.h"

namespace sterna::threads {

void Once::call_slow(FunctionRef<void()> function) noexcept {
  const MutexGuard guard{mutex_};
  if (!done_.load(std::memory_order_relaxed)) {  // Guarded by the mutex.
    function();
    done_.store(true, std::memory_order_release);  // A
  }
}

}  // namespace sterna::threads
