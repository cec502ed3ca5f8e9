// Starts this executable again inside this process, at addresses that are the same in every process
// of this system: for containers whose rules forbid personality(2).
#pragma once

namespace sterna::program {

/// Whether this executable lies where exec_at_fixed_place puts it.
[[nodiscard]] bool is_at_fixed_place() noexcept;

/// Does in user space what execve does without address randomisation: maps the executable and its
/// dynamic loader at fixed places, bars all room above them, so that the kernel places libraries
/// just below, and enters the loader with a fresh stack of arguments. The first copy stays mapped,
/// and is never run again. `mark` (NAME=value) is added to the environment. At the start of main,
/// before threads. Returns only if it cannot be done here (a 39-bit address space, ulimit -v, an
/// unlimited stack, which lets the kernel place libraries from below), and then leaves nothing
/// mapped.
void exec_at_fixed_place(char** arguments, char** environment, const char* mark) noexcept;

}  // namespace sterna::program
