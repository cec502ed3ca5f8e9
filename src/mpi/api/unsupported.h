// What the entry points of functions that are not implemented call.
#pragma once

#include <mpi.h>

namespace sterna::mpi {

/// Reports MPI_ERR_UNSUPPORTED_OPERATION through the handler of the communicator and returns it.
/// Outside of the job's life it returns the class alone. May switch.
int report_unsupported(const char* function, MPI_Comm comm) noexcept;

}  // namespace sterna::mpi
