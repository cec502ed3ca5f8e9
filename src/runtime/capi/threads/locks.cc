// sync.h, the rest: barriers, rwlocks, spin locks and futexes of threads/sync in memory of a C
// program.
#include <atomic>
#include <new>

#include <sterna/sync.h>

#include "runtime/capi/bubbles/holder.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"
#include "threads/sync/barrier.h"
#include "threads/sync/rwlock.h"
#include "threads/sync/word_wait.h"
#include "threads/sync/yielding_lock.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::HotScope;
using sterna::runtime::RuntimeScope;

namespace {

template <typename Object, typename Storage>
Object& object_in(Storage* storage) noexcept {
  static_assert(sizeof(Object) <= sizeof(Storage) && alignof(Object) <= alignof(Storage));
  return *std::launder(reinterpret_cast<Object*>(storage));
}

sterna_status make_barrier(sterna_barrier* barrier, uint32_t count,
                           threads::BarrierWait wait) noexcept {
  if (barrier == nullptr || count == 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a barrier has memory, and 1 participant at least");
  }
  static_assert(sizeof(threads::Barrier) <= sizeof *barrier);
  new (barrier) threads::Barrier{count, wait};
  return STERNA_SUCCESS;
}

threads::Barrier& barrier_in(sterna_barrier* barrier) noexcept {
  return object_in<threads::Barrier>(barrier);
}

[[gnu::noinline]] sterna_status refuse_barrier(const sterna_barrier* barrier) noexcept {
  return barrier == nullptr
             ? capi::refuse(STERNA_INVALID_ARGUMENT, "a barrier is not NULL")
             : capi::refuse(STERNA_INVALID_ARGUMENT,
                            "barrier {} was destroyed, or was never initialised",
                            static_cast<const void*>(barrier));
}

/// SUCCESS: `barrier` can be used.
[[gnu::always_inline]] inline sterna_status check_barrier(sterna_barrier* barrier) noexcept {
  return barrier != nullptr && barrier_in(barrier).is_fit() ? STERNA_SUCCESS
                                                             : refuse_barrier(barrier);
}

/// A lock that knows its writer.
struct OwnedRwLock {
  threads::RwLock lock;
  // Written by the writer; relaxed, since a caller only compares it with itself.
  std::atomic<std::uintptr_t> writer{0};
};

OwnedRwLock& rwlock_in(sterna_rwlock* lock) noexcept {
  return object_in<OwnedRwLock>(lock);
}

[[gnu::noinline]] sterna_status refuse_rwlock(const sterna_rwlock* lock) noexcept {
  return lock == nullptr ? capi::refuse(STERNA_INVALID_ARGUMENT, "a rwlock is not NULL")
                         : capi::refuse(STERNA_INVALID_ARGUMENT, "rwlock {} was destroyed",
                                        static_cast<const void*>(lock));
}

/// SUCCESS: `lock` can be used.
[[gnu::always_inline]] inline sterna_status check_rwlock(sterna_rwlock* lock) noexcept {
  return lock != nullptr && rwlock_in(lock).lock.is_fit() ? STERNA_SUCCESS : refuse_rwlock(lock);
}

bool is_writer(const OwnedRwLock& lock) noexcept {
  return lock.writer.load(std::memory_order_relaxed) == capi::holder_word();
}

/// Who writes waits for itself.
sterna_status refuse_writer(const sterna_rwlock* lock) noexcept {
  return capi::refuse(STERNA_DEADLOCK, "rwlock {}: {} writes, and would wait for itself",
                      static_cast<const void*>(lock), capi::words_for(threads::self()));
}

}  // namespace

sterna_status sterna_barrier_init(sterna_barrier* barrier, uint32_t count) noexcept {
  return make_barrier(barrier, count, threads::BarrierWait::sleep);
}

sterna_status sterna_barrier_init_yielding(sterna_barrier* barrier, uint32_t count) noexcept {
  return make_barrier(barrier, count, threads::BarrierWait::yield);
}

sterna_status sterna_barrier_destroy(sterna_barrier* barrier) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = check_barrier(barrier); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  if (barrier_in(barrier).is_used()) {
    return capi::refuse(STERNA_BUSY, "barrier {} is destroyed while participants wait at it",
                        static_cast<const void*>(barrier));
  }
  barrier_in(barrier).retire();
  return STERNA_SUCCESS;
}

sterna_status sterna_barrier_wait(sterna_barrier* barrier, int* is_last) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_barrier(barrier); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  const bool last = barrier_in(barrier).arrive_and_wait();
  if (is_last != nullptr) {
    *is_last = last ? 1 : 0;
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_barrier_arrive(sterna_barrier* barrier, uint32_t* round,
                                    int* is_last) noexcept {
  const HotScope scope;
  if (round == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status status = check_barrier(barrier); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  const threads::Barrier::Round arrived = barrier_in(barrier).arrive();
  *round = arrived.number;
  if (is_last != nullptr) {
    *is_last = arrived.is_last ? 1 : 0;
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_barrier_finish(sterna_barrier* barrier, uint32_t round) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_barrier(barrier); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  if (!barrier_in(barrier).has_begun(round)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "nobody has arrived in round {} of barrier {}: sterna_barrier_arrive gives "
                        "the number of the round",
                        round, static_cast<const void*>(barrier));
  }
  barrier_in(barrier).wait({.number = round, .is_last = false});
  return STERNA_SUCCESS;
}

sterna_status sterna_barrier_add(sterna_barrier* barrier, int32_t change,
                                 uint32_t* count) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = check_barrier(barrier); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  if (!barrier_in(barrier).add_count(change)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "barrier {}: a change of {} would leave it no participant",
                        static_cast<const void*>(barrier), change);
  }
  if (count != nullptr) {
    *count = barrier_in(barrier).count();
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_rwlock_init(sterna_rwlock* lock,
                                 sterna_rwlock_preference preference) noexcept {
  if (lock == nullptr || static_cast<unsigned>(preference) > STERNA_RWLOCK_WRITERS) {
    return capi::refuse_argument(__func__);
  }
  static_assert(sizeof(OwnedRwLock) <= sizeof *lock);
  new (lock) OwnedRwLock{.lock = threads::RwLock{static_cast<threads::RwPreference>(preference)}};
  return STERNA_SUCCESS;
}

sterna_status sterna_rwlock_destroy(sterna_rwlock* lock) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = check_rwlock(lock); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  if (rwlock_in(lock).lock.is_used()) {
    return capi::refuse(STERNA_BUSY, "rwlock {} is destroyed while somebody holds or awaits it",
                        static_cast<const void*>(lock));
  }
  rwlock_in(lock).lock.retire();
  return STERNA_SUCCESS;
}

sterna_status sterna_rwlock_read(sterna_rwlock* lock, uint64_t timeout_ns) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_rwlock(lock); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  OwnedRwLock& its = rwlock_in(lock);
  if (timeout_ns == 0) {
    return its.lock.try_lock_shared() ? STERNA_SUCCESS : STERNA_BUSY;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  if (is_writer(its)) {
    return refuse_writer(lock);
  }
  return its.lock.lock_shared(capi::deadline_of(timeout_ns)) ? STERNA_SUCCESS : STERNA_TIMED_OUT;
}

sterna_status sterna_rwlock_write(sterna_rwlock* lock, uint64_t timeout_ns) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_rwlock(lock); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  OwnedRwLock& its = rwlock_in(lock);
  if (timeout_ns == 0) {
    if (!its.lock.try_lock()) {
      return STERNA_BUSY;
    }
  } else if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  } else if (is_writer(its)) {
    return refuse_writer(lock);
  } else if (!its.lock.lock(capi::deadline_of(timeout_ns))) {
    return STERNA_TIMED_OUT;
  }
  its.writer.store(capi::holder_word(), std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

sterna_status sterna_rwlock_end_read(sterna_rwlock* lock) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_rwlock(lock); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  return rwlock_in(lock).lock.unlock_shared()
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_NOT_OWNER, "rwlock {}: a reader ends, but nobody reads",
                            static_cast<const void*>(lock));
}

sterna_status sterna_rwlock_end_write(sterna_rwlock* lock) noexcept {
  const HotScope scope;
  if (const sterna_status status = check_rwlock(lock); status != STERNA_SUCCESS) [[unlikely]] {
    return status;
  }
  OwnedRwLock& its = rwlock_in(lock);
  if (!is_writer(its)) {
    return capi::refuse(STERNA_NOT_OWNER,
                        "rwlock {}: {} ends writing, but {} writes: its writer does that",
                        static_cast<const void*>(lock), capi::words_for(threads::self()),
                        capi::words_for_holder(its.writer.load(std::memory_order_relaxed)));
  }
  // Before it is given back: the next writer sets its own.
  its.writer.store(0, std::memory_order_relaxed);
  (void)its.lock.unlock();
  return STERNA_SUCCESS;
}

sterna_status sterna_spin_lock_take(sterna_spin_lock* lock) noexcept STERNA_LOCKS_UNCHECKED {
  const HotScope scope;
  if (lock == nullptr) {
    return capi::refuse_argument(__func__);
  }
  auto& its = object_in<threads::YieldingLock>(lock);
  if (its.try_lock()) {
    return STERNA_SUCCESS;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  its.lock();
  return STERNA_SUCCESS;
}

sterna_status sterna_spin_lock_try(sterna_spin_lock* lock) noexcept {
  if (lock == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return object_in<threads::YieldingLock>(lock).try_lock() ? STERNA_SUCCESS : STERNA_BUSY;
}

sterna_status sterna_spin_lock_give(sterna_spin_lock* lock) noexcept STERNA_LOCKS_UNCHECKED {
  if (lock == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return object_in<threads::YieldingLock>(lock).unlock()
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_NOT_OWNER, "spin lock {} is given back, but nobody holds it",
                            static_cast<const void*>(lock));
}

sterna_status sterna_futex_wait(sterna_futex* futex, const uint64_t* word, uint64_t mask,
                                uint64_t value, uint64_t timeout_ns) noexcept {
  const HotScope scope;
  if (futex == nullptr || word == nullptr) {
    return capi::refuse_argument(__func__);
  }
  static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof *word);
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  bool has_waited = false;
  const threads::Wake wake = object_in<threads::WordWait>(futex).wait(
      *reinterpret_cast<const std::atomic<std::uint64_t>*>(word), mask, value,
      capi::deadline_of(timeout_ns), has_waited);
  if (!has_waited) {
    return STERNA_BUSY;
  }
  return wake == threads::Wake::timed_out ? STERNA_TIMED_OUT : STERNA_SUCCESS;
}

sterna_status sterna_futex_wake(sterna_futex* futex, uint32_t count, uint32_t* woken) noexcept {
  const HotScope scope;
  if (futex == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const std::uint32_t taken = object_in<threads::WordWait>(futex).wake(count);
  if (woken != nullptr) {
    *woken = taken;
  }
  return STERNA_SUCCESS;
}
