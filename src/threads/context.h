// The context switch. context_<processor>.h has the switch itself, context_<processor>.S the bottom
// frame.
//
// A context is a stack pointer. The switch saves no floating-point control or status: sticky bits
// that differ between threads would cost 60 ns, and C code is not entitled to them across a call.
// It ends in an indirect jump, not in a return: a return would be predicted to the other thread's
// caller, and miss (2 ns against 10).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
/// Where a new context starts: calls its function with its argument; the bottom of every stack.
void sterna_context_entry() noexcept;
}

#if defined(__x86_64__)
#include "threads/context_x86_64.h"
#elif defined(__aarch64__)
#include "threads/context_aarch64.h"
#else
#error "no context switch for this processor: write context_<processor>.h and .S"
#endif
