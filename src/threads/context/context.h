// The context switch. context_<processor>.h has the switch itself, context_<processor>.S the bottom
// frame.
//
// A context is a stack pointer, where to go on, and where the processor has one, a frame pointer:
// SavedContext. What else is to be saved lies on the stack. The switch saves no floating-point
// control or status: sticky bits that differ between threads would cost 60 ns, and C code is not
// entitled to them across a call. It ends in an indirect jump, not in a return: a return would be
// predicted to the other thread's caller, and miss (2 ns against 10).
#pragma once

#include <cstddef>
#include <cstdint>

#include "threads/thread.h"

extern "C" {
/// Where a new context starts: calls sterna_context_main(). The bottom of every stack.
void sterna_context_entry() noexcept;
/// The bottom function of every context that make_context() made, which never returns: `context` is
/// the SavedContext that was loaded; on x86-64 `starter` is the stack pointer of who loaded it.
[[gnu::visibility("hidden")]] void sterna_context_main(void* context, void* starter) noexcept;
/// Its end, if the bottom function leaves that to another one. Never returns.
[[gnu::visibility("hidden")]] void sterna_context_end(void* context) noexcept;
/// Where a context would go on that has ended.
[[noreturn, gnu::visibility("hidden")]] void sterna_context_ended() noexcept;
}

#if defined(__x86_64__)
#include "threads/context/context_x86_64.h"
#elif defined(__aarch64__)
#include "threads/context/context_aarch64.h"
#else
#error "no context switch for this processor: write context_<processor>.h and .S"
#endif
