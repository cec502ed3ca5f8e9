// The context switch of x86-64 (System V ABI); include context.h.
//
// Inline, not a function: the call would leave a return address in the processor's return predictor
// that no return ever takes, and every later return would miss. So the compiler saves what it needs
// of the callee-saved registers itself (they are clobbers); only %rbp, which it may not give up, is
// ours. Nothing is pushed: the red zone of the function around it stays as it is, and the only line
// that the switch itself touches is that of the descriptor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "threads/thread.h"

// Those that only code for AVX-512 knows: it could keep something in them over the switch.
#if defined(__AVX512F__)
#define STERNA_CONTEXT_CLOBBERS_AVX512                                                          \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",   \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", \
      "k6", "k7"
#else
#define STERNA_CONTEXT_CLOBBERS_AVX512
#endif

namespace sterna::threads {

/// Saves the current context and continues `load`, to which it hands `message`: in a register,
/// because going through memory is what a switch waits for. Returns the message of whoever
/// continues `save`, and in `former` its own context, if it came here by this or by
/// leave_context_for(); else there may be anything. A context that begins finds the address of
/// `load` in %rsi, and the stack pointer of who switched there in %rax.
[[gnu::always_inline]] inline void* switch_context(SavedContext& save, const SavedContext& load,
                                                   void* message, SavedContext*& former) noexcept {
  SavedContext* from = &save;
  const SavedContext* to = &load;
  asm volatile(
      "movq 0(%%rsi), %%r8\n\t"  // Not to %rsp at once: that is slower by 2 cycles.
      "movq 8(%%rsi), %%r9\n\t"
      "movq 16(%%rsi), %%rcx\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, 0(%%rdi)\n\t"
      "movq %%rbp, 8(%%rdi)\n\t"
      "movq %%rax, 16(%%rdi)\n\t"
      "movq %%rsp, %%rax\n\t"
      "movq %%r8, %%rsp\n\t"
      "movq %%r9, %%rbp\n\t"
      "jmp *%%rcx\n\t"
      ".p2align 4\n"
      "1:\n\t"
      : "+D"(from), "+S"(to), "+d"(message)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "cc", "memory" STERNA_CONTEXT_CLOBBERS_AVX512);
  former = from;
  return message;
}
[[gnu::always_inline]] inline void* switch_context(SavedContext& save, const SavedContext& load,
                                                   void* message) noexcept {
  SavedContext* former;
  return switch_context(save, load, message, former);
}

/// The last switch away from the stack of `ended`, of which nothing is saved: a third of what a
/// switch stores, and no register is kept for it. Who continues it all the same is told.
[[noreturn, gnu::always_inline]] inline void leave_context(SavedContext& ended,
                                                           const SavedContext& load,
                                                           void* message) noexcept {
  ended.code = reinterpret_cast<void*>(sterna_context_ended);
  asm volatile(
      "movq 0(%%rsi), %%r8\n\t"
      "movq 8(%%rsi), %%r9\n\t"
      "movq 16(%%rsi), %%rcx\n\t"
      "movq %%r8, %%rsp\n\t"
      "movq %%r9, %%rbp\n\t"
      "jmp *%%rcx\n\t"
      :
      : "S"(&load), "d"(message)
      : "memory");
  __builtin_unreachable();
}

/// leave_context() of who guesses where the stack pointer of `load` is. If it is `stack`, what
/// comes next does not wait until that has come back from memory: the processor goes on with the
/// guess.
[[noreturn, gnu::always_inline]] inline void leave_context_for(SavedContext& ended,
                                                               const SavedContext& load,
                                                               void* message,
                                                               void* stack) noexcept {
  ended.code = reinterpret_cast<void*>(sterna_context_ended);
  asm volatile(
      "movq 8(%%rsi), %%r9\n\t"
      "movq 16(%%rsi), %%rcx\n\t"
      "cmpq 0(%%rsi), %%rax\n\t"
      "jne 2f\n"
      "1:\n\t"
      "movq %%rax, %%rsp\n\t"
      "movq %%r9, %%rbp\n\t"
      "jmp *%%rcx\n"
      "2:\n\t"
      "movq 0(%%rsi), %%rax\n\t"
      "jmp 1b\n\t"
      :
      : "D"(&ended), "S"(&load), "d"(message), "a"(stack)
      : "memory");
  __builtin_unreachable();
}

/// Goes on in `function`, which does not return, as if called by nobody: not a call, see above.
[[noreturn, gnu::always_inline]] inline void jump_for_good(void (*function)(void*) noexcept,
                                                           void* argument) noexcept {
  asm volatile(
      "andq $-16, %%rsp\n\t"
      "pushq $0\n\t"
      "jmp *%0\n\t"
      :
      : "r"(function), "D"(argument)
      : "memory");
  __builtin_unreachable();
}

/// A context that begins with `code`, as if called, at the bottom of the stack below `top` (aligned
/// to 16). Touches the stack only when it is continued.
inline void make_context(SavedContext& context, void* top,
                         void (*code)() noexcept = sterna_context_entry) noexcept {
  context.stack = static_cast<std::byte*>(top) - sizeof(void*);  // For the return address.
  context.frame = nullptr;
  context.code = reinterpret_cast<void*>(code);
}

}  // namespace sterna::threads
