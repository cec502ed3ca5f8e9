// The seeds that wait on a worker: a deque in the manner of Cilk's (Frigo, Leiserson, Randall: "The
// implementation of the Cilk-5 multithreaded language", 1998: THE). The owner pushes and takes at
// the bottom without any atomic read-modify-write; thieves, one at a time, take some of the oldest
// at the top. The owner and a thief meet at a lock only when they want the same seed.
//
// A thief may look before it takes: it reaches for several, and those are its own for as long as it
// has the lock, so that their planters, which their joins keep waiting, are still there. What it
// does not want it leaves in order in the slots below the new top: a seed may change its slot,
// upwards, while a thief has it. So the owner looks again what it got once it has taken a slot.
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
// happens under the lock (B). Which seeds a thief has left where is released with top_ (C).
// tests: seed_model_test.cc.
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
    put(bottom, seed);
    return true;
  }
  /// The same without a call: false if there is no room yet.
  [[nodiscard, gnu::always_inline]] bool try_push(Seed& seed) noexcept {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);
    if (bottom >= full_at_) [[unlikely]] {
      return false;
    }
    put(bottom, seed);
    return true;
  }
  /// Takes `seed` if it is the newest. False: it is not, or a thief was faster.
  [[nodiscard]] bool pop(const Seed& seed) noexcept {
    const std::int64_t newest = bottom_.load(std::memory_order_relaxed) - 1;
    const Slot& last = slots_[newest & mask_];  // Nobody else changes the ring.
    if (last.load(std::memory_order_relaxed) != &seed || !take(newest)) [[unlikely]] {
      return false;
    }
    if (last.load(std::memory_order_relaxed) != &seed) [[unlikely]] {
      // A thief has taken it from below another one.
      give_back(newest);
      return false;
    }
    return true;
  }
  /// The same without a call: false also where a thief reaches for it, who may get less.
  [[nodiscard, gnu::always_inline]] bool try_pop(const Seed& seed) noexcept {
    const std::int64_t newest = bottom_.load(std::memory_order_relaxed) - 1;
    const Slot& last = slots_[newest & mask_];
    if (last.load(std::memory_order_relaxed) != &seed) [[unlikely]] {
      return false;
    }
    if (!reach(newest) || last.load(std::memory_order_relaxed) != &seed) [[unlikely]] {
      give_back(newest);
      return false;
    }
    return true;
  }
  /// Null: there is none.
  [[nodiscard]] Seed* pop_newest() noexcept;
  /// Takes `seed` though some are newer, which stay. False: it is not among the newest kReach, or
  /// a thief was faster.
  [[nodiscard]] bool take_back(const Seed& seed) noexcept;
  /// For who is about to sleep: what a thief only looks at is in no count(), and may come back.
  [[nodiscard]] bool is_empty() noexcept;

  // Anybody.

  static constexpr std::size_t kClaimMax = 64;

  /// Looks at the oldest, oldest first, half of all and `claimed` at most (kClaimMax: perhaps all),
  /// and takes those that is_wanted(seed), which may look at its planter and must not take locks
  /// that are not below this one's. Returns how many. Costs some us when there are any.
  template <typename IsWanted>
  [[nodiscard]] std::size_t steal(std::span<Seed*> taken, std::size_t claimed,
                                  IsWanted&& is_wanted) noexcept {
    const Claim claim = begin_claim(claimed);
    std::uint64_t taken_bits = 0;
    std::size_t count = 0;
    for (std::int64_t i = 0; i < claim.count && count < taken.size(); ++i) {
      Seed* const one = slot(claim.top + i);
      if (is_wanted(*one)) {
        taken[count++] = one;
        taken_bits |= std::uint64_t{1} << i;
      }
    }
    if (claim.count != 0) {
      end_claim(claim, taken_bits, count);
    }
    return count;
  }
  /// Takes that one, for its planter, wherever it is. False: it is not among the oldest
  /// kClaimMax here.
  [[nodiscard]] bool take_out(const Seed& seed) noexcept;
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

  /// What a thief has for itself; with none of them it has not got the lock.
  struct Claim {
    std::int64_t top = 0;
    std::int64_t count = 0;
  };
  [[nodiscard]] Claim begin_claim(std::size_t most) noexcept;
  /// With the lock, which it gives back if there is nothing.
  [[nodiscard]] Claim claim_oldest(std::int64_t wanted) noexcept;
  /// The others stay, in order.
  void end_claim(const Claim& claim, std::uint64_t taken_bits, std::size_t taken) noexcept;

  [[nodiscard]] Seed* slot(std::int64_t index) const noexcept {
    return slots_[index & mask_].load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool make_room(std::int64_t bottom) noexcept;

  void put(std::int64_t bottom, Seed& seed) noexcept {
    slots_[bottom & mask_].store(&seed, std::memory_order_relaxed);
    bottom_.store(bottom + 1, std::memory_order_release);  // A
  }
  /// The owner reaches for the seed at `newest`, the last one. False: so does a thief, and one of
  /// both has to step back.
  [[nodiscard]] bool reach(std::int64_t newest) noexcept {
    bottom_.store(newest, std::memory_order_release);
    if (is_asymmetric_) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    return top_.load(std::memory_order_acquire) <= newest;  // C
  }
  /// The owner takes the seed at `newest`, the last one. False: a thief has it.
  [[nodiscard]] bool take(std::int64_t newest) noexcept {
    return reach(newest) || take_contended(newest);
  }
  /// The owner took what is there, and does not want it.
  void give_back(std::int64_t newest) noexcept {
    bottom_.store(newest + 1, std::memory_order_release);  // A
  }
  [[nodiscard]] bool take_contended(std::int64_t newest) noexcept;

  void lock() noexcept;
  [[nodiscard]] bool try_lock() noexcept {
    return lock_.load(std::memory_order_relaxed) == 0 &&
           lock_.exchange(1, std::memory_order_acquire) == 0;  // B
  }
  void unlock() noexcept { lock_.store(0, std::memory_order_release); }  // B

  std::array<Slot, kFirstCapacity> first_slots_{};
  // Written by the owner; slots_ and mask_ under the lock. Slots: by the owner below the bottom, by
  // a thief within its claim.
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
