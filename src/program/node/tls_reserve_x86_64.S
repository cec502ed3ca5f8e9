// Room for the thread-local variables of ranks' programs, just below the thread pointer of every thread
// of the executables that run ranks: the code of a program has its offsets from there built in.
#if defined(__x86_64__)

// Linkers put .tcommon last, so nothing of the host comes between the room and the thread pointer. Aligned
// to a page, as is then the thread pointer of every kernel thread, so that variables of a program which ask
// for that have it in the threads that ranks create.
        .section .tcommon, "awT", @nobits
        .p2align 12
        .globl  sterna_program_tls_reserve
        .type   sterna_program_tls_reserve, @object
        .size   sterna_program_tls_reserve, 65536
sterna_program_tls_reserve:
        .zero   65536

#endif
        .section .note.GNU-stack, "", @progbits
