// The command line of `sterna bench`.
#pragma once

#include <span>

namespace sterna::bench {

/// `arguments` follow the name. Prints help and errors itself; returns the exit code: 0 if every
/// figure meets its target, 1 if not, 2 for a wrong command line.
int bench_command(std::span<char* const> arguments);

}  // namespace sterna::bench
