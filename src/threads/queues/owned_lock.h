// A spin lock that one worker may own: its owner enters by a section of its own biased lock, which
// it often needs anyway, without an atomic exchange (direct.h). Everybody else locks as usual, and
// takes the ownership away first.
//
// Sections of the owner W hold the biased lock of W and have found owner_ == W there. lock() by
// anybody takes spin_, then: owner_ null: inside. owner_ is the worker that the caller runs on:
// inside, since sections of W and the caller are one kernel thread, which switches in neither.
// Else it clears owner_ while it holds the biased lock of W from outside: no section of W is under
// way then, and later ones find owner_ changed. Only a holder of spin_ on W sets owner_ to W. So a
// section and a holder of spin_ of another kernel thread exclude each other, and what one wrote is
// seen by the other: by way of spin_ (to become the owner) or of the biased lock (to lose it).
// tests: owned_lock_model_test.cc, meeting_test.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotate.h"
#include "base/spin_lock.h"

namespace sterna::threads {

class Worker;

class STERNA_LOCK_TYPE OwnedLock {
 public:
  void lock() noexcept STERNA_ACQUIRES() STERNA_LOCKS_UNCHECKED {
    spin_.lock();
    if (owner_.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
      take_from_owner();
    }
  }
  void unlock() noexcept STERNA_RELEASES() STERNA_LOCKS_UNCHECKED { spin_.unlock(); }

  /// lock(), after serve_one_caller(true): in few steps, as such a lock has no owner.
  void lock_alone() noexcept STERNA_ACQUIRES() STERNA_LOCKS_UNCHECKED { spin_.lock_alone(); }
  /// See SpinLock. Such a lock has no owner.
  void serve_one_caller(bool is_one) noexcept { spin_.serve_one_caller(is_one); }
  [[nodiscard]] bool is_locked() const noexcept { return spin_.is_locked(); }

  /// Inside a section of `worker`, by it: whether it may touch what the lock guards.
  [[nodiscard]] bool is_owned_by(const Worker& worker) const noexcept {
    return owner_.load(std::memory_order_relaxed) == &worker;
  }
  /// The owner says, inside a section, that it was worth while.
  void count_use() noexcept {
    // Relaxed, plain load and store: of the owner's sections, or who counts attempts is a hint.
    const std::uint16_t count = count_.load(std::memory_order_relaxed);
    if (count < kAttemptsMax) [[unlikely]] {  // More makes no difference.
      count_.store(static_cast<std::uint16_t>(count + 1), std::memory_order_relaxed);
    }
  }
  /// `worker`, which runs the caller, would like to own it. True: it should claim() it. Counts, so
  /// that a lock which others need as well does not change hands all the time.
  [[nodiscard]] bool should_claim() noexcept {
    count_use();
    return count_.load(std::memory_order_relaxed) >= attempts_.load(std::memory_order_relaxed);
  }
  /// The caller runs on `worker` and holds the lock, which it gives back in the usual way.
  void claim(Worker& worker) noexcept {
    count_.store(0, std::memory_order_relaxed);
    owner_.store(&worker, std::memory_order_relaxed);
  }
  /// Nobody owns it from here on. The caller holds it.
  void disown() noexcept {
    count_.store(0, std::memory_order_relaxed);
    owner_.store(nullptr, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint16_t kAttemptsMin = 64;
  static constexpr std::uint16_t kAttemptsMax = 8192;
  static constexpr std::uint16_t kUsesWorthWhile = 2048;
  static_assert(kUsesWorthWhile <= kAttemptsMax);

  void take_from_owner() noexcept;

  // Relaxed, all three: see above.
  std::atomic<Worker*> owner_{nullptr};
  SpinLock spin_;
  std::atomic<std::uint16_t> count_{0};  // Attempts to own it; uses, since it is owned.
  std::atomic<std::uint16_t> attempts_{kAttemptsMin};  // So many, then the next one claims.
};
static_assert(sizeof(OwnedLock) == 16);

/// See OwnedLock::lock_alone().
class STERNA_SCOPED_LOCK AloneGuard {
 public:
  explicit AloneGuard(OwnedLock& lock) noexcept STERNA_ACQUIRES(lock) : lock_{lock} {
    lock_.lock_alone();
  }
  ~AloneGuard() STERNA_RELEASES() { lock_.unlock(); }
  AloneGuard(const AloneGuard&) = delete;
  AloneGuard& operator=(const AloneGuard&) = delete;

 private:
  OwnedLock& lock_;
};

class STERNA_SCOPED_LOCK OwnedGuard {
 public:
  explicit OwnedGuard(OwnedLock& lock) noexcept STERNA_ACQUIRES(lock) : lock_{lock} {
    lock_.lock();
  }
  ~OwnedGuard() STERNA_RELEASES() { lock_.unlock(); }
  OwnedGuard(const OwnedGuard&) = delete;
  OwnedGuard& operator=(const OwnedGuard&) = delete;

 private:
  OwnedLock& lock_;
};

}  // namespace sterna::threads
