// A lock that may be held across a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/annotate.h"

namespace sterna {

/// Waiters sleep in the kernel. Touches no thread-local storage. Never held across a switch.
class STERNA_LOCK_TYPE KernelLock {
 public:
  void lock() noexcept STERNA_ACQUIRES();
  /// Who calls it is not checked by clang (STERNA_LOCKS_UNCHECKED).
  [[nodiscard]] bool try_lock() noexcept;
  void unlock() noexcept STERNA_RELEASES();

 private:
  std::atomic<std::uint32_t> state_{0};  // 0 free, 1 held, 2 held and somebody sleeps.
};

class STERNA_SCOPED_LOCK KernelGuard {
 public:
  explicit KernelGuard(KernelLock& lock) noexcept STERNA_ACQUIRES(lock) : lock_{lock} {
    lock_.lock();
  }
  ~KernelGuard() STERNA_RELEASES() { lock_.unlock(); }
  KernelGuard(const KernelGuard&) = delete;
  KernelGuard& operator=(const KernelGuard&) = delete;

 private:
  KernelLock& lock_;
};

}  // namespace sterna
