// A queue from many producers to one consumer, whose link lives in its elements. Lock-free:
// Vyukov's intrusive node-based queue (1024cores.net, "Intrusive MPSC node-based queue").
#pragma once

#include <atomic>

#include "base/check.h"
#include "base/cpu.h"

namespace sterna {

/// Base of an element. An element is in one queue at a time, and does not move while in it.
class MpscNode {
 public:
  MpscNode() noexcept = default;
  MpscNode(const MpscNode&) = delete;
  MpscNode& operator=(const MpscNode&) = delete;

 private:
  template <typename T>
  friend class MpscQueue;

  // Written by the producer that pushes the *next* element, read by the consumer.
  std::atomic<MpscNode*> next_{nullptr};
};

/// Producers: any number; push is wait-free. Consumer: one at a time (who holds that right is
/// stated by the owner of the queue). Order: first in, first out for each producer. Between the two
/// steps of a push, that element and those behind it are invisible: pop() then finds nothing,
/// though looks_empty() says false.
template <typename T>
class MpscQueue {
 public:
  MpscQueue() noexcept = default;
  MpscQueue(const MpscQueue&) = delete;
  MpscQueue& operator=(const MpscQueue&) = delete;

  /// Any thread, also a signal handler. True: the queue seemed empty, the consumer may sleep.
  bool push(T& element) noexcept { return push_node(static_cast<MpscNode&>(element)); }

  /// Consumer only. Null: nothing is visible now.
  [[nodiscard]] T* pop() noexcept {
    MpscNode* first = first_.load(std::memory_order_relaxed);
    MpscNode* next = first->next_.load(std::memory_order_acquire);  // A: link of push
    if (first == &stub_) {
      if (next == nullptr) {
        return nullptr;
      }
      first = next;
      first_.store(first, std::memory_order_relaxed);
      next = next->next_.load(std::memory_order_acquire);  // A
    }
    if (next != nullptr) {
      first_.store(next, std::memory_order_relaxed);
      return static_cast<T*>(first);
    }
    // `first` is the last visible one. It can leave only when something follows it: the stub does,
    // unless a producer is between its two steps.
    if (first != last_.load(std::memory_order_acquire)) {
      return nullptr;
    }
    push_node(stub_);
    next = first->next_.load(std::memory_order_acquire);  // A
    if (next == nullptr) {
      return nullptr;
    }
    first_.store(next, std::memory_order_relaxed);
    return static_cast<T*>(first);
  }

  /// Any thread; a hint. False also while a push is under way, and while pop() has put the stub
  /// behind an element that such a push keeps invisible: then the stub is last, but not first.
  [[nodiscard]] bool looks_empty() const noexcept {
    // Sequentially consistent, against a producer that pushes and then looks: push_node().
    return last_.load(std::memory_order_seq_cst) == &stub_ &&
           first_.load(std::memory_order_relaxed) == &stub_;
  }

 private:
  bool push_node(MpscNode& node) noexcept {
    // Relaxed: the exchange publishes it.
    node.next_.store(nullptr, std::memory_order_relaxed);
    // Acquire and release: the chain of exchanges carries each producer's stores to the next one,
    // so that `previous->next_` below is written to an initialised node. Sequentially consistent,
    // so that a producer that then looks whether the consumer sleeps, and a consumer that says
    // "asleep" and then looks here, cannot both miss each other.
    MpscNode* previous = last_.exchange(&node, std::memory_order_seq_cst);
    previous->next_.store(&node, std::memory_order_release);  // A
    return previous == &stub_;
  }

  alignas(kCacheLineBytes) std::atomic<MpscNode*> last_{&stub_};  // Producers' end.
  // Written by the consumer only.
  alignas(kCacheLineBytes) std::atomic<MpscNode*> first_{&stub_};
  MpscNode stub_;
};

}  // namespace sterna
