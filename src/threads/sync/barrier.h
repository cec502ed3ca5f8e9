// A barrier for a number of participants; the last one wakes the others in one go.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "threads/scheduler.h"
#include "threads/sync/wait_list.h"

namespace sterna::threads {

/// What a participant does until all have come.
enum class BarrierWait : std::uint8_t {
  none,   // Of memory that is no barrier: all zeroes, or retired.
  sleep,  // Leaves the processor until it is woken.
  yield,  // Lets others run and looks again: less work if all participants share few workers.
};

/// User threads that are suspended, in the order they came. Guarded by the lock of its object.
class SleeperRing {
 public:
  void push_back(Thread& thread) noexcept {
    thread.next = last_ == nullptr ? &thread : last_->next;
    (last_ == nullptr ? thread : *last_).next = &thread;
    last_ = &thread;
  }
  /// A chain by Thread::next, in order, for make_chain_runnable().
  [[nodiscard]] Thread* take_all() noexcept {
    Thread* const first = last_ == nullptr ? nullptr : std::exchange(last_->next, nullptr);
    last_ = nullptr;
    return first;
  }

 private:
  Thread* last_ = nullptr;  // Its `next` is the first: the link of a suspended thread is ours.
};

/// Reusable at once: the next round may begin before all have left the last one.
class Barrier {
 public:
  explicit Barrier(std::uint32_t count, BarrierWait wait = BarrierWait::sleep) noexcept;
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  /// True for the last to arrive of each round, which goes on first; of a crowd, last, as it came.
  /// Inline for speed: a program that waits at two places would return from here to another one
  /// than the processor predicts, at each switch. Switches.
  bool arrive_and_wait() noexcept STERNA_LOCKS_UNCHECKED;

  /// The two halves, for work in between: arrive() gives the round, wait() returns when all have
  /// arrived in it; each participant calls both, in turn. Only wait() switches.
  struct Round {
    std::uint32_t number;
    bool is_last;
  };
  Round arrive() noexcept;
  void wait(Round round) noexcept;
  /// Somebody has arrived in that round, in which wait() may be called.
  [[nodiscard]] bool has_begun(std::uint32_t round) noexcept;

  [[nodiscard]] std::uint32_t count() noexcept;
  /// Participants come (more than 0) or leave for good; who leaves has not arrived in this round.
  /// Those who wait go on if the last one they waited for leaves. False: nobody would be left.
  bool add_count(std::int32_t change) noexcept;
  /// A hint: somebody has arrived, and not all have.
  [[nodiscard]] bool is_used() noexcept;
  /// Whether this memory is one: it was made, and not retired. For calls from programs.
  [[nodiscard]] bool is_fit() const noexcept { return kind() != BarrierWait::none; }
  /// Nobody uses it any more.
  void retire() noexcept { wait_.store(BarrierWait::none, std::memory_order_relaxed); }

 private:
  /// Who is to go on, off the lists.
  struct Leaving {
    Thread* sleepers = nullptr;
    WaitNode* kernel_threads = nullptr;
    void go() const noexcept;
  };
  /// Under lock_: all have come.
  Leaving complete() noexcept;
  /// The caller is the last one, and has lock_, which this gives back: lets all go.
  void complete_and_go() noexcept STERNA_LOCKS_UNCHECKED;
  /// arrive_and_wait() of kernel threads, and where all yield.
  bool arrive_and_wait_slow() noexcept;
  [[nodiscard]] BarrierWait kind() const noexcept { return wait_.load(std::memory_order_relaxed); }
  /// Takes lock_ and asks `must_wait()`: true: sleeps until all go. Returns the answer. Switches.
  template <typename MustWait>
  bool sleep_if(MustWait must_wait) noexcept;

  SpinLock lock_;
  // Constant until it is retired; relaxed: somebody may be on his way out then.
  std::atomic<BarrierWait> wait_;
  std::uint32_t count_;                  // Guard: lock_.
  std::uint32_t arrived_ = 0;            // Guard: lock_.
  std::atomic<std::uint32_t> round_{0};  // Written under lock_.
  SleeperRing sleepers_;                 // Guard: lock_.
  WaitList kernel_waiters_;              // Guard: lock_.
};

[[gnu::always_inline]] inline bool Barrier::arrive_and_wait() noexcept {
  Thread* const me = self();
  if (me == nullptr || kind() == BarrierWait::yield) [[unlikely]] {
    return arrive_and_wait_slow();
  }
  const bool has_waited = suspend(*me, [&]() STERNA_LOCKS_UNCHECKED noexcept {
    lock_.lock();
    if (++arrived_ >= count_) [[unlikely]] {
      return false;
    }
    sleepers_.push_back(*me);
    lock_.unlock();
    return true;
  });
  if (!has_waited) [[unlikely]] {
    // With lock_ still: so nothing of what it has to do lies on the stacks of those who wait, each
    // of whose lines is fetched at a switch among many.
    complete_and_go();
  }
  return !has_waited;
}

}  // namespace sterna::threads
