// What one thread may do to the running of another: stop it, let it go on, change its priority,
// give it the processor; and where a thread may run.
#pragma once

#include <cstdint>
#include <span>

#include "threads/team.h"
#include "threads/thread.h"

namespace sterna::threads {

/// Orders that `threads` stay off the processors: one that runs stops at its next call that may
/// switch, one that waits stays where it is when its wait ends. Returns when none of them runs any
/// more (true), or at the deadline (false; the order stands). The caller may be among them: it
/// stops last, and true is returned after its unhold(). From anywhere, kernel threads too; the
/// threads have not ended. Switches.
bool hold(std::span<Thread* const> threads, std::uint64_t deadline_ns) noexcept;

/// Takes the order back: a thread that was stopped by it goes on. From anywhere.
void unhold(Thread& thread) noexcept;

/// How hold_all() ended. `timed_out`: the order stands, and who still runs stops later.
enum class HoldAll : std::uint8_t { held, timed_out, held_already };

/// Orders that no thread of the team but the caller runs, those to come included: one that runs
/// stops at its next call that may switch (preemption makes it sooner), one in a call that blocks
/// in the kernel when that returns. Returns when none runs, or at the deadline. The network is
/// polled on. The end of the caller takes the order back. In a team that preempts, one that is
/// stopped may be inside a library, with a lock of it (malloc's, stdio's): who waits for that
/// before unhold_all() waits for ever. From anywhere, kernel threads too; one at a time. Switches.
[[nodiscard]] HoldAll hold_all(Team& team, std::uint64_t deadline_ns) noexcept;

/// Takes the order back. False: there was none. From anywhere. Does not switch.
bool unhold_all(Team& team) noexcept;

/// From anywhere. A thread that waits in the private queue of a worker is moved to its new place
/// there at once; elsewhere it counts from the next time on.
void set_priority(Thread& thread, std::uint8_t priority) noexcept;

/// Gives the processor to `thread` if that one is ready, wherever it waits and whatever its
/// priority; else as yield(), and false. Linear in the length of its queue. A managed thread is
/// left to its policy (false). On a kernel thread: sched_yield, and false. Switches.
bool yield_to(Thread& thread) noexcept;

/// The current user thread stays on workers [first, first + count) of its team from now on, and
/// goes there if it is elsewhere. Not for managed threads, whose policy says where. Switches.
void stay_on(std::uint32_t first, std::uint32_t count) noexcept;

/// `function(argument)` is called after the current user thread has ended and left its stack, by
/// the worker's scheduler: it must not switch. One per thread; null: none.
void call_after_exit(void (*function)(void*), void* argument) noexcept;

}  // namespace sterna::threads
