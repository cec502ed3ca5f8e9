// A lock that is almost free for one owner and dear for the rare others: that of a run queue.
//
// Owner:  owner_ = 1; (compiler barrier) read thief_;  0: inside.
// Thief:  thief_ = 1; membarrier(); wait until owner_ == 0;  inside.
// Forbidden: both inside, that is, the owner read thief_ == 0 and the thief read owner_ == 0. The
// owner's load may pass its store only inside its store buffer; membarrier() runs a full barrier
// on every running thread of the process, after thief_ = 1 and before the thief's read. If the
// owner's load came before that barrier, so did its store, and the thief sees owner_ == 1; if
// after, the load sees thief_ == 1. A thread that does not run has passed a full barrier in the
// kernel. (Dice, Huang, Yang: "Asymmetric Dekker Synchronization", 2001.) tests:
// biased_lock_model_test.cc, biased_lock_test.cc. Without membarrier both sides use sequentially
// consistent operations: plain Dekker. The word of the thieves is never 0 then, so that the owner,
// who has to look at it anyway, learns of it there.
//
// An owner that meets a thief retreats, and says that it waits: no other thief begins then, so that
// however many there are, it is the next.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cpu.h"

namespace sterna::threads {

/// Asks the kernel for membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED). False: not to be had.
[[nodiscard]] bool register_process_barrier() noexcept;
/// A full memory barrier on all running threads of this process; after a successful register.
void process_barrier() noexcept;

class BiasedLock {
 public:
  /// Constant for the life of the lock: register_process_barrier() succeeded.
  explicit BiasedLock(bool is_asymmetric) noexcept
      : is_asymmetric_{is_asymmetric}, thief_{nobody()} {}

  /// The owner only: one kernel thread. Not recursive. May be given back on another stack of it.
  [[gnu::always_inline]] void lock() noexcept {
    owner_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (thief_.load(std::memory_order_acquire) != 0) [[unlikely]] {  // B
      lock_slow();
    }
  }
  /// The same, but it does not wait for a thief, and calls nothing. False: it is not held; without
  /// membarrier never.
  [[nodiscard, gnu::always_inline]] bool lock_at_once() noexcept {
    owner_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (thief_.load(std::memory_order_acquire) != 0) [[unlikely]] {  // B
      unlock();  // As who meets a thief in lock() retreats.
      return false;
    }
    return true;
  }
  void unlock() noexcept { owner_.store(0, std::memory_order_release); }  // A
  /// Somebody is inside, or waits for the owner to leave. A hint, for an owner that stays long.
  [[nodiscard]] bool is_wanted() const noexcept {
    return thief_.load(std::memory_order_relaxed) == kThief;
  }

  /// Anybody else. False: another thief is there, or the owner waits for one. Waits for the owner
  /// to leave its section, but for so many pauses only (then false); from the 1000th on a pause
  /// gives the processor away.
  [[nodiscard]] bool try_lock_from_outside(std::uint32_t pauses_max = ~0U) noexcept;
  void unlock_from_outside() noexcept { thief_.store(nobody(), std::memory_order_release); }  // B

 private:
  // Values of thief_.
  static constexpr std::uint32_t kNobody = 0;
  static constexpr std::uint32_t kThief = 1;
  static constexpr std::uint32_t kNobodyWithoutBarrier = 2;

  [[nodiscard]] std::uint32_t nobody() const noexcept {
    return is_asymmetric_ ? kNobody : kNobodyWithoutBarrier;
  }
  void lock_slow() noexcept;

  std::atomic<std::uint32_t> owner_{0};  // Written by the owner.
  const bool is_asymmetric_;
  // Written by thieves; the owner's core keeps a shared copy of the line.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> thief_;
  // The owner has met a thief, and is not inside yet. Written by it; relaxed: thieves that miss it
  // are a few more, no more.
  std::atomic<std::uint32_t> owner_waits_{0};
};

}  // namespace sterna::threads
