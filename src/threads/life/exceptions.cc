// Access to the C++ runtime's per-kernel-thread exception state.
#include "threads/life/exceptions.h"

#include <cxxabi.h>

#include "threads/flags.h"

namespace sterna::threads {

[[gnu::noinline]] ExceptionGlobals* exception_globals() noexcept {
  return reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
}

void swap_exceptions(ExceptionGlobals& globals, Thread& from, Thread& to) noexcept {
  if (globals.caught != nullptr || globals.uncaught != 0) {
    from.exceptions = {globals.caught, globals.uncaught};
    set_flags(from, from.flags | ThreadFlag::exception_saved);
  }
  globals = {};
  if ((to.flags & ThreadFlag::exception_saved) != 0) {
    globals = {to.exceptions.caught, static_cast<unsigned int>(to.exceptions.uncaught)};
    to.exceptions = {};
    set_flags(to, to.flags & ~ThreadFlag::exception_saved);
  }
}

}  // namespace sterna::threads
