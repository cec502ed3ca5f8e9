// Which functions of the ABI do their work, and which only say that they do not: `sterna info
// --mpi`.
#pragma once

#include <span>

namespace sterna::mpi {

struct FunctionEntry {
  const char* name;  // "MPI_Send"
  bool is_implemented;
};

/// All functions, in the order of functions.def. Defined in a file that generate.py makes.
[[nodiscard]] std::span<const FunctionEntry> functions() noexcept;

}  // namespace sterna::mpi
