// What is written in assembly for the loader: entering a program, and reading a thread-local
// offset.
#pragma once

#include <cstdint>

extern "C" {

/// Loads the stack pointer, clears what the ABI wants cleared, jumps to the entry point. The rank's
/// thread pointer is loaded already.
[[noreturn]] void sterna_program_enter(void* stack_pointer, std::uintptr_t entry) noexcept;

/// Resolver of TLS descriptors whose offset from the thread pointer is known. Has a calling
/// convention of its own: only its address is used.
void sterna_program_tls_descriptor() noexcept;
}
