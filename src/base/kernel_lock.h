// A lock that may be held across a system call.
#pragma once

#include <atomic>
#include <cstdint>

namespace sterna {

/// Waiters sleep in the kernel. Touches no thread-local storage. Never held across a switch.
class KernelLock {
 public:
  void lock() noexcept;
  [[nodiscard]] bool try_lock() noexcept;
  void unlock() noexcept;

 private:
  std::atomic<std::uint32_t> state_{0};  // 0 free, 1 held, 2 held and somebody sleeps.
};

class KernelGuard {
 public:
  explicit KernelGuard(KernelLock& lock) noexcept : lock_{lock} { lock_.lock(); }
  ~KernelGuard() { lock_.unlock(); }
  KernelGuard(const KernelGuard&) = delete;
  KernelGuard& operator=(const KernelGuard&) = delete;

 private:
  KernelLock& lock_;
};

}  // namespace sterna
