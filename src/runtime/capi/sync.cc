// sync.h: the objects of threads/sync in memory of a C program. All zeroes is their initial state.
#include <new>

#include <sterna/sync.h>

#include "base/thread_pointer.h"
#include "runtime/capi/program.h"
#include "runtime/scope.h"
#include "threads/sync/barrier.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"
#include "threads/sync/once.h"
#include "threads/sync/semaphore.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;

namespace {

/// A mutex that knows its holder.
struct OwnedMutex {
  threads::Mutex mutex;
  // Written by the holder; relaxed, since a caller only compares it with itself.
  std::atomic<std::uintptr_t> owner{0};
};

template <typename Object, typename Storage>
Object& object_in(Storage* storage) noexcept {
  static_assert(sizeof(Object) <= sizeof(Storage) && alignof(Object) <= alignof(Storage));
  return *std::launder(reinterpret_cast<Object*>(storage));
}

/// Who calls: the user thread, else the kernel thread.
std::uintptr_t caller() noexcept {
  const threads::Thread* const me = threads::self();
  return me != nullptr ? reinterpret_cast<std::uintptr_t>(me) : sterna::thread_pointer();
}

OwnedMutex& mutex_in(sterna_mutex* mutex) noexcept {
  return object_in<OwnedMutex>(mutex);
}

bool is_mine(const OwnedMutex& mutex) noexcept {
  return mutex.owner.load(std::memory_order_relaxed) == caller();
}

}  // namespace

sterna_status sterna_mutex_lock(sterna_mutex* mutex) noexcept {
  return sterna_mutex_lock_for(mutex, STERNA_FOREVER);
}

sterna_status sterna_mutex_lock_for(sterna_mutex* mutex, uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (mutex == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  OwnedMutex& self = mutex_in(mutex);
  if (!self.mutex.try_lock()) {
    if (is_mine(self)) {
      return STERNA_DEADLOCK;
    }
    if (!self.mutex.try_lock_until(capi::deadline_of(timeout_ns))) {
      return STERNA_TIMED_OUT;
    }
  }
  self.owner.store(caller(), std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

sterna_status sterna_mutex_try_lock(sterna_mutex* mutex) noexcept {
  const RuntimeScope scope;
  if (mutex == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  OwnedMutex& self = mutex_in(mutex);
  if (!self.mutex.try_lock()) {
    return STERNA_BUSY;
  }
  self.owner.store(caller(), std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

sterna_status sterna_mutex_unlock(sterna_mutex* mutex) noexcept STERNA_LOCKS_UNCHECKED {
  const RuntimeScope scope;
  if (mutex == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  OwnedMutex& self = mutex_in(mutex);
  if (!is_mine(self)) {
    return STERNA_NOT_OWNER;
  }
  self.owner.store(0, std::memory_order_relaxed);
  self.mutex.unlock();
  return STERNA_SUCCESS;
}

sterna_status sterna_condition_wait(sterna_condition* condition, sterna_mutex* mutex,
                                    uint64_t timeout_ns) noexcept STERNA_LOCKS_UNCHECKED {
  const RuntimeScope scope;
  if (condition == nullptr || mutex == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  OwnedMutex& held = mutex_in(mutex);
  if (!is_mine(held)) {
    return STERNA_NOT_OWNER;
  }
  held.owner.store(0, std::memory_order_relaxed);
  const bool is_signalled = object_in<threads::Condition>(condition).wait_until(
      held.mutex, capi::deadline_of(timeout_ns));
  held.owner.store(caller(), std::memory_order_relaxed);
  return is_signalled ? STERNA_SUCCESS : STERNA_TIMED_OUT;
}

sterna_status sterna_condition_signal(sterna_condition* condition) noexcept {
  const RuntimeScope scope;
  if (condition == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  object_in<threads::Condition>(condition).signal();
  return STERNA_SUCCESS;
}

sterna_status sterna_condition_broadcast(sterna_condition* condition) noexcept {
  const RuntimeScope scope;
  if (condition == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  object_in<threads::Condition>(condition).broadcast();
  return STERNA_SUCCESS;
}

sterna_status sterna_semaphore_init(sterna_semaphore* semaphore, uint32_t count) noexcept {
  if (semaphore == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  new (semaphore) threads::Semaphore{count};
  return STERNA_SUCCESS;
}

sterna_status sterna_semaphore_acquire(sterna_semaphore* semaphore, uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (semaphore == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  return object_in<threads::Semaphore>(semaphore).try_acquire_until(capi::deadline_of(timeout_ns))
             ? STERNA_SUCCESS
             : STERNA_TIMED_OUT;
}

sterna_status sterna_semaphore_try_acquire(sterna_semaphore* semaphore) noexcept {
  const RuntimeScope scope;
  if (semaphore == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  return object_in<threads::Semaphore>(semaphore).try_acquire() ? STERNA_SUCCESS : STERNA_BUSY;
}

sterna_status sterna_semaphore_release(sterna_semaphore* semaphore, uint32_t count) noexcept {
  const RuntimeScope scope;
  if (semaphore == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  object_in<threads::Semaphore>(semaphore).release(count);
  return STERNA_SUCCESS;
}

sterna_status sterna_barrier_init(sterna_barrier* barrier, uint32_t count) noexcept {
  if (barrier == nullptr || count == 0) {
    return STERNA_INVALID_ARGUMENT;
  }
  static_assert(sizeof(threads::Barrier) <= sizeof *barrier);
  new (barrier) threads::Barrier{count};
  return STERNA_SUCCESS;
}

sterna_status sterna_barrier_wait(sterna_barrier* barrier, int* is_last) noexcept {
  const RuntimeScope scope;
  if (barrier == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  const bool last = object_in<threads::Barrier>(barrier).arrive_and_wait();
  if (is_last != nullptr) {
    *is_last = last ? 1 : 0;
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_once_call(sterna_once* once, void (*function)(void*),
                               void* argument) noexcept {
  const RuntimeScope scope;
  if (once == nullptr || function == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  object_in<threads::Once>(once).call([&] {
    const sterna::runtime::UserScope user;
    function(argument);
  });
  return STERNA_SUCCESS;
}
