// Threads that are made before they start: a handle names them, what others ask of them (a
// priority, cancel(), hold(), a token, a join) counts, and they run when somebody starts them. The
// team does not wait for one that is not started, nor lists it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "threads/thread.h"

namespace sterna::threads {

class Team;

/// As Team::spawn(), or spawn_with_locals(), up to the start.
Result<Thread*> make_unstarted(Team& team, const ThreadOptions& options, bool has_own_locals,
                               Entry entry, void* argument) noexcept;

/// An adopted thread is one of these, too: start_unstarted() starts it.
void leave_unstarted(Thread& thread) noexcept;

/// Once, by one caller. Afterwards it may have ended.
void start_unstarted(Thread& thread, std::uint32_t worker = kAnyWorker) noexcept;

/// Instead of the start: it has ended without having run, as one that was cancelled. Who joins it,
/// now or later, goes on; if it is detached it is freed. Once, by the one who would start it. May
/// switch.
void end_unstarted(Thread& thread) noexcept;

}  // namespace sterna::threads
