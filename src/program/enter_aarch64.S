// Entering a program, and TLS descriptors, on aarch64.
#if defined(__aarch64__)

        .text

// void sterna_program_enter(void* stack_pointer, uintptr_t entry)
// x0 is a function to register with atexit (none); the frame pointer chain ends here.
        .globl  sterna_program_enter
        .type   sterna_program_enter, %function
        .p2align 4
sterna_program_enter:
        .cfi_startproc
        .cfi_undefined x30
        mov     sp, x0
        mov     x16, x1
        mov     x0, xzr
        mov     x29, xzr
        mov     x30, xzr
        br      x16
        .cfi_endproc
        .size   sterna_program_enter, . - sterna_program_enter

// x0: the descriptor {this function, offset}. Returns the offset in x0, keeps all else.
        .globl  sterna_program_tls_descriptor
        .type   sterna_program_tls_descriptor, %function
        .p2align 4
sterna_program_tls_descriptor:
        .cfi_startproc
        ldr     x0, [x0, #8]
        ret
        .cfi_endproc
        .size   sterna_program_tls_descriptor, . - sterna_program_tls_descriptor

#endif
        .section .note.GNU-stack, "", %progbits
