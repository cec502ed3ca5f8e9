// Access to the C++ runtime's per-kernel-thread exception state.
#include "threads/exceptions.h"

#include <cxxabi.h>

namespace sterna::threads {

[[gnu::noinline]] ExceptionGlobals* exception_globals() noexcept {
  return reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
}

void swap_exceptions(ExceptionGlobals& globals, Thread& from, Thread& to) noexcept {
  if (globals.caught != nullptr || globals.uncaught != 0) {
    from.exceptions = {globals.caught, globals.uncaught};
    from.flags |= ThreadFlag::exception_saved;
  }
  globals = {};
  if ((to.flags & ThreadFlag::exception_saved) != 0) {
    globals = {to.exceptions.caught, static_cast<unsigned int>(to.exceptions.uncaught)};
    to.exceptions = {};
    to.flags &= ~ThreadFlag::exception_saved;
  }
}

}  // namespace sterna::threads
