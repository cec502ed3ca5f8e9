// The context switch of x86-64 (System V ABI): see context.h for what it does and does not save.
#if defined(__x86_64__)
        .text

// void sterna_context_switch(void** save /* rdi */, void* load /* rsi */)
        .globl  sterna_context_switch
        .hidden sterna_context_switch
        .type   sterna_context_switch, @function
        .p2align 5
sterna_context_switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        movq    %rsp, (%rdi)
        // From here on it is the other stack, of the same shape: the unwind rules hold on both.
        movq    %rsi, %rsp
        // The jump's target first, so that the front end knows it early.
        movq    48(%rsp), %rcx
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        jmp     *%rcx
        .cfi_endproc
        .size   sterna_context_switch, . - sterna_context_switch

// The bottom frame: an undefined return address tells unwinders and debuggers to stop here.
        .globl  sterna_context_entry
        .hidden sterna_context_entry
        .type   sterna_context_entry, @function
        .p2align 4
sterna_context_entry:
        .cfi_startproc
        .cfi_undefined %rip
        movq    %r12, %rdi
        callq   *%rbx
        ud2
        .cfi_endproc
        .size   sterna_context_entry, . - sterna_context_entry

        .section .note.GNU-stack, "", @progbits
#endif
