// The bottom frame of every stack on x86-64: see context_x86_64.h.
#if defined(__x86_64__)
        .text

// An undefined return address tells unwinders and debuggers to stop here.
        .globl  sterna_context_entry
        .hidden sterna_context_entry
        .type   sterna_context_entry, @function
        .p2align 4
sterna_context_entry:
        .cfi_startproc
        .cfi_undefined %rip
        xorl    %ebp, %ebp
        popq    %rdi                    // The argument; then the function.
        popq    %rbx
        // Not a call, whose return would be predicted for ever and never come: the address of what
        // follows is pushed, for unwinders. Aligned to 16 before it.
        leaq    1f(%rip), %rax
        subq    $8, %rsp
        pushq   %rax
        jmpq    *%rbx
1:      ud2
        .cfi_endproc
        .size   sterna_context_entry, . - sterna_context_entry

        .section .note.GNU-stack, "", @progbits
#endif
