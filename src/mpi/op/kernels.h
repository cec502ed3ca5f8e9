// The loops of the predefined reductions, for all basic types: a table that op.cc looks into.
#pragma once

#include "mpi/op/op.h"

namespace sterna::mpi {

/// The kernel of a predefined operation on a basic type; null: the standard does not define it. Of
/// MPI_REPLACE and MPI_NO_OP, which need no arithmetic, always null.
[[nodiscard]] Kernel find_kernel(MPI_Op op, Basic basic) noexcept;

}  // namespace sterna::mpi
