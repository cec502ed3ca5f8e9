// Parking: a thread waits for a token (park, unpark), for a signal (await_signal, Waiter::signal),
// for a deadline, or for the first of them. One state word per thread:
//
//   bit 0  token        unpark() has given it, park() has not taken it yet
//   bit 1  wait_token   parked; the token ends it
//   bit 2  wait_signal  parked; a signal ends it
//   bit 3  wait_timer   parked; the deadline ends it
//   bit 4  timer        the deadline has passed
//   bit 5  cancel       cancel() was called; stays
//   bit 6  wait_cancel  parked; cancel() ends it
//   8..63  signals that have been given and not been taken
//
// Parked means any of the bits wait_*. The thread itself sets them, by a compare-and-swap that
// fails if what it waits for has come in the meantime (so no wake-up is lost), under the biased
// lock of its worker (so that nobody runs it before its registers are saved: scheduler.h). Whoever
// clears them, by the compare-and-swap that brings the event, is the only one to make the thread
// runnable: exactly once for each park. Wakers do not touch the thread after that, nor after a
// change that found it not parked. Orders: a waker releases (A), the thread acquires (A) when it
// takes what was given; the waker also acquires, because it reads the fields of the thread that it
// makes runnable (B, by the parking). tests: park_model_test.cc enumerates the interleavings of two
// wakers, a timer and a parker.
#include <ctime>

#include <sys/syscall.h>

#include "base/check.h"
#include "base/syscall.h"
#include "threads/control/cancel.h"
#include "threads/scheduler.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kToken = 1;
constexpr std::uint64_t kWaitToken = 2;
constexpr std::uint64_t kWaitSignal = 4;
constexpr std::uint64_t kWaitTimer = 8;
constexpr std::uint64_t kTimer = 16;
constexpr std::uint64_t kCancel = 32;
constexpr std::uint64_t kWaitCancel = 64;
constexpr std::uint64_t kParked = kWaitToken | kWaitSignal | kWaitTimer | kWaitCancel;
constexpr std::uint64_t kSignal = 256;

/// Brings an event: `flag` is set, `add` is added. True: the thread was parked for it (`wakes`),
/// and is the caller's to make runnable.
bool bring(Thread& thread, std::uint64_t flag, std::uint64_t add, std::uint64_t wakes) noexcept {
  std::uint64_t word = thread.wait_word.load(std::memory_order_relaxed);
  for (;;) {
    const bool was_parked = (word & wakes) != 0;
    const std::uint64_t changed = ((was_parked ? word & ~kParked : word) | flag) + add;
    if (thread.wait_word.compare_exchange_weak(word, changed, std::memory_order_acq_rel,
                                               std::memory_order_relaxed)) {  // A, B
      return was_parked;
    }
  }
}

/// Takes one event that `waits` asks for. `word` is the present value, and is updated.
bool try_take(Thread& me, std::uint64_t waits, Wake& wake) noexcept {
  std::uint64_t word = me.wait_word.load(std::memory_order_relaxed);
  for (;;) {
    std::uint64_t changed = 0;
    if ((waits & kWaitSignal) != 0 && word >= kSignal) {
      changed = word - kSignal;
      wake = Wake::signalled;
    } else if ((waits & kWaitToken) != 0 && (word & kToken) != 0) {
      changed = word & ~kToken;
      wake = Wake::interrupted;
    } else if ((waits & kWaitCancel) != 0 && (word & kCancel) != 0) {
      wake = Wake::cancelled;
      return true;
    } else if ((waits & kWaitTimer) != 0 && (word & kTimer) != 0) {
      changed = word & ~kTimer;
      wake = Wake::timed_out;
    } else {
      return false;
    }
    if (me.wait_word.compare_exchange_weak(word, changed, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {  // A
      return true;
    }
  }
}

/// Whether `word` has nothing yet of what `waits` asks for.
bool must_wait(std::uint64_t word, std::uint64_t waits) noexcept {
  return ((waits & kWaitSignal) == 0 || word < kSignal) &&
         ((waits & kWaitToken) == 0 || (word & kToken) == 0) &&
         ((waits & kWaitCancel) == 0 || (word & kCancel) == 0) &&
         ((waits & kWaitTimer) == 0 || (word & kTimer) == 0);
}

/// What a cancellation point adds to what it waits for.
std::uint64_t cancel_bit(const Thread& me) noexcept {
  return me.is_cancellable ? kWaitCancel : 0;
}

Wake wait_untimed(Thread& me, std::uint64_t waits) noexcept {
  Wake wake = Wake::signalled;
  while (!try_take(me, waits, wake)) {
    (void)suspend(me, [&]() noexcept {
      std::uint64_t word = me.wait_word.load(std::memory_order_relaxed);
      while (must_wait(word, waits)) {
        if (me.wait_word.compare_exchange_weak(word, word | waits, std::memory_order_release,
                                               std::memory_order_relaxed)) {  // B
          return true;
        }
      }
      return false;
    });
  }
  return wake;
}

Wake wait_current(Thread& me, std::uint64_t waits, std::uint64_t deadline_ns) noexcept {
  if (deadline_ns == kNever) {
    return wait_untimed(me, waits);
  }
  Wake wake = Wake::signalled;
  if (try_take(me, waits, wake)) {
    return wake;
  }
  if (deadline_ns <= me.worker.load(std::memory_order_relaxed)->team.now_ns()) {
    // A timer would be fired when the worker looks at its timers next, perhaps much later. But
    // others have their turn: who asks again and again may wait for what one of them does.
    yield();
    return try_take(me, waits, wake) ? wake : Wake::timed_out;
  }
  Timers& timers = me.worker.load(std::memory_order_relaxed)->timers;
  timers.arm(me, deadline_ns);
  wake = wait_untimed(me, waits | kWaitTimer);
  timers.disarm(me);
  // It may have fired between the wake-up and the disarming; relaxed: our own field from now on.
  me.wait_word.fetch_and(~kTimer, std::memory_order_relaxed);
  return wake;
}

}  // namespace

bool expire_wait(Thread& thread) noexcept {
  return bring(thread, kTimer, 0, kWaitTimer);
}

void cancel(Thread& thread) noexcept {
  if (bring(thread, kCancel, 0, kWaitCancel)) {
    make_runnable(thread);
  }
}

bool is_cancelled(const Thread& thread) noexcept {
  // A: the thread sees what was done before cancel().
  return (thread.wait_word.load(std::memory_order_acquire) & kCancel) != 0;
}

void park() noexcept {
  Thread* const me = self();
  check(me != nullptr, "park() is called on a user thread");
  if (wait_untimed(*me, kWaitToken | cancel_bit(*me)) == Wake::cancelled) [[unlikely]] {
    end_cancelled(*me);
  }
}

bool park_until(std::uint64_t deadline_ns) noexcept {
  Thread* const me = self();
  check(me != nullptr, "park_until() is called on a user thread");
  const Wake wake = wait_current(*me, kWaitToken | cancel_bit(*me), deadline_ns);
  if (wake == Wake::cancelled) [[unlikely]] {
    end_cancelled(*me);
  }
  return wake != Wake::timed_out;
}

void unpark(Thread& thread) noexcept {
  if (bring(thread, kToken, 0, kWaitToken)) {
    make_runnable(thread);
  }
}

Wake await_signal(const WaitOptions& options) noexcept {
  Thread* const me = self();
  check(me != nullptr, "await_signal() without a KernelWaiter is called on a user thread");
  return wait_current(*me,
                      kWaitSignal | (options.is_interruptible ? kWaitToken : 0) |
                          (options.is_cancellable ? cancel_bit(*me) : 0),
                      options.deadline_ns);
}

void Waiter::signal() const noexcept {
  if ((bits_ & kSuspendedTag) != 0) {
    make_runnable(*thread());
  } else if ((bits_ & (kKernelTag | kListenerTag)) == 0) {
    Thread* const user = thread();
    if (bring(*user, 0, kSignal, kWaitSignal)) {
      make_runnable(*user);
    }
  } else if ((bits_ & kKernelTag) != 0) {
    signal_kernel(*reinterpret_cast<KernelWaiter*>(bits_ & ~kKernelTag));
  } else {
    auto& listener = *reinterpret_cast<Listener*>(bits_ & ~kListenerTag);
    listener.ended(listener);
  }
}

void sleep_for(std::uint64_t duration_ns) noexcept {
  if (Thread* const me = self(); me != nullptr) {
    const std::uint64_t now = me->worker.load(std::memory_order_relaxed)->team.now_ns();
    if (wait_current(*me, cancel_bit(*me), now + std::min(duration_ns, kNever - 1 - now)) ==
        Wake::cancelled) [[unlikely]] {
      end_cancelled(*me);
    }
    return;
  }
  timespec left{.tv_sec = static_cast<time_t>(duration_ns / 1'000'000'000),
                .tv_nsec = static_cast<long>(duration_ns % 1'000'000'000)};
  while (raw_system_call(SYS_nanosleep, reinterpret_cast<long>(&left),
                         reinterpret_cast<long>(&left)) == -EINTR) {
  }
}

}  // namespace sterna::threads
