// A bounded queue from one producer to one consumer, in memory it owns. Lock-free (Lamport's ring
// with each side's copy of the other's index, as in FastForward and its followers). tests:
// threads/queues/ring_model_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>

#include "base/check.h"
#include "base/cpu.h"

namespace sterna {

/// One producer and one consumer, which may be different threads.
template <typename T>
  requires std::is_trivially_copyable_v<T>
class Ring {
 public:
  /// `capacity` is a power of two.
  explicit Ring(std::size_t capacity)
      : mask_{capacity - 1}, slots_{std::make_unique<T[]>(capacity)} {
    check(capacity > 0 && (capacity & (capacity - 1)) == 0, "a ring's capacity is a power of two");
  }

  /// Producer only. False: full, nothing happened.
  [[nodiscard]] bool try_push(const T& value) noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);  // Own index.
    if (tail - seen_head_ > mask_) {
      seen_head_ = head_.load(std::memory_order_acquire);  // B: the slot was read
      if (tail - seen_head_ > mask_) {
        return false;
      }
    }
    slots_[tail & mask_] = value;
    tail_.store(tail + 1, std::memory_order_release);  // A
    return true;
  }

  /// Consumer only. Empty: nothing waits.
  [[nodiscard]] std::optional<T> try_pop() noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);  // Own index.
    if (head == seen_tail_) {
      seen_tail_ = tail_.load(std::memory_order_acquire);  // A: the slot was written
      if (head == seen_tail_) {
        return std::nullopt;
      }
    }
    const T value = slots_[head & mask_];
    head_.store(head + 1, std::memory_order_release);  // B
    return value;
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  const std::uint64_t mask_;
  const std::unique_ptr<T[]> slots_;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> tail_{0};  // Written by the producer only.
  std::uint64_t seen_head_ = 0;                                  // The producer's copy.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> head_{0};  // Written by the consumer only.
  std::uint64_t seen_tail_ = 0;                                  // The consumer's copy.
};

}  // namespace sterna
