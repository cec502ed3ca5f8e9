// Who waits: a user thread (parked) or a kernel thread (asleep in the kernel), in one tagged word.
// All waiting of the runtime (sync/, join, progress::Completion) is built on the pair
// await_signal() and Waiter::signal().
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "threads/idle_hook.h"
#include "threads/thread.h"

namespace sterna::threads {

/// How a wait ended.
enum class Wake : std::uint8_t {
  signalled,    // signal() was called for this wait: exactly one signal was taken.
  interrupted,  // unpark() gave the token, and the wait asked for it; the signal may still come.
  timed_out,    // The deadline came first; the signal may still come.
  cancelled,    // cancel() was called, and the wait is a cancellation point; the signal may come.
};

struct WaitOptions {
  std::uint64_t deadline_ns = kNever;
  bool is_interruptible = false;  // Also returns for the token of unpark(), and takes it.
  bool is_cancellable = false;    // Also returns for cancel(), if the thread is cancellable now.
};

/// A kernel thread that waits; lies on its stack.
struct alignas(8) KernelWaiter {
  static constexpr std::uint32_t kOnFutex = 1;  // It sleeps on `word`.
  static constexpr std::uint32_t kInHook = 2;   // It sleeps in `hook`.
  static constexpr std::uint32_t kStates = 3;
  static constexpr std::uint32_t kSignal = 4;  // One signal that was not taken yet.

  // One of the states, or 0: awake; plus the signals. States are the waiter's, signals are added by
  // others.
  std::atomic<std::uint32_t> word{0};
  IdleHook* hook = nullptr;  // Constant while others know the waiter.
};

/// Takes a signal if there is one, and is awake.
[[nodiscard]] bool try_take_signal(KernelWaiter& waiter) noexcept;
/// Awake -> `state`. False: there is a signal, stay awake.
[[nodiscard]] bool try_enter_sleep(KernelWaiter& waiter, std::uint32_t state) noexcept;
/// Any state -> awake.
void leave_sleep(KernelWaiter& waiter) noexcept;

/// See Waiter::signal().
void signal_kernel(KernelWaiter& waiter) noexcept;

/// What is called in place of a waiter that would be woken: the same word may hold either. In
/// memory of the caller that stays where it is, or moves with its rank: `ended` is at one address
/// in all nodes between which ranks move.
struct alignas(16) Listener {
  /// Called once for each time it was published, by whoever signals: on any thread, perhaps under
  /// the lock of a rank. It may make threads runnable and take locks that are taken inside that
  /// one; nothing else. Nobody touches `self` after it.
  void (*ended)(Listener& self) noexcept = nullptr;
};

class Waiter {
 public:
  constexpr Waiter() noexcept = default;
  explicit Waiter(Thread& thread) noexcept : bits_{reinterpret_cast<std::uintptr_t>(&thread)} {}
  explicit Waiter(KernelWaiter& waiter) noexcept
      : bits_{reinterpret_cast<std::uintptr_t>(&waiter) | kKernelTag} {}
  explicit Waiter(Listener& listener) noexcept
      : bits_{reinterpret_cast<std::uintptr_t>(&listener) | kListenerTag} {}
  /// `thread` publishes this inside suspend() (scheduler.h): signal() makes it runnable, no more.
  static Waiter suspended(Thread& thread) noexcept {
    return from_bits(reinterpret_cast<std::uintptr_t>(&thread) | kSuspendedTag);
  }
  static Waiter from_bits(std::uintptr_t bits) noexcept {
    Waiter waiter;
    waiter.bits_ = bits;
    return waiter;
  }

  [[nodiscard]] std::uintptr_t bits() const noexcept { return bits_; }
  [[nodiscard]] explicit operator bool() const noexcept { return bits_ != 0; }
  /// Null: a kernel thread. Not of a listener.
  [[nodiscard]] Thread* thread() const noexcept {
    return (bits_ & kKernelTag) == 0 ? reinterpret_cast<Thread*>(bits_ & ~kSuspendedTag) : nullptr;
  }

  /// The thread of suspended(); null for others.
  [[nodiscard]] Thread* suspended_thread() const noexcept {
    return (bits_ & kSuspendedTag) != 0 ? reinterpret_cast<Thread*>(bits_ & ~kSuspendedTag)
                                        : nullptr;
  }

  /// Ends one await_signal(), under way or to come. Exactly one call for each wait; it is the last
  /// access of the caller to the waiter, which may be gone when this returns. From anywhere.
  void signal() const noexcept;

  // Bit 0 stays free for the words that hold waiters.
  static constexpr std::uintptr_t kKernelTag = 2;
  static constexpr std::uintptr_t kSuspendedTag = 4;
  // Where kKernelTag is not: threads are aligned to more, kernel waiters are not.
  static constexpr std::uintptr_t kListenerTag = 8;

 private:
  std::uintptr_t bits_ = 0;
};

/// Waits for one signal of a user thread (the current one). When it ends without (interrupted,
/// timed_out), the caller withdraws its Waiter from where it is published, or, if somebody has
/// taken it, calls this once more without options. Switches.
Wake await_signal(const WaitOptions& options = {}) noexcept;

/// The same for a kernel thread that sleeps on its own futex. `now_ns` is the monotonic clock.
Wake await_signal(KernelWaiter& waiter, const WaitOptions& options = {}) noexcept;

}  // namespace sterna::threads
