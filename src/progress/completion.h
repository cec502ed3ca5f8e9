// "It is done": one word that one side sets and another waits for.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "threads/waiter.h"

namespace sterna::progress {

class Progress;

/// 8 bytes, no pointer into node memory while nobody waits: may lie in the slot of a rank and move
/// with it. One waiter at a time; done() and complete() from any thread. complete() does not touch
/// the word after it has set it: the waiter may free it as soon as done() is true.
class Completion {
 public:
  constexpr Completion() noexcept = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  /// Acquires what complete() released.
  [[nodiscard]] bool done() const noexcept {
    return word_.load(std::memory_order_acquire) == kDone;  // A
  }

  /// Exactly once per reset(). Wakes the waiter. From any thread; does not switch.
  void complete() noexcept {
    // A: what was done before is seen by whoever sees kDone. Acquire, to read the waiter's record.
    const std::uintptr_t waiter = word_.exchange(kDone, std::memory_order_acq_rel);
    if (waiter != 0) {
      check(waiter != kDone, "a completion is completed once");
      threads::Waiter::from_bits(waiter).signal();
    }
  }

  /// complete() where nobody can begin to wait meanwhile: the caller is the one who will wait, or
  /// the only thread there is. Who waits already is woken.
  void complete_alone() noexcept {
    if (word_.load(std::memory_order_relaxed) == 0) [[likely]] {
      word_.store(kDone, std::memory_order_release);  // A
    } else {
      complete();
    }
  }
  /// As complete(), but leaves it to the caller to signal whom it returns, if anybody. Whoever else
  /// might complete, publish or withdraw is kept out by a lock of the caller.
  [[nodiscard]] threads::Waiter complete_unsignalled() noexcept {
    const std::uintptr_t waiter = word_.load(std::memory_order_relaxed);
    if ((waiter & threads::Waiter::kSuspendedTag) == 0) [[unlikely]] {
      return threads::Waiter::from_bits(word_.exchange(kDone, std::memory_order_acq_rel));
    }
    word_.store(kDone, std::memory_order_release);  // A
    return threads::Waiter::from_bits(waiter);
  }
  /// For a thread that suspends itself (threads/direct.h), before others know of the completion.
  void await_suspended(threads::Thread& thread) noexcept {
    word_.store(threads::Waiter::suspended(thread).bits(), std::memory_order_relaxed);
  }
  /// Takes back what await_suspended() did, unless it is done; null: nothing to take. Under the
  /// same lock as complete_unsignalled().
  [[nodiscard]] threads::Waiter withdraw_suspended() noexcept {
    const std::uintptr_t waiter = word_.load(std::memory_order_relaxed);
    if ((waiter & threads::Waiter::kSuspendedTag) == 0) {
      return {};
    }
    word_.store(0, std::memory_order_relaxed);
    return threads::Waiter::from_bits(waiter);
  }

  /// For reuse; nobody waits and no complete() is under way.
  void reset() noexcept { word_.store(0, std::memory_order_relaxed); }

  /// Waits. A user thread polls once, then parks; a kernel thread polls, yields, sleeps. Switches.
  void wait(Progress& progress) noexcept {
    if (!done()) {
      (void)wait_for(progress, {});
    }
  }

  /// The same with a deadline (monotonic clock) or until unpark() of the waiting user thread:
  /// signalled means done(). A rank that must notice "move away" waits interruptibly. Switches.
  threads::Wake wait_for(Progress& progress, const threads::WaitOptions& options) noexcept;

  /// Has `listener` called when it is done; nobody waits for it meanwhile. False: it is done, the
  /// listener is not called.
  [[nodiscard]] bool listen(threads::Listener& listener) noexcept {
    return publish(threads::Waiter{listener});
  }

  /// Waits until one of `completions` is done; null entries are passed over (at least one is not
  /// null). Returns the index of the first that is done, or completions.size() when it ended
  /// without. Switches.
  static std::size_t wait_any(Progress& progress, std::span<Completion* const> completions,
                              const threads::WaitOptions& options = {}) noexcept;

 private:
  static constexpr std::uintptr_t kDone = 1;

  /// False: it is done already.
  bool publish(threads::Waiter waiter) noexcept;
  /// False: complete() has taken the waiter, and has signalled it or will.
  bool withdraw(threads::Waiter waiter) noexcept;

  // 0: pending, nobody waits; kDone; else the bits of a Waiter.
  std::atomic<std::uintptr_t> word_{0};
};
static_assert(sizeof(Completion) == 8);

}  // namespace sterna::progress
