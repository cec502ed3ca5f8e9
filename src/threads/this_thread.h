// What a user thread says about itself: who am I, let others run, wait for a token, leave the
// processor.
#pragma once

#include <cstdint>

#include "memory/layout.h"
#include "threads/thread.h"

namespace sterna::threads {

/// self() but for the main thread of a rank; null there.
[[nodiscard, gnu::always_inline]] inline Thread* self_if_no_rank() noexcept {
  return reinterpret_cast<Thread*>(memory::stack_descriptor_address(
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))));
}
/// The main thread of the rank to whose stack `frame` points; null: of none.
[[nodiscard, gnu::const]] Thread* self_of_rank(void* frame) noexcept;

/// The current user thread, by arithmetic on the stack pointer; null on a kernel thread's own
/// stack. Inline always, but on ranks: a call would be a third of what many of its callers do.
[[nodiscard, gnu::always_inline]] inline Thread* self() noexcept {
  if (Thread* const me = self_if_no_rank(); me != nullptr) [[likely]] {
    return me;
  }
  return self_of_rank(__builtin_frame_address(0));
}

/// The same for callers who are mostly no user thread: those pay for one comparison.
[[nodiscard, gnu::always_inline]] inline Thread* self_if_any() noexcept {
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return memory::is_near_iso(frame) ? self() : nullptr;
}

/// The worker of the current user thread or kernel thread; null on a foreign kernel thread. After a
/// switch ask again.
[[nodiscard]] Worker* this_worker() noexcept;

/// Text of the last refused call of this kernel thread, kDetailBytes long, for the C API. Not on a
/// user thread.
inline constexpr std::size_t kDetailBytes = 240;
[[nodiscard]] char* kernel_detail() noexcept;

/// Thread pointer (fs base) of the worker that runs the current user thread. Needs self() and no
/// thread-local storage: the way back from the thread pointer of a rank into runtime code.
[[nodiscard]] void* worker_thread_pointer() noexcept;

/// Lets the other runnable threads of this worker go first. On a kernel thread: sched_yield.
/// Switches.
void yield() noexcept;

/// Waits for the token of this thread and takes it: one token, as in
/// java.util.concurrent.LockSupport; may also return without. User threads only (kernel threads
/// wait on a Completion or in sync/). Switches.
void park() noexcept;

/// The same, until `deadline_ns` of the team's clock at most; false: the deadline came first.
/// Switches.
bool park_until(std::uint64_t deadline_ns) noexcept;

/// Gives `thread` its token and makes it runnable if it waits for it. From any kernel thread, of
/// the team or not. The caller knows that `thread` has not ended and has not left this node.
void unpark(Thread& thread) noexcept;

/// Sleeps; other threads run. On a kernel thread that is no worker: nanosleep. Switches.
void sleep_for(std::uint64_t duration_ns) noexcept;

/// Leaves the processor for good: the context is saved, the worker goes on with another one, and
/// `then(thread, argument)` runs there, off this thread's stack. Returns when somebody calls
/// Team::start() here or Team::reinstall() on a copy of its bytes in another node. `then` runs in
/// the worker's scheduler: it must not switch; it may call start() itself. Refuse to call it while
/// has_live_exception(). Switches.
void freeze(void (*then)(Thread&, void*), void* argument) noexcept;

/// The current thread is handling or throwing a C++ exception of the runtime's copy of the C++
/// library.
[[nodiscard]] bool has_live_exception() noexcept;

}  // namespace sterna::threads
