// Room for the thread-local variables of ranks' programs, just above the thread pointer of every thread
// of the executables that run ranks: the code of a program has its offsets from there built in.
#if defined(__aarch64__)

// Must be the first thread-local section that is linked: name this file before all others.
        .section .tdata, "awT", @progbits
        .p2align 6
        .globl  sterna_program_tls_reserve
        .type   sterna_program_tls_reserve, %object
        .size   sterna_program_tls_reserve, 65536
sterna_program_tls_reserve:
        .zero   65536

#endif
        .section .note.GNU-stack, "", %progbits
