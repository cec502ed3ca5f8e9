// Mutual exclusion between user threads and kernel threads alike.
//
// A mutex that the threads of one worker use, and nobody else, becomes *biased* to that worker: its
// home (lock_home.h) is in the word, and those threads change the word by plain loads and stores in
// a section of the home's lock, which costs some stores instead of two locked instructions. Anybody
// else takes the bias away first: holding that lock from outside (a process-wide barrier, some us),
// it makes the word an ordinary one. The rules:
//  - a biased word is changed under the lock of its home only, a word that is not biased by
//    compare-and-swap only, which fails on a biased one;
//  - a word becomes biased by the compare-and-swap that locks it, on the worker it names;
//  - what is biased has no waiters: who must wait takes the bias away.
// Which worker uses it is looked at once in some hundred times, and several times the same in a row
// make the bias; a bias that was taken away takes longer to come back, and at last never does.
// tests: mutex_model_test.cc, mutex_bias_test.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotate.h"
#include "threads/sync/lock_home.h"
#include "threads/sync/wait_list.h"

namespace sterna::threads {

/// Uncontended: one compare-and-swap each way, or none (above). A waiter that lost the race for a
/// free mutex twice gets it handed over. Not recursive. The holder may differ in worker between
/// lock and unlock.
class STERNA_LOCK_TYPE Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// Switches.
  void lock() noexcept STERNA_ACQUIRES() STERNA_LOCKS_UNCHECKED {
    if (!try_lock_plain()) [[unlikely]] {
      (void)lock_slow(kNever);
    }
  }
  [[nodiscard]] bool try_lock() noexcept { return try_lock_plain() || try_lock_slow(); }
  /// False: the deadline came first. Switches.
  [[nodiscard]] bool try_lock_until(std::uint64_t deadline_ns) noexcept {
    return try_lock_plain() || lock_slow(deadline_ns);
  }
  /// For who drops the mutex: locks it if nobody holds it or waits for it; then nobody touches it
  /// any more for an unlock of before.
  [[nodiscard]] bool try_lock_unused() noexcept STERNA_LOCKS_UNCHECKED {
    if (!try_lock()) {
      return false;
    }
    bool is_unused = false;
    {
      const SpinGuard guard{lock_};  // To give this back is the last access of an unlock.
      is_unused = waiters_.empty();
    }
    if (!is_unused) {
      unlock();
    }
    return is_unused;
  }
  void unlock() noexcept STERNA_RELEASES() STERNA_LOCKS_UNCHECKED {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & kBiased) != 0) {
      if (change_biased(word, kLocked)) [[likely]] {
        return;
      }
    } else if ((word & kWaiters) == 0 &&
               word_.compare_exchange_strong(word, word & ~kLocked, std::memory_order_release,
                                             std::memory_order_relaxed)) [[likely]] {  // A
      return;
    }
    unlock_slow();
  }

  /// try_lock() of `me`, which calls: for who knows that from its own frame, and inline as far as
  /// the bias goes.
  [[nodiscard, gnu::always_inline]] bool try_lock_as(Thread& me) noexcept {
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    const bool is_done =
        (word & kBiased) != 0 ? change_biased_at(home_of(me), word, 0) : try_lock_unbiased(word);
    return is_done || try_lock_slow();
  }
  /// unlock() in the same way.
  [[gnu::always_inline]] void unlock_as(Thread& me) noexcept
      STERNA_RELEASES() STERNA_LOCKS_UNCHECKED {
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    if ((word & kBiased) == 0) {
      unlock();
    } else if (!change_biased_at(home_of(me), word, kLocked)) [[unlikely]] {
      unlock_slow();
    }
  }

  /// unlock() by `me`, which calls, where that is a store and wakes nobody: in a section of the
  /// biased lock of its worker. False: nothing has happened.
  [[nodiscard, gnu::always_inline]] bool try_unlock_biased(Thread& me) noexcept
      STERNA_LOCKS_UNCHECKED {
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    return (word & kBiased) != 0 && change_biased_at(home_of(me), word, kLocked);
  }

  /// For tests: a hint.
  [[nodiscard]] bool is_biased() const noexcept {
    return (word_.load(std::memory_order_relaxed) & kBiased) != 0;
  }

 private:
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kWaiters = 2;  // The list is not empty: unlock takes the slow way.
  static constexpr std::uint32_t kBiased = 4;
  // How often a bias was taken away; the last: it is not given any more.
  static constexpr std::uint32_t kLosses = 3 * 8;
  static constexpr std::uint32_t kLossesOne = 8;
  // Looks that found the same worker as the one before.
  static constexpr std::uint32_t kSame = 7 * 32;
  static constexpr std::uint32_t kSameOne = 32;
  static constexpr std::uint32_t kUsesOne = 256;      // Uses since the last look...
  static constexpr std::uint32_t kUsesFull = 0x8000;  // ...which is due.
  static constexpr std::uint32_t kHomeShift = 16;     // The home, or who used it at the last look:
  static constexpr std::uint32_t kHome = ~0U << kHomeShift;  // 0: nobody.

  // Of these, false: nothing has happened.
  bool try_lock_plain() noexcept {
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    return (word & kBiased) != 0 ? change_biased(word, 0) : try_lock_unbiased(word);
  }
  bool try_lock_unbiased(std::uint32_t word) noexcept {
    // A: acquires what the last unlock released.
    return (word & (kLocked | kWaiters | kUsesFull)) == 0 &&
           word_.compare_exchange_strong(word, word + kLocked + kUsesOne, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  /// The word, which is biased, from locked (`from` kLocked) to free, or the other way. False: it
  /// is at home elsewhere, or is not `from`; nothing has happened.
  bool change_biased(std::uint32_t word, std::uint32_t from) noexcept {
    Thread* const me = self();
    return change_biased_at(me != nullptr ? home_of(*me) : nullptr, word, from);
  }
  /// The same for who has `home`; null: nowhere.
  [[gnu::always_inline]] bool change_biased_at(LockHome* home, std::uint32_t word,
                                               std::uint32_t from) noexcept {
    if (home == nullptr || (word >> kHomeShift) != home->number) [[unlikely]] {
      return false;
    }
    home->lock.lock();
    // Again, inside. A: threads of one worker that follow one another here; who took the bias away,
    // or gave it, is seen by way of the lock and of the compare-and-swap.
    const bool is_fit = word_.load(std::memory_order_acquire) == ((word & ~kLocked) | from);
    if (is_fit) [[likely]] {
      word_.store((word & ~kLocked) | (from ^ kLocked), std::memory_order_release);  // A
    }
    home->lock.unlock();
    return is_fit;
  }

  bool try_lock_slow() noexcept;
  bool lock_slow(std::uint64_t deadline_ns) noexcept;
  void unlock_slow() noexcept;
  void take_bias(std::uint32_t word) noexcept;
  static std::uint32_t look(std::uint32_t word) noexcept;

  std::atomic<std::uint32_t> word_{0};
  SpinLock lock_;
  WaitList waiters_;  // Guard: lock_.
};

class STERNA_SCOPED_LOCK MutexGuard {
 public:
  explicit MutexGuard(Mutex& mutex) noexcept STERNA_ACQUIRES(mutex) : mutex_{mutex} {
    mutex_.lock();
  }
  ~MutexGuard() STERNA_RELEASES() { mutex_.unlock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace sterna::threads
