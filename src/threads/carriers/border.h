// The border between the code of a program and the runtime, as those see it who may take a worker
// away from a thread: preemption (preempt.h) and the take-over of a worker whose kernel thread
// sleeps in the kernel (carrier.h). Both happen only while the thread is in its program's code.
//
// Entry:   in_user = false; (compiler barrier) read claim, then is_taken;  0: the worker is ours.
// Claimer: claim = 1; takes the lock of the worker from outside, with its membarrier(); read
// in_user
//          of the thread that the worker runs;  true: the worker is the claimer's.
// Forbidden: both have it. The argument is that of biased_lock.h, whose second half this is; an
// entry that finds a claim waits until it is decided. A handler of a signal runs on the kernel
// thread of the entry: program order is enough for it.
//
// Whom the worker runs, the claimer asks with the lock held that is held over every switch, and
// while a thread lets its worker go: so that thread stays there meanwhile, and its descriptor does.
// tests: border_model_test.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/this_thread.h"
#include "threads/thread.h"

namespace sterna::threads {

struct LockHome;

/// First member of a Worker.
struct Border {
  // Who waits that its thread should give way to: Wish, preempt.h. Relaxed: a hint.
  std::atomic<std::uint8_t> wish{0};
  // 1: a claim is being decided. A futex.
  std::atomic<std::uint32_t> claim{0};
  // Where mutexes that its threads use are at home: lock_home.h. Null: nowhere. Constant. Here
  // because mutexes are inline everywhere.
  LockHome* lock_home = nullptr;
};

/// `me` has found a claim, or has lost its worker: returns when it has one. Perhaps on the thread
/// pointer of a rank. Switches, in effect: the worker may be another.
void enter_claimed(Thread& me) noexcept;
/// Gives way to who waits for it, if that is allowed, on the way out. Switches.
void leave_wished(Thread& me) noexcept;

[[nodiscard]] inline Border& border_of(Worker& worker) noexcept {
  return reinterpret_cast<Border&>(worker);  // worker.h checks that it is at its begin.
}

/// enter_runtime(), below, of who knows that the thread was not there. Returns its worker.
[[gnu::always_inline]] inline Worker& enter_from_user(Thread& me) noexcept {
  me.in_user.store(false, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Worker* worker = me.worker.load(std::memory_order_relaxed);
  // Acquire: what the claimer wrote before it decided.
  if (border_of(*worker).claim.load(std::memory_order_acquire) != 0 ||
      me.is_taken.load(std::memory_order_relaxed)) [[unlikely]] {
    enter_claimed(me);
    worker = me.worker.load(std::memory_order_relaxed);
  }
  return *worker;
}

/// enter_from_user() of who neither waits for a claim nor calls anything. Null: it would have to.
/// Then, or if it goes no further, it stores in_user again: it has been nowhere.
[[nodiscard, gnu::always_inline]] inline Worker* try_enter_from_user(Thread& me) noexcept {
  me.in_user.store(false, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Worker* const worker = me.worker.load(std::memory_order_relaxed);
  if (border_of(*worker).claim.load(std::memory_order_acquire) != 0 ||
      me.is_taken.load(std::memory_order_relaxed)) [[unlikely]] {
    return nullptr;
  }
  return worker;
}

/// The current user thread comes from the code of its program. False: it was in the runtime
/// already. Afterwards its worker is its own until it leaves.
inline bool enter_runtime(Thread& me) noexcept {
  if (!me.in_user.load(std::memory_order_relaxed)) {
    return false;
  }
  (void)enter_from_user(me);
  return true;
}

/// leave_runtime(), below, of who knows its worker.
[[gnu::always_inline]] inline void leave_runtime(Thread& me, Worker& worker) noexcept {
  me.in_user.store(true, std::memory_order_release);  // For the claimer: all that we did here.
  if (border_of(worker).wish.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    leave_wished(me);
  }
}
/// The current user thread, in the runtime, goes on to the code of its program.
inline void leave_runtime(Thread& me) noexcept {
  leave_runtime(me, *me.worker.load(std::memory_order_relaxed));
}

/// The caller is in the runtime for its life, as far as preemption goes: for entry points that
/// change no thread pointer, and for programs (tests) that are written in C++ against this layer.
class RuntimeEntry {
 public:
  explicit RuntimeEntry(Thread* me = self()) noexcept
      : me_{me != nullptr && enter_runtime(*me) ? me : nullptr} {}
  ~RuntimeEntry() {
    if (me_ != nullptr) {
      leave_runtime(*me_);
    }
  }
  RuntimeEntry(const RuntimeEntry&) = delete;
  RuntimeEntry& operator=(const RuntimeEntry&) = delete;

 private:
  Thread* const me_;  // Null: it was in the runtime already, or a kernel thread calls.
};

}  // namespace sterna::threads
