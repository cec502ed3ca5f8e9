// System calls that block, without stopping the other threads of the worker.
#pragma once

#include "base/function_ref.h"

namespace sterna::threads {

/// Runs `function` on a spare kernel thread while the calling user thread is parked; its value is
/// returned. What it does must not depend on the kernel thread: no thread-local results (return
/// errors by value, as base/syscall.h's system_call does), no user-thread calls but unpark(). On a
/// kernel thread: a plain call.
///   const long count = blocking([&] { return system_call([&] { return ::read(fd, data, bytes); });
///   });
/// Switches.
long blocking(FunctionRef<long()> function) noexcept;

}  // namespace sterna::threads
