// Birth and end of threads: slots, descriptors, joining. Internal to threads/.
#pragma once

#include "threads/worker.h"

namespace sterna::threads {

/// The end of the current thread.
[[noreturn]] void end_current(Thread& me) noexcept;

/// Makes a thread that is ready to start runnable on `target` (kAnyWorker: here, or the next in
/// turn).
void start_thread(TeamState& team, Thread& thread, std::uint32_t target) noexcept;

/// A slot with a thread in it that has everything but its entry.
Result<Thread*> make_thread(TeamState& team, const ThreadOptions& options) noexcept;

/// Fills in what every new thread has, whatever its memory.
void init_thread(TeamState& team, Thread& thread, const ThreadOptions& options, Entry entry,
                 void* argument) noexcept;

/// Gives the slots that the worker keeps back to the iso space.
void drop_slots(Worker& worker) noexcept;

/// Runs the destructors of thread-specific data and frees the table.
void end_keys(Thread& thread) noexcept;

/// The caller's worker if it is of this team, else null.
[[nodiscard]] Worker* worker_here(const TeamState& team) noexcept;

/// Counts a thread that begins or ends to belong to the team.
void count_birth(TeamState& team, Worker* here) noexcept;
void count_end(TeamState& team, Worker* here) noexcept;

}  // namespace sterna::threads
