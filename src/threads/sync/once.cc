// The first calls of a Once.
#include "threads/sync/once.h"

#include "threads/control/cancel.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

// The caller has the mutex, as the last one to push a cleanup.
void unlock_at_end(void* mutex) noexcept STERNA_LOCKS_UNCHECKED {
  static_cast<Mutex*>(mutex)->unlock();
}

}  // namespace

void Once::call_slow(FunctionRef<void()> function) noexcept {
  const MutexGuard guard{mutex_};
  if (done_.load(std::memory_order_relaxed)) {  // Guarded by the mutex.
    return;
  }
  // A caller that ends inside the function (cancelled, or by itself) is not unwound: as in POSIX,
  // it has not happened then, and the next caller's turn begins.
  Cleanup cleanup{.function = unlock_at_end, .argument = &mutex_};
  const bool is_user_thread = self() != nullptr;
  if (is_user_thread) {
    push_cleanup(cleanup);
  }
  function();
  if (is_user_thread) {
    drop_cleanup(cleanup);
  }
  done_.store(true, std::memory_order_release);  // A
}

}  // namespace sterna::threads
