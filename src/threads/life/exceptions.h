// C++ exceptions that live across a switch: the C++ runtime keeps the list of caught exceptions and
// the count of uncaught ones per kernel thread; each user thread must have its own.
#pragma once

#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

/// The layout of __cxa_eh_globals (Itanium C++ ABI, 2.2.2).
struct ExceptionGlobals {
  void* caught;
  unsigned int uncaught;
};

/// Those of the calling kernel thread (on its own thread pointer). Never inlined.
ExceptionGlobals* exception_globals() noexcept;

/// Whether a switch to that thread must exchange something: nearly never.
[[nodiscard]] inline bool must_swap_exceptions(const ExceptionGlobals& globals,
                                               const Thread& to) noexcept {
  return globals.caught != nullptr || globals.uncaught != 0 ||
         (to.flags & ThreadFlag::exception_saved) != 0;
}

/// Saves the state of `from` and loads that of `to`. On the worker that switches, just before.
void swap_exceptions(ExceptionGlobals& globals, Thread& from, Thread& to) noexcept;

}  // namespace sterna::threads
