// sync.h: the objects of threads/sync in memory of a C program. All zeroes is their initial state.
#include <new>

#include <sterna/sync.h>

#include "runtime/capi/bubbles/holder.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"
#include "threads/control/cancel.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"
#include "threads/sync/once.h"
#include "threads/sync/semaphore.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::HotScope;
using sterna::runtime::RuntimeScope;

namespace {

/// A mutex that knows its holder.
struct OwnedMutex {
  threads::Mutex mutex;
  // Written by the holder; relaxed, since a caller only compares it with itself.
  std::atomic<std::uintptr_t> owner{0};
  std::uint32_t depth = 0;  // Of a recursive one: locked so many times more. The holder's.
  std::uint32_t kind = STERNA_MUTEX_CHECKED;  // Constant; kDestroyed: destroyed.
};

constexpr std::uint32_t kDestroyed = 0xdead;

template <typename Object, typename Storage>
Object& object_in(Storage* storage) noexcept {
  static_assert(sizeof(Object) <= sizeof(Storage) && alignof(Object) <= alignof(Storage));
  return *std::launder(reinterpret_cast<Object*>(storage));
}

OwnedMutex& mutex_in(sterna_mutex* mutex) noexcept {
  return object_in<OwnedMutex>(mutex);
}

bool is_mine(const OwnedMutex& mutex) noexcept {
  return mutex.owner.load(std::memory_order_relaxed) == capi::holder_word();
}

std::string holder_of(const OwnedMutex& mutex) {
  return capi::words_for_holder(mutex.owner.load(std::memory_order_relaxed));
}

[[gnu::noinline]] sterna_status refuse_mutex(const sterna_mutex* mutex) noexcept {
  return mutex == nullptr ? capi::refuse(STERNA_INVALID_ARGUMENT, "a mutex is not NULL")
                          : capi::refuse(STERNA_INVALID_ARGUMENT,
                                         "mutex {} was destroyed, or was never initialised",
                                         static_cast<const void*>(mutex));
}

/// SUCCESS: `mutex` can be used.
[[gnu::always_inline]] inline sterna_status check_mutex(const sterna_mutex* mutex) noexcept {
  const bool is_fit =
      mutex != nullptr && reinterpret_cast<const OwnedMutex*>(mutex)->kind <= STERNA_MUTEX_NORMAL;
  return is_fit ? STERNA_SUCCESS : refuse_mutex(mutex);
}

/// The caller holds it already, by its kind: one more, or a deadlock.
sterna_status lock_again(sterna_mutex* mutex, OwnedMutex& self) noexcept {
  if (self.kind == STERNA_MUTEX_RECURSIVE && self.depth != UINT32_MAX) {
    ++self.depth;
    return STERNA_SUCCESS;
  }
  return capi::refuse(STERNA_DEADLOCK, "mutex {}: {} holds it already, and would wait for itself",
                      static_cast<const void*>(mutex), capi::words_for(threads::self()));
}

[[gnu::noinline]] sterna_status refuse_owner(const sterna_mutex* mutex, const OwnedMutex& self,
                                             std::string_view what) noexcept {
  return capi::refuse(STERNA_NOT_OWNER, "mutex {}: {} {}, but {} holds it: its holder does that",
                      static_cast<const void*>(mutex), capi::words_for(threads::self()), what,
                      holder_of(self));
}

/// Somebody holds it, perhaps the caller. SUCCESS: the caller does, and has said so.
[[gnu::noinline]] sterna_status lock_held(sterna_mutex* mutex, OwnedMutex& self,
                                          std::uint64_t timeout_ns,
                                          const char* call) noexcept STERNA_LOCKS_UNCHECKED {
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(call);
  }
  if (self.kind != STERNA_MUTEX_NORMAL && is_mine(self)) {
    return lock_again(mutex, self);
  }
  if (!self.mutex.try_lock_until(capi::deadline_of(timeout_ns))) {
    return STERNA_TIMED_OUT;
  }
  if (const sterna_status status = check_mutex(mutex); status != STERNA_SUCCESS) [[unlikely]] {
    self.mutex.unlock();
    return status;  // Destroyed, when we had been woken for it.
  }
  self.owner.store(capi::holder_word(), std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

/// holder_word() of who has opened `scope`.
[[gnu::always_inline]] inline std::uintptr_t holder_in(const HotScope& scope) noexcept {
  return scope.caller() != nullptr ? reinterpret_cast<std::uintptr_t>(scope.caller())
                                   : capi::holder_word();
}

/// deadline_of(), with no call for the usual one.
[[gnu::always_inline]] inline std::uint64_t deadline_in(std::uint64_t timeout_ns) noexcept {
  return timeout_ns == STERNA_FOREVER ? sterna::kNever : capi::deadline_of(timeout_ns);
}

[[gnu::always_inline]] inline sterna_status lock_until_timeout(
    sterna_mutex* mutex, std::uint64_t timeout_ns,
    const char* call) noexcept STERNA_LOCKS_UNCHECKED {
  const HotScope scope;
  if (const sterna_status status = check_mutex(mutex); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  OwnedMutex& self = mutex_in(mutex);
  threads::Thread* const me = scope.caller();
  if (!(me != nullptr ? self.mutex.try_lock_as(*me) : self.mutex.try_lock())) [[unlikely]] {
    return lock_held(mutex, self, timeout_ns, call);
  }
  self.owner.store(holder_in(scope), std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status sterna_mutex_lock(sterna_mutex* mutex) noexcept STERNA_LOCKS_UNCHECKED {
  return lock_until_timeout(mutex, STERNA_FOREVER, __func__);
}

sterna_status sterna_mutex_init(sterna_mutex* mutex, sterna_mutex_kind kind) noexcept {
  if (mutex == nullptr || static_cast<unsigned>(kind) > STERNA_MUTEX_NORMAL) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a mutex has memory and one of the three kinds");
  }
  static_assert(sizeof(OwnedMutex) <= sizeof *mutex);
  (new (mutex) OwnedMutex)->kind = static_cast<std::uint32_t>(kind);
  return STERNA_SUCCESS;
}

sterna_status sterna_mutex_destroy(sterna_mutex* mutex) noexcept STERNA_LOCKS_UNCHECKED {
  const RuntimeScope scope;
  if (const sterna_status status = check_mutex(mutex); status != STERNA_SUCCESS) {
    return status;
  }
  OwnedMutex& self = mutex_in(mutex);
  if (!self.mutex.try_lock_unused()) {
    return capi::refuse(STERNA_BUSY,
                        "mutex {} is destroyed while {} holds it, or others wait for it: unlock it "
                        "first",
                        static_cast<const void*>(mutex), holder_of(self));
  }
  self.kind = kDestroyed;
  self.mutex.unlock();  // Who was woken for it, and has not run yet, finds it destroyed.
  return STERNA_SUCCESS;
}

sterna_status sterna_mutex_lock_for(sterna_mutex* mutex,
                                    uint64_t timeout_ns) noexcept STERNA_LOCKS_UNCHECKED {
  return lock_until_timeout(mutex, timeout_ns, __func__);
}

sterna_status sterna_mutex_try_lock(sterna_mutex* mutex) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_mutex(mutex); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  OwnedMutex& self = mutex_in(mutex);
  if (!self.mutex.try_lock()) {
    return self.kind == STERNA_MUTEX_RECURSIVE && is_mine(self) ? lock_again(mutex, self)
                                                                : STERNA_BUSY;
  }
  self.owner.store(capi::holder_word(), std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

sterna_status sterna_mutex_unlock(sterna_mutex* mutex) noexcept STERNA_LOCKS_UNCHECKED {
  const HotScope scope;
  if (const sterna_status status = check_mutex(mutex); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  OwnedMutex& self = mutex_in(mutex);
  const std::uintptr_t owner = self.owner.load(std::memory_order_relaxed);
  const bool may = self.kind == STERNA_MUTEX_NORMAL ? owner != 0 : owner == holder_in(scope);
  if (!may) [[unlikely]] {
    return refuse_owner(mutex, self, "gives it back");
  }
  if (self.depth != 0) [[unlikely]] {
    --self.depth;
    return STERNA_SUCCESS;
  }
  self.owner.store(0, std::memory_order_relaxed);
  if (threads::Thread* const me = scope.caller(); me != nullptr) [[likely]] {
    self.mutex.unlock_as(*me);
  } else {
    self.mutex.unlock();
  }
  return STERNA_SUCCESS;
}

namespace {

[[gnu::noinline]] sterna_status refuse_deep(const sterna_mutex* mutex,
                                            const OwnedMutex& self) noexcept {
  return capi::refuse(STERNA_DEADLOCK,
                      "mutex {}: a wait gives it back once, and {} holds it {} times",
                      static_cast<const void*>(mutex), capi::words_for(threads::self()),
                      std::uint64_t{self.depth} + 1);
}

/// The wait of who may be cancellable, or is no hot caller. A cancelled thread holds the mutex in
/// its cleanups, which may give it back.
[[gnu::noinline]] bool wait_as_cancellable(threads::Condition& condition, OwnedMutex& held,
                                           std::uint64_t timeout_ns) noexcept
    STERNA_LOCKS_UNCHECKED {
  threads::Cleanup own{[](void* its) {
                         static_cast<OwnedMutex*>(its)->owner.store(capi::holder_word(),
                                                                    std::memory_order_relaxed);
                       },
                       &held};
  const threads::Thread* const me = threads::self();
  const bool is_cancellable = me != nullptr && me->is_cancellable;
  if (is_cancellable) {
    threads::push_cleanup(own);
  }
  const bool is_signalled = condition.wait_until(held.mutex, capi::deadline_of(timeout_ns));
  if (is_cancellable) {
    (void)threads::pop_cleanup(false);
  }
  return is_signalled;
}

}  // namespace

sterna_status sterna_condition_wait(sterna_condition* condition, sterna_mutex* mutex,
                                    uint64_t timeout_ns) noexcept STERNA_LOCKS_UNCHECKED {
  const HotScope scope;
  if (condition == nullptr || mutex == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  OwnedMutex& held = mutex_in(mutex);
  const std::uintptr_t holder = holder_in(scope);
  if (held.owner.load(std::memory_order_relaxed) != holder) [[unlikely]] {
    return refuse_owner(mutex, held, "waits with it");
  }
  if (held.depth != 0) [[unlikely]] {
    return refuse_deep(mutex, held);
  }
  held.owner.store(0, std::memory_order_relaxed);
  auto& its = object_in<threads::Condition>(condition);
  threads::Thread* const me = scope.caller();
  bool is_signalled = true;
  if (me == nullptr || me->is_cancellable) {
    is_signalled = wait_as_cancellable(its, held, timeout_ns);
  } else if (timeout_ns == STERNA_FOREVER) {
    its.wait_as(*me, held.mutex);
  } else {
    is_signalled = its.wait_until(held.mutex, deadline_in(timeout_ns));
  }
  held.owner.store(holder, std::memory_order_relaxed);
  return is_signalled ? STERNA_SUCCESS : STERNA_TIMED_OUT;
}

sterna_status sterna_condition_signal(sterna_condition* condition) noexcept {
  const HotScope scope;
  if (condition == nullptr) {
    return capi::refuse_argument(__func__);
  }
  object_in<threads::Condition>(condition).signal();
  return STERNA_SUCCESS;
}

sterna_status sterna_condition_broadcast(sterna_condition* condition) noexcept {
  const HotScope scope;
  if (condition == nullptr) {
    return capi::refuse_argument(__func__);
  }
  object_in<threads::Condition>(condition).broadcast();
  return STERNA_SUCCESS;
}

sterna_status sterna_semaphore_init(sterna_semaphore* semaphore, uint32_t count) noexcept {
  if (semaphore == nullptr) {
    return capi::refuse_argument(__func__);
  }
  new (semaphore) threads::Semaphore{count};
  return STERNA_SUCCESS;
}

sterna_status sterna_semaphore_acquire(sterna_semaphore* semaphore, uint64_t timeout_ns) noexcept {
  const HotScope scope;
  if (semaphore == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return object_in<threads::Semaphore>(semaphore).try_acquire_until(deadline_in(timeout_ns))
             ? STERNA_SUCCESS
             : STERNA_TIMED_OUT;
}

sterna_status sterna_semaphore_try_acquire(sterna_semaphore* semaphore) noexcept {
  const HotScope scope;
  if (semaphore == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return object_in<threads::Semaphore>(semaphore).try_acquire() ? STERNA_SUCCESS : STERNA_BUSY;
}

sterna_status sterna_semaphore_release(sterna_semaphore* semaphore, uint32_t count) noexcept {
  const HotScope scope;
  if (semaphore == nullptr) {
    return capi::refuse_argument(__func__);
  }
  object_in<threads::Semaphore>(semaphore).release(count);
  return STERNA_SUCCESS;
}

sterna_status sterna_once_call(sterna_once* once, void (*function)(void*),
                               void* argument) noexcept {
  const RuntimeScope scope;
  if (once == nullptr || function == nullptr) {
    return capi::refuse_argument(__func__);
  }
  auto& its = object_in<threads::Once>(once);
  if (!its.is_done() && capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  its.call([&] {
    const sterna::runtime::UserScope user;
    function(argument);
  });
  return STERNA_SUCCESS;
}
