// The contended half of the mutex, and its bias.
//
// An unlock frees the mutex and wakes the first waiter, which tries again: whoever comes first gets
// it, so no processor waits for a thread that is not running yet. A waiter that has lost that race
// waits at the front, and the next unlock hands the mutex over to it: nobody starves.
#include "threads/sync/mutex.h"

#include "base/backoff.h"
#include "base/check.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

// Looks in a row that must find the same worker, by how often the bias was taken away: some 500
// uses, then 1000. A bias that is taken away costs as much as some 200 uses without.
constexpr std::uint32_t kSameBefore = 3;
constexpr std::uint32_t kSameAfter = 7;

LockHome* home_here() noexcept {
  Worker* const worker = current_worker();
  return worker != nullptr ? border_of(*worker).lock_home : nullptr;
}

}  // namespace

/// The word after a use at which somebody looks who uses it; not locked before.
std::uint32_t Mutex::look(std::uint32_t word) noexcept {
  const LockHome* const home = home_here();
  const std::uint32_t losses = word & kLosses;
  if (home == nullptr || losses == kLosses) {
    return kLocked | losses;
  }
  const std::uint32_t base = kLocked | losses | (home->number << kHomeShift);
  if ((word >> kHomeShift) != home->number) {
    return base;
  }
  const std::uint32_t same = (word & kSame) / kSameOne + 1;
  const bool is_enough = same >= (losses == 0 ? kSameBefore : kSameAfter);
  return is_enough ? base | kBiased : base | (same * kSameOne);
}

/// `word` is biased: afterwards the mutex is not, or has become biased anew.
void Mutex::take_bias(std::uint32_t word) noexcept {
  const std::uint32_t number = word >> kHomeShift;
  LockHome* const home = lock_home(number);
  check(home != nullptr, "there is memory for the lock of a mutex that came from another node");
  const bool is_here = home == home_here();
  if (is_here) {
    home->lock.lock();
  } else {
    Backoff backoff;
    while (!home->lock.try_lock_from_outside()) {
      backoff.pause();  // Somebody else takes a bias away there.
    }
  }
  const std::uint32_t present = word_.load(std::memory_order_relaxed);
  if ((present & kBiased) != 0 && (present >> kHomeShift) == number) {
    const std::uint32_t kept = present & (kLocked | kLosses);
    // Somebody of this worker who waits costs nothing: it comes back at the next look.
    word_.store(is_here ? kept | (present & kHome) | (kSame & ~kSameOne) : kept + kLossesOne,
                std::memory_order_release);  // A
  }
  if (is_here) {
    home->lock.unlock();
  } else {
    home->lock.unlock_from_outside();
  }
}

bool Mutex::try_lock_slow() noexcept {
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  while ((word & kLocked) == 0) {
    if ((word & kBiased) != 0) {
      if (change_biased(word, 0)) {
        return true;
      }
      take_bias(word);
      word = word_.load(std::memory_order_relaxed);
      continue;
    }
    const bool is_look = (word & kUsesFull) != 0 && (word & kWaiters) == 0;
    if (word_.compare_exchange_weak(word, is_look ? look(word) : word | kLocked,
                                    std::memory_order_acquire,
                                    std::memory_order_relaxed)) {  // A
      return true;
    }
  }
  return false;
}

bool Mutex::lock_slow(std::uint64_t deadline_ns) noexcept {
  WaitNode node;
  for (;;) {
    if (try_lock_slow()) {
      return true;
    }
    if (const std::uint32_t word = word_.load(std::memory_order_relaxed); (word & kBiased) != 0) {
      take_bias(word);
    }
    bool is_mine = false;
    bool is_biased = false;
    const Wake wake = wait_in(
        waiters_, lock_, node,
        [&]() noexcept {
          // Under lock_. Either the mutex is free and ours now, or kWaiters makes its unlock come
          // here. A bias cannot be taken away here.
          std::uint32_t word = word_.load(std::memory_order_relaxed);
          for (;;) {
            is_biased = (word & kBiased) != 0;
            is_mine = (word & (kLocked | kBiased)) == 0;
            if (is_biased) {
              return false;
            }
            const std::uint32_t wanted = is_mine ? word | kLocked : word | kWaiters;
            if (word_.compare_exchange_weak(word, wanted, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {  // A
              return !is_mine;
            }
          }
        },
        deadline_ns);
    if (is_mine || node.is_granted) {
      return true;
    }
    if (is_biased) {
      continue;
    }
    if (wake == Wake::timed_out) {
      return false;
    }
    node.is_impatient = true;
  }
}

void Mutex::unlock_slow() noexcept {
  std::uint32_t word = word_.load(std::memory_order_relaxed);
  // Nobody biases what is locked: at most once.
  if ((word & kBiased) != 0) {
    take_bias(word);
    word = word_.load(std::memory_order_relaxed);
  }
  while ((word & kWaiters) == 0) {
    if (word_.compare_exchange_weak(word, word & ~kLocked, std::memory_order_release,
                                    std::memory_order_relaxed)) {  // A
      return;
    }
  }
  WaitNode* first = nullptr;
  Waiter waiter;
  {
    const SpinGuard guard{lock_};
    first = waiters_.pop_front();
    const std::uint32_t left = waiters_.empty() ? 0 : kWaiters;
    if (first != nullptr) {
      waiter = first->waiter;
      first->is_granted = first->is_impatient;
    }
    // A plain store: with kWaiters set and the mutex ours, nobody but a holder of lock_ changes the
    // word. A: releases the critical section, to a new holder or to the one it is handed to.
    word = word_.load(std::memory_order_relaxed) & ~(kLocked | kWaiters);
    word_.store(word | left | (first != nullptr && first->is_granted ? kLocked : 0),
                std::memory_order_release);
  }
  if (waiter) {
    waiter.signal();
  }
}

}  // namespace sterna::threads
