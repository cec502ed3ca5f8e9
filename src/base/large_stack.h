// A stack that is large enough, whatever `ulimit -s` says.
#pragma once

#include <cstddef>

#include "base/function_ref.h"

namespace sterna {

/// Calls `function` on this kernel thread and returns its result: on the stack that the thread has,
/// if the limit lets that grow to kLargeStackBytes; else on one of that size of its own, and the
/// limit stays as it is for the programs that the process starts; its kernel threads get as much.
/// For main() alone, before there are others. No memory for a stack: a sentence, and the result 1.
int on_large_stack(FunctionRef<int()> function) noexcept;

inline constexpr unsigned long kLargeStackBytes = 1 << 20;

}  // namespace sterna
