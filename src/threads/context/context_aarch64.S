// The context switch of AArch64 (AAPCS64): see context.h for what it does not save.
#if defined(__aarch64__)
        .text

// void* sterna_context_switch(SavedContext* save /* x0 */, const SavedContext* load /* x1 */,
//                             void* message /* x2 */)
// Not hidden: libmpi_abi.so, where ranks leave for one another (threads/direct.h), takes it from
// libsterna.so.
        .globl  sterna_context_switch
        .type   sterna_context_switch, %function
        .p2align 5
sterna_context_switch:
        .cfi_startproc
        sub     sp, sp, #160
        .cfi_adjust_cfa_offset 160
        stp     x19, x20, [sp, #0]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        // The ABI keeps the low halves of v8 .. v15 across calls.
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x0]
        // From here on it is the other stack, of the same shape.
        ldr     x9, [x1]
        mov     sp, x9
        ldp     x29, x16, [sp, #80]
        ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #160
        .cfi_adjust_cfa_offset -160
        .cfi_restore x29
        .cfi_register x30, x16
        mov     x30, x16
        mov     x0, x2
        br      x16
        .cfi_endproc
        .size   sterna_context_switch, . - sterna_context_switch

// The bottom frame: an undefined return address tells unwinders and debuggers to stop here.
        .globl  sterna_context_entry
        .hidden sterna_context_entry
        .hidden sterna_context_main
        .type   sterna_context_entry, %function
        .p2align 4
sterna_context_entry:
        .cfi_startproc
        .cfi_undefined x30
        mov     x0, x19
        // Not a call, whose return would be predicted for ever and never come.
        adr     x30, 1f
        b       sterna_context_main
1:      brk     #1
        .cfi_endproc
        .size   sterna_context_entry, . - sterna_context_entry

#endif
        .section .note.GNU-stack, "", %progbits
