// The context switch: one commented assembly file per processor (context_<processor>.S).
//
// A context is a stack pointer; below it lie the callee-saved registers. The switch saves no
// floating-point control or status: sticky bits that differ between threads would cost 60 ns, and
// C code is not entitled to them across a call. It ends in an indirect jump, not in a return: a
// return would be predicted to the other thread's caller, and miss (2 ns against 10).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
/// Saves the current context to *save and continues `load`. Returns when somebody continues *save.
void sterna_context_switch(void** save, void* load) noexcept;
/// Where a new context starts: calls its function with its argument; the bottom of every stack.
void sterna_context_entry() noexcept;
}

namespace sterna::threads {

/// A context that calls function(argument) on the stack below `top` (aligned to 16). The function
/// must not return.
inline void* make_context(void* top, void (*function)(void*), void* argument) noexcept {
#if defined(__x86_64__)
  // As the switch restores it: r15 r14 r13 r12 rbx rbp, then where to jump.
  auto* words = static_cast<std::uintptr_t*>(top) - 9;
  words[3] = reinterpret_cast<std::uintptr_t>(argument);   // r12
  words[4] = reinterpret_cast<std::uintptr_t>(function);   // rbx
  words[5] = 0;                                            // rbp: the last frame
  words[6] = reinterpret_cast<std::uintptr_t>(&sterna_context_entry);
  return words;
#elif defined(__aarch64__)
  // x19 .. x28, x29, x30, d8 .. d15.
  auto* words = static_cast<std::uintptr_t*>(top) - 20;
  words[0] = reinterpret_cast<std::uintptr_t>(argument);   // x19
  words[1] = reinterpret_cast<std::uintptr_t>(function);   // x20
  words[10] = 0;                                           // x29: the last frame
  words[11] = reinterpret_cast<std::uintptr_t>(&sterna_context_entry);
  return words;
#else
#error "no context switch for this processor: write context_<processor>.S"
#endif
}

}  // namespace sterna::threads
