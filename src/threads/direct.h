// Leaving and waking between two ranks of one worker, from a rank's own code: on the thread pointer
// of the rank, without a step into the runtime's (docs/rules/switching.md). What cannot be done
// without thread-local storage or system calls is refused, and the caller takes the usual way.
//
// A thread that left this way carries ThreadFlag::own_pointer until it goes on: whoever continues
// it need not load the worker's thread pointer for it, because it loads its own. So a switch from
// rank to rank writes the register once.
#pragma once

#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

/// A leave that has begun: the worker, whose lock is held, and who runs there next.
struct DirectLeave {
  Worker* worker = nullptr;
  Thread* next = nullptr;

  explicit operator bool() const noexcept { return worker != nullptr; }
};

/// Takes the lock of the worker that runs `me`, the current thread, and the next thread from its
/// queue, if one can run there at once and nothing else (timers, the network, wakes from outside, a
/// shared queue, priorities, threads that are held, a record of the switch) must be looked after.
/// False: not so. Else the caller publishes `me` as Waiter::suspended(me) where a waker finds it,
/// and calls leave_directly(), in any case; it may take spin locks meanwhile, and wakes nobody.
/// A thread that can be cancelled does not wait this way. Does not switch.
[[nodiscard]] DirectLeave try_begin_direct_leave(Thread& me) noexcept;

/// Leaves for the next thread until make_runnable(me), and gives the lock back after the switch.
/// `own_pointer` is the thread pointer of the rank, which is loaded now and when this returns.
/// Switches.
void leave_directly(const DirectLeave& leave, Thread& me, std::uintptr_t own_pointer) noexcept;

/// Whether another thread waits to run on the worker of `me`, the current thread. A hint.
[[nodiscard]] bool is_another_ready(const Thread& me) noexcept;

/// As make_runnable(thread), from the user thread `me`, if `thread` is at home on the same worker
/// and no other worker has to be woken for it. False: nothing happened.
[[nodiscard]] bool try_make_runnable_here(Thread& thread, const Thread& me) noexcept;

}  // namespace sterna::threads
