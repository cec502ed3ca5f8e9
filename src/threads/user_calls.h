// What the code of a program asks for most often, in one step each: a call between the border and
// the switch would be a return more that the processor has to predict, and a frame more to fetch.
#pragma once

#include "base/result.h"
#include "threads/thread.h"

namespace sterna::threads {

/// yield() of `me`, which calls, and is in the code of its program (border.h): enters the runtime,
/// lets others go first, leaves it. Returns 0, the status of who returns it: so it takes the place
/// of its caller on the stack, which of a thousand threads is a line of the cache less each.
/// Switches.
int yield_in_user_code(Thread& me) noexcept;

/// A new runnable thread of `team` whose entry is code of the program, and whose options are the
/// usual ones but for that: Team::spawn() for whom the compiler knows them.
Result<Thread*> spawn_user_code(Team& team, Entry entry, void* argument) noexcept;

}  // namespace sterna::threads
