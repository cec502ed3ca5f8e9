// Compiler thread-local variables (thread_local, errno, what libc keeps by thread) of a user
// thread's own: a thread with `own locals`.
//
// Whose they are: a kernel thread's, the owner, that is started for the thread, lends it its thread
// pointer and waits, with all signals blocked, until the thread has ended; then it ends as any
// kernel thread does. So nothing here knows how libc lays a thread out: initial values, modules
// that are loaded later, malloc's cache, owners of stdio's locks and of recursive mutexes, keys of
// pthreads, destructors of thread_local objects and the end of all that are libc's own business.
//
// When the register changes: at a switch, in its slow way (ThreadFlag::own_locals is one of
// kSlowSwitchFlags), so other threads pay nothing. While such a thread runs, the runtime runs on
// its pointer, too: the runtime's own variables (this_worker.cc) are read on the stacks of kernel
// threads only, which have theirs. All other threads have their carrier's. Who waits on a carrier
// (kernel-bound, or taken: carrier.h) keeps what is loaded there.
//
// Guard of the block: the owner's until it stores kLent, the thread's until it stores kReturned,
// then the owner's again (release both, and acquire by who finds it). In between the owner executes
// one system call, which touches nothing of it.
#pragma once

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include "base/result.h"
#include "threads/thread.h"

namespace sterna::threads {

struct Locals {
  enum : std::uint32_t { kStarts, kLent, kReturned };

  std::atomic<std::uint32_t> word{kStarts};  // A futex.
  std::atomic<std::uintptr_t> pointer{0};    // Constant once it is lent. Release by the owner.
  pthread_t owner{};                         // Constant, as the next one.
  Thread idle;                               // The owner itself, for sanitizers: as Carrier::idle.
};

/// Starts an owner, and waits until it has lent its block. From anywhere; does not switch.
Result<Locals*> make_locals() noexcept;

/// `thread` has not started: they are its own from its first instruction on.
void give_locals(Thread& thread, Locals& locals) noexcept;

/// The owner ends, with the destructors of what was made there; frees them. On no thread that has
/// them. Switches.
void end_locals(Locals& locals) noexcept;

/// At the end of the current thread: it gives its locals back and goes on with its carrier's; the
/// same. Switches.
void end_own_locals(Thread& me) noexcept;

/// What the thread pointer is while `thread` runs on `worker`, if it is no rank.
[[nodiscard]] std::uintptr_t pointer_for(const Worker& worker, const Thread& thread) noexcept;

}  // namespace sterna::threads
