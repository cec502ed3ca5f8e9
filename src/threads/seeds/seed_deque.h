// The seeds that wait on a worker: a deque in the manner of Cilk's (Frigo, Leiserson, Randall: "The
// implementation of the Cilk-5 multithreaded language", 1998: THE). The owner pushes and takes at
// the bottom without any atomic read-modify-write; thieves, one at a time, take some of the oldest
// at the top. The owner and a thief meet at a lock only when they want the same seed.
//
// Memory order. A pusher releases (A) what it wrote into seed and slot; a thief acquires it with
// bottom_. What is left is Dekker's problem: the owner lowers bottom_ and then reads top_; a thief
// raises top_ and then reads bottom_. Forbidden: both take seed i, that is, the owner read
// top_ <= i and the thief read bottom_ > i. The owner's load may pass its store only inside its
// store buffer, and the thief passes a process barrier (biased_lock.h) between its two accesses.
// Did the owner's load come before that barrier, so did its store, and the thief sees
// bottom_ <= i; did it come after, it sees the raised top_. Without membarrier() both sides have
// sequentially consistent fences in the same places. Who finds that it has reached too far steps
// back: the thief lowers top_ again to what it got, the owner raises bottom_ and looks once more
// under the lock, where no thief is. Everything else of a thief, and the change of the ring,
// happens under the lock (B). tests: seed_model_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "threads/queues/biased_lock.h"

namespace sterna::threads {

struct Seed;

class SeedDeque {
 public:
  explicit SeedDeque(bool is_asymmetric) noexcept;
  ~SeedDeque();
  SeedDeque(const SeedDeque&) = delete;
  SeedDeque& operator=(const SeedDeque&) = delete;

  // The owner: the kernel thread of the worker.

  /// False: there is no memory for so many.
  [[nodiscard]] bool push(Seed& seed) noexcept {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
    if (bottom >= full_at_) [[unlikely]] {
      if (!make_room(bottom)) {
        return false;
      }
    }
    slots_[bottom & mask_].store(&seed, std::memory_order_relaxed);
    bottom_.store(bottom + 1, std::memory_order_release);  // A
    return true;
  }
  /// Takes `seed` if it is the newest. False: it is not, or a thief was faster.
  [[nodiscard]] bool pop(const Seed& seed) noexcept {
    const std::int64_t newest = bottom_.load(std::memory_order_relaxed) - 1;
    return slots_[newest & mask_].load(std::memory_order_relaxed) == &seed && take(newest);
  }
  /// Null: there is none.
  [[nodiscard]] Seed* pop_newest() noexcept;
  /// Takes `seed` though some are newer, which stay. False: it is not among the newest kReach, or
  /// a thief was faster.
  [[nodiscard]] bool take_back(const Seed& seed) noexcept;

  // Anybody.

  /// Takes some of the oldest, half of all at most, oldest first; returns how many. Costs some us
  /// when there are any.
  [[nodiscard]] std::size_t steal(std::span<Seed*> taken) noexcept;
  /// A hint.
  [[nodiscard]] std::int64_t count() const noexcept {
    return bottom_.load(std::memory_order_relaxed) - top_.load(std::memory_order_relaxed);
  }
  /// How many were taken at the top so far. A hint.
  [[nodiscard]] std::int64_t taken_count() const noexcept {
    return top_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::int64_t kFirstCapacity = 256;
  static constexpr std::int64_t kReach = 32;

  using Slot = std::atomic<Seed*>;

  [[nodiscard]] bool make_room(std::int64_t bottom) noexcept;

  /// The owner takes the seed at `newest`, the last one. False: a thief has it.
  [[nodiscard]] bool take(std::int64_t newest) noexcept {
    bottom_.store(newest, std::memory_order_release);
    if (is_asymmetric_) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    if (top_.load(std::memory_order_relaxed) <= newest) [[likely]] {
      return true;
    }
    return take_contended(newest);
  }
  [[nodiscard]] bool take_contended(std::int64_t newest) noexcept;

  void lock() noexcept;
  [[nodiscard]] bool try_lock() noexcept {
    return lock_.load(std::memory_order_relaxed) == 0 &&
           lock_.exchange(1, std::memory_order_acquire) == 0;  // B
  }
  void unlock() noexcept { lock_.store(0, std::memory_order_release); }  // B

  std::array<Slot, kFirstCapacity> first_slots_{};
  // Written by the owner; slots_ and mask_ under the lock.
  alignas(kCacheLineBytes) std::atomic<std::int64_t> bottom_{0};
  Slot* slots_ = first_slots_.data();
  std::int64_t mask_ = kFirstCapacity - 1;
  std::int64_t full_at_ = kFirstCapacity;  // The ring holds indexes below it. The owner's.
  const bool is_asymmetric_;
  // Written under the lock.
  alignas(kCacheLineBytes) std::atomic<std::int64_t> top_{0};
  std::atomic<std::uint32_t> lock_{0};
};

}  // namespace sterna::threads
