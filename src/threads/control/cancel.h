// Cancellation: asking a thread to end at its next cancellation point.
//
// Deferred: the thread ends where it waits (park, sleep, join, Condition, Semaphore, RwLock) or
// asks (test_cancel), never in between, and never inside a Mutex or a Barrier, as in POSIX. Waits
// of threads that are not cancellable (ThreadOptions::cancellable, set_cancellable) do not end, and
// cost nothing for it.
#pragma once

#include "threads/thread.h"

namespace sterna::threads {

/// From anywhere; `thread` has not ended, or has not been joined. If it is not cancellable, the
/// order counts from when it is. Does not switch.
void cancel(Thread& thread) noexcept;
[[nodiscard]] bool is_cancelled(const Thread& thread) noexcept;

/// Of the current user thread; returns what was set before.
bool set_cancellable(bool is_cancellable) noexcept;
/// A cancellation point that does not wait. Returns unless the thread is cancelled and cancellable.
void test_cancel() noexcept;

/// `cleanup` runs at the end of the current user thread, whichever it is (cancelled, by its own
/// end call, or returning from its entry), unless it is popped before: innermost first, before the
/// destructors of keys. It lies on the stack of the thread.
void push_cleanup(Cleanup& cleanup) noexcept;
/// The innermost goes; with `execute` it runs. False: there is none.
bool pop_cleanup(bool execute) noexcept;
/// That one goes, whatever the program's code has pushed since, and left.
void drop_cleanup(Cleanup& cleanup) noexcept;

/// While it lives, the waits of the current user thread (null: a kernel thread) do not end by
/// cancel(): for calls that are no cancellation points, but wait in ones. An order is kept.
class Uncancellable {
 public:
  explicit Uncancellable(Thread* me) noexcept
      : me_{me != nullptr && me->is_cancellable ? me : nullptr} {
    if (me_ != nullptr) {
      me_->is_cancellable = false;
    }
  }
  ~Uncancellable() {
    if (me_ != nullptr) {
      me_->is_cancellable = true;
    }
  }
  Uncancellable(const Uncancellable&) = delete;
  Uncancellable& operator=(const Uncancellable&) = delete;

 private:
  Thread* const me_;
};

/// Ends the current thread as cancelled: cleanups run, C++ frames are not unwound. Internal to
/// threads/. No lock is held.
[[noreturn]] void end_cancelled(Thread& me) noexcept;

}  // namespace sterna::threads
