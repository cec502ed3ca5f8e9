// Why a rank may not move now: what it holds of its process, named.
//
// The shims of open, fopen, socket, pthread_create and the like note what a rank acquires and
// strike it off when it is closed. A rank with blockers stays; the report names them.
#pragma once

#include <cstdint>
#include <string>

#include "memory/rank_slot.h"

namespace sterna::program {

/// What a rank can hold of its process: the indexes into RankSlot::refusals that are the loader's.
/// (The lower ones are for the layers below it.)
enum class BlockerKind : std::uint8_t {
  file = 16,   // An open descriptor, FILE or directory.
  thread,      // A kernel thread that it has created and not joined.
  mapping,     // Memory mapped outside of its slot: a file, shared memory, executable pages.
  library,     // dlopen().
  locale,      // A locale other than "C" and its UTF-8 form.
  process,     // A child process (popen) that is not waited for, or a timer of the process.
  order = 31,  // Nothing: the program wants it to stay. Not in the table of names.
};

/// "file /x/y is open; 2 threads are running". Empty: nothing holds the rank here. On the worker's
/// thread pointer, while the rank does not run.
[[nodiscard]] std::string describe_blockers(const memory::RankSlot& slot);

/// True if the rank holds nothing of its process. As above.
[[nodiscard]] bool may_move(const memory::RankSlot& slot) noexcept;

}  // namespace sterna::program
