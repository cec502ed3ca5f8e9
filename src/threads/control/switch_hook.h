// What a thread wants to be called at its switches: counters of the processor, above all.
//
// A thread without hooks pays nothing: those that have some carry ThreadFlag::hooked, one of the
// flags that make a switch a slow one. A hook runs on the stack of its thread: `before` as the last
// thing before the thread leaves its worker, also for good, `after` as the first thing when it goes
// on, also for the first time. Of a thread that is preempted they run on the stack of signals,
// where self() is null. Both run in the scheduler, `before` with the queue of the worker locked,
// and inside a handler of a signal if the thread is preempted: they must not call the runtime, nor
// take locks, nor allocate, nor throw.
//
// A thread that keeps its kernel thread, but loses its worker (carrier.h: a call that blocks), has
// not switched: no hook runs. One that is preempted has, although it keeps its kernel thread, too.
#pragma once

#include "threads/thread.h"

namespace sterna::threads {

/// Lies in memory of the caller until it is removed or the thread has ended.
struct SwitchHook {
  void (*before)(void*) = nullptr;  // Null: nothing.
  void (*after)(void*) = nullptr;
  void* argument = nullptr;
  SwitchHook* older = nullptr;
};

/// Of the current user thread. `before` runs newest first, `after` oldest first: they nest.
void add_switch_hook(SwitchHook& hook) noexcept;
/// False: the thread does not have it.
bool remove_switch_hook(SwitchHook& hook) noexcept;

/// `thread` is about to leave, or has come back; on its stack. Internal to threads/.
void run_hooks_before(const Thread& thread) noexcept;
void run_hooks_after(const Thread& thread) noexcept;

}  // namespace sterna::threads
