// Entering a program, and TLS descriptors, on x86-64.
#if defined(__x86_64__)

        .text

// void sterna_program_enter(void* stack_pointer, uintptr_t entry)
// The psABI: %rdx is a function to register with atexit (none), %rbp is zero, the rest undefined.
        .globl  sterna_program_enter
        .type   sterna_program_enter, @function
        .p2align 4
sterna_program_enter:
        .cfi_startproc
        .cfi_undefined rip
        movq    %rdi, %rsp
        xorl    %edx, %edx
        xorl    %ebp, %ebp
        jmpq    *%rsi
        .cfi_endproc
        .size   sterna_program_enter, . - sterna_program_enter

// %rax: the descriptor {this function, offset}. Returns the offset in %rax, keeps all else.
        .globl  sterna_program_tls_descriptor
        .type   sterna_program_tls_descriptor, @function
        .p2align 4
sterna_program_tls_descriptor:
        .cfi_startproc
        movq    8(%rax), %rax
        ret
        .cfi_endproc
        .size   sterna_program_tls_descriptor, . - sterna_program_tls_descriptor

#endif
        .section .note.GNU-stack, "", @progbits
