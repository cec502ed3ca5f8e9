// The private run queue of a worker: a first-in first-out list through Thread::next.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

/// Guard: the biased lock of its worker, all of it; count() is a hint for those without.
class RunQueue {
 public:
  void push_back(Thread& thread) noexcept {
    thread.next = nullptr;
    if (tail_ == nullptr) {
      head_ = &thread;
    } else {
      tail_->next = &thread;
    }
    tail_ = &thread;
    add(1);
  }
  /// Null when empty.
  Thread* pop_front() noexcept {
    Thread* const first = head_;
    if (first != nullptr) [[likely]] {
      head_ = first->next;
      if (head_ == nullptr) {
        tail_ = nullptr;
      }
      add(-1);
    }
    return first;
  }
  /// pop_front(), then push_back(thread): the count does not change. Null, and no push, when empty.
  Thread* rotate(Thread& thread) noexcept {
    Thread* const first = head_;
    if (first == nullptr) {
      return nullptr;
    }
    thread.next = nullptr;
    tail_->next = &thread;  // Perhaps first->next.
    tail_ = &thread;
    head_ = first->next;
    return first;
  }
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  // Relaxed: a hint orders nothing.
  [[nodiscard]] std::uint32_t count() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }

 private:
  // Only the holder of the lock writes: no read-modify-write is needed.
  void add(std::int32_t by) noexcept {
    count_.store(count_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(by),
                 std::memory_order_relaxed);
  }

  Thread* head_ = nullptr;
  Thread* tail_ = nullptr;
  std::atomic<std::uint32_t> count_{0};
};

/// Wakes from other kernel threads: a stack (Treiber) that is only ever taken as a whole, so that
/// no element can come back while somebody holds a pointer to it (no ABA).
/// Producers: any thread, lock-free. Consumers: whoever holds the biased lock of the worker.
class Inbox {
 public:
  /// Sequentially consistent: the pusher then looks whether the worker sleeps (Sleep::wake).
  void push(Thread& thread) noexcept {
    Thread* head = head_.load(std::memory_order_relaxed);
    do {
      thread.next = head;
    } while (!head_.compare_exchange_weak(head, &thread, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));  // A
  }
  [[nodiscard]] bool empty() const noexcept {
    return head_.load(std::memory_order_seq_cst) == nullptr;
  }
  [[nodiscard]] bool looks_empty() const noexcept {
    return head_.load(std::memory_order_relaxed) == nullptr;
  }
  /// Moves all to `queue`, oldest first.
  void drain_to(RunQueue& queue) noexcept {
    Thread* last = head_.exchange(nullptr, std::memory_order_acquire);  // A
    Thread* ordered = nullptr;
    while (last != nullptr) {
      Thread* const next = last->next;
      last->next = ordered;
      ordered = last;
      last = next;
    }
    while (ordered != nullptr) {
      Thread* const next = ordered->next;
      queue.push_back(*ordered);
      ordered = next;
    }
  }

 private:
  alignas(64) std::atomic<Thread*> head_{nullptr};
};

}  // namespace sterna::threads
