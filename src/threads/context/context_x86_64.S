// The bottom frame of every stack on x86-64: see context_x86_64.h.
#if defined(__x86_64__)
        .text

// An undefined return address tells unwinders and debuggers to stop here.
        .globl  sterna_context_entry
        .hidden sterna_context_entry
        .hidden sterna_context_main
        .type   sterna_context_entry, @function
        .p2align 4
sterna_context_entry:
        .cfi_startproc
        .cfi_undefined %rip
        movq    %rsi, %rdi              // The context that is loaded; its %rbp is 0.
        movq    %rax, %rsi              // The stack pointer of who switched here.
        // With the frame of sterna_context_main a line: else a yield of two threads takes 0.6 ns more.
        subq    $32, %rsp
        .cfi_adjust_cfa_offset 32
        // Not a call, whose return would be predicted for ever and never come: the address of what
        // follows is put where a call would, for unwinders.
        leaq    1f(%rip), %rax
        movq    %rax, (%rsp)
        jmp     sterna_context_main
1:      ud2
        .cfi_endproc
        .size   sterna_context_entry, . - sterna_context_entry

        .section .note.GNU-stack, "", @progbits
#endif
