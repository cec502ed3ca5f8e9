// The private run queue of a worker: first in, first out within a priority, by Thread::next.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/cpu.h"
#include "base/prefetch.h"
#include "threads/thread.h"

namespace sterna::threads {

/// Guard: the biased lock of its worker, all of it; count() is a hint for those without.
///
/// Threads of normal priority lie in one list. Those of others have lists of their own, which cost
/// the normal ones one test. A thread whose Hold is wanted is let go when it is taken out: it is
/// passed over, and is then in no queue. So is one that is recalled: it goes to Dispatch.
class RunQueue {
 public:
  void push_back(Thread& thread) noexcept {
    // Relaxed: set_priority() of others counts from the next time on.
    const std::uint8_t priority = thread.priority.load(std::memory_order_relaxed);
    if (priority != kPriorityNormal) [[unlikely]] {
      push_level(thread, priority);
      return;
    }
    push_usual(thread);
  }
  /// push_back() of one of normal priority.
  void push_usual(Thread& thread) noexcept {
    normal_.append(thread);
    add(1);
  }
  /// It is the next of its priority.
  void push_front(Thread& thread) noexcept;
  /// Null when empty.
  Thread* pop_front() noexcept {
    if (levels_ != 0) [[unlikely]] {
      return pop_slow();
    }
    Thread* const first = normal_.head;
    if (first != nullptr) [[likely]] {
      if (first->hold.load(std::memory_order_relaxed) != Hold::none) [[unlikely]] {
        return pop_slow();
      }
      normal_.drop_first();
      add(-1);
    }
    return first;
  }
  /// pop_front() without detours. Null: empty, or there are priorities, or the first is held or has
  /// any of the ThreadFlags `unfit`; nothing has happened then.
  Thread* pop_plain(std::uint32_t unfit) noexcept {
    Thread* const first = normal_.head;
    if (first == nullptr || levels_ != 0 || (first->flags & unfit) != 0 ||
        first->hold.load(std::memory_order_relaxed) != Hold::none) {
      return nullptr;
    }
    normal_.drop_first();
    add(-1);
    return first;
  }
  /// push_back(thread), then pop_front(): whom `thread`, which runs, gives way to. Itself: nothing
  /// of its priority or a higher one waits, it stays. Null: it is held, and nothing else waits.
  Thread* rotate(Thread& thread) noexcept {
    Thread* const first = normal_.head;
    if (levels_ != 0 || thread.priority.load(std::memory_order_relaxed) != kPriorityNormal)
        [[unlikely]] {
      return rotate_slow(thread);
    }
    const Thread& looked_at = first != nullptr ? *first : thread;
    if (looked_at.hold.load(std::memory_order_relaxed) != Hold::none) [[unlikely]] {
      return rotate_slow(thread);
    }
    if (first == nullptr) {
      return &thread;
    }
    thread.next = nullptr;
    normal_.tail->next = &thread;  // Perhaps first->next.
    normal_.tail = &thread;
    normal_.head = first->next;
    return first;
  }
  /// rotate() without detours. Null: nothing else waits, or as pop_plain(), or `thread` has a
  /// priority; nothing has happened then.
  [[gnu::always_inline]] Thread* rotate_plain(Thread& thread, std::uint32_t unfit) noexcept {
    Thread* const first = normal_.head;
    if (first == nullptr || levels_ != 0 || (first->flags & unfit) != 0 ||
        first->hold.load(std::memory_order_relaxed) != Hold::none ||
        thread.priority.load(std::memory_order_relaxed) != kPriorityNormal) [[unlikely]] {
      return nullptr;
    }
    thread.next = nullptr;
    normal_.tail->next = &thread;  // Perhaps first->next.
    normal_.tail = &thread;
    Thread* const second = first->next;
    normal_.head = second;
    // Where many take turns, none is in the first cache when its turn comes, and its page in no
    // first table: so the descriptor of who runs after the next two is on its way by now. Not its
    // stack, which is in the same page: see the traps of docs/layers/threads.md.
    if (const Thread* const third = second->next; third != nullptr) {  // To fetch 0 costs 30 ns.
      fetch_for_reading(third);
    }
    return first;
  }
  /// Puts a chain of `count` threads of normal priority, linked by Thread::next, at the end.
  void append_chain(Thread& first, Thread& last, std::uint32_t count) noexcept {
    last.next = nullptr;
    (normal_.head == nullptr ? normal_.head : normal_.tail->next) = &first;
    normal_.tail = &last;
    add(static_cast<std::int32_t>(count));
  }
  /// Takes out one certain thread. False: it is not here. Linear.
  bool remove(Thread& thread) noexcept;
  /// Linear.
  [[nodiscard]] bool contains(const Thread& thread) const noexcept;

  /// pop_front() would give `thread`, without a detour. What is no thread is not looked at.
  [[nodiscard]] bool is_next(const Thread* thread) const noexcept {
    return thread != nullptr && normal_.head == thread && levels_ == 0 &&
           thread->hold.load(std::memory_order_relaxed) == Hold::none;
  }
  /// `thread`, if it were added now, is_next().
  [[nodiscard]] bool would_be_next(const Thread& thread) const noexcept {
    return normal_.head == nullptr && levels_ == 0 &&
           thread.hold.load(std::memory_order_relaxed) == Hold::none;
  }
  /// Takes out `thread`, which is_next().
  void drop_next(Thread& thread) noexcept {
    normal_.head = thread.next;
    add(-1);
  }
  /// From now on only `passing` (null: nobody) is taken from here, and who runs gives way to
  /// nothing: hold_all(). remove() still takes out whom it is asked for.
  void close(Thread* passing) noexcept;
  void open() noexcept;
  [[nodiscard]] bool is_closed_to(const Thread& thread) const noexcept {
    return (levels_ & kClosed) != 0 && passing_ != &thread;
  }

  /// Nothing waits that could be taken.
  [[nodiscard]] bool empty() const noexcept {
    return (levels_ & kClosed) != 0 ? passing_ == nullptr || !contains(*passing_)
                                    : normal_.head == nullptr && levels_ == 0;
  }
  /// The highest priority of what waits; -1: nothing does. Closed: above all.
  [[nodiscard]] int highest() const noexcept;
  /// Something waits that is not of normal priority, or the queue is closed.
  [[nodiscard]] bool has_levels() const noexcept { return levels_ != 0; }
  // Relaxed: a hint orders nothing, as the next one.
  [[nodiscard]] std::uint32_t count() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }
  /// has_levels() for those without the lock.
  [[nodiscard]] bool seems_to_have_levels() const noexcept {
    return std::atomic_ref{const_cast<std::uint32_t&>(levels_)}.load(std::memory_order_relaxed) !=
           0;
  }

 private:
  struct List {
    Thread* head = nullptr;
    Thread* tail = nullptr;  // Says something only while there is a head.

    void append(Thread& thread) noexcept {
      thread.next = nullptr;
      (head == nullptr ? head : tail->next) = &thread;
      tail = &thread;
    }
    void drop_first() noexcept { head = head->next; }
    bool remove(Thread& thread) noexcept;
    [[nodiscard]] bool has(const Thread* thread) const noexcept;
  };

  void push_level(Thread& thread, std::uint8_t priority) noexcept;
  Thread* take_first() noexcept;
  Thread* pop_slow() noexcept;
  Thread* rotate_slow(Thread& thread) noexcept;

  // Only the holder of the lock writes: no read-modify-write is needed.
  void add(std::int32_t by) noexcept {
    count_.store(count_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(by),
                 std::memory_order_relaxed);
  }

  List normal_;
  std::atomic<std::uint32_t> count_{0};
  void set_levels(std::uint32_t levels) noexcept {
    std::atomic_ref{levels_}.store(levels, std::memory_order_relaxed);
  }

  // Bit p: others_[p] is not empty. With kClosed beside them a queue that is closed costs an open
  // one nothing. Written by set_levels().
  std::uint32_t levels_ = 0;
  static constexpr std::uint32_t kClosed = 1U << 31;
  Thread* passing_ = nullptr;  // With kClosed.
  std::array<List, kPriorityCount> others_;
};

/// Wakes from other kernel threads. One place for a lone thread, else a stack (Treiber) that is
/// only ever taken as a whole, so that no element can come back while somebody holds a pointer to
/// it (no ABA). Producers: any thread, lock-free. Consumers: who holds the worker's biased lock.
///
/// With both awake a handover across processors is bound by the lines that go to and fro, one after
/// the other. So the lone thread is taken by a plain store, since only producers fill the place and
/// only the one consumer empties it; and its descriptor is not written here: the worker that takes
/// it has that line. tests: inbox_model_test.cc.
class Inbox {
 public:
  /// Sequentially consistent: the pusher then looks whether the worker sleeps (Worker::wake).
  void push(Thread& thread) noexcept {
    // Without a look before: whoever awaits it would have the line again between the two.
    Thread* none = nullptr;
    if (!lone_.compare_exchange_strong(none, &thread, std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) {  // A
      thread.activity.store(Activity::ready, std::memory_order_relaxed);
      push_chain(thread, thread);
    }
  }
  /// The same for a chain by Thread::next, newest first, whose activity is `ready`.
  void push_chain(Thread& newest, Thread& oldest) noexcept {
    Thread* head = head_.load(std::memory_order_relaxed);
    do {
      oldest.next = head;
    } while (!head_.compare_exchange_weak(head, &newest, std::memory_order_seq_cst,
                                          std::memory_order_relaxed));  // A
  }
  [[nodiscard]] bool empty() const noexcept {
    return lone_.load(std::memory_order_seq_cst) == nullptr &&
           head_.load(std::memory_order_seq_cst) == nullptr;
  }
  [[nodiscard]] bool looks_empty() const noexcept {
    // One test, not two: it is asked at every switch.
    return (reinterpret_cast<std::uintptr_t>(lone_.load(std::memory_order_relaxed)) |
            reinterpret_cast<std::uintptr_t>(head_.load(std::memory_order_relaxed))) == 0;
  }
  /// `thread` is in the place of the lone one: a hint for who holds no lock.
  [[nodiscard]] bool has_lone(const Thread& thread) const noexcept {
    return lone_.load(std::memory_order_relaxed) == &thread;
  }
  /// The thread in the place of the lone one, which is ready from now on; null: there is none.
  Thread* take_lone() noexcept {
    Thread* const lone = lone_.load(std::memory_order_acquire);  // A
    if (lone != nullptr) {
      // Relaxed: the next consumer comes by way of the lock, and to producers it says nothing else.
      lone_.store(nullptr, std::memory_order_relaxed);
      lone->activity.store(Activity::ready, std::memory_order_relaxed);
    }
    return lone;
  }
  /// Moves all to `queue`, oldest first: whoever came to the place was there before the stack.
  void drain_to(RunQueue& queue) noexcept {
    if (Thread* const lone = take_lone(); lone != nullptr) {
      queue.push_back(*lone);
    }
    if (head_.load(std::memory_order_relaxed) == nullptr) {
      return;
    }
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
  alignas(kCacheLineBytes) std::atomic<Thread*> lone_{nullptr};
  std::atomic<Thread*> head_{nullptr};
};

}  // namespace sterna::threads
