// The context switch of x86-64 (System V ABI); include context.h.
//
// Inline, not a function: the call would leave a return address in the processor's return predictor
// that no return ever takes, and every later return would miss. So the compiler saves what it needs
// of the callee-saved registers itself (they are clobbers); only %rbp, which it may not give up, is
// ours.
#pragma once

#include <cstdint>

namespace sterna::threads {

/// Saves the current context to *save and continues `load`, to which it hands `message`: in a
/// register, because going through memory is what a switch waits for. Returns the message of
/// whoever continues *save.
[[gnu::always_inline]] inline void* switch_context(void** save, void* load,
                                                   void* message) noexcept {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // Past the red zone of this function.
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rsi, %%rsp\n\t"
      "popq %%rcx\n\t"
      "jmp *%%rcx\n\t"
      ".p2align 4\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp\n\t"
      : "+D"(save), "+S"(load), "+d"(message)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "cc", "memory");
  return message;
}

/// A context that calls function(argument) on the stack below `top` (aligned to 16). The function
/// must not return.
inline void* make_context(void* top, void (*function)(void*), void* argument) noexcept {
  auto* const words = static_cast<std::uintptr_t*>(top) - 4;
  words[0] = reinterpret_cast<std::uintptr_t>(&sterna_context_entry);
  words[1] = reinterpret_cast<std::uintptr_t>(argument);
  words[2] = reinterpret_cast<std::uintptr_t>(function);
  words[3] = 0;
  return words;
}

}  // namespace sterna::threads
