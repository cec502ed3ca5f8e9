// How an entry point begins: on the runtime's thread pointer, between MPI_Init and MPI_Finalize,
// with a Call through which it reports.
#pragma once

#include "mpi/call_scope.h"
#include "mpi/errors/error.h"
#include "mpi/rank_state.h"

namespace sterna::mpi {

/// Runs the body with the Call of this function. The error handler is that of MPI_COMM_SELF unless
/// the body says otherwise.
template <typename Body>
int enter(const char* function, Body body) noexcept {
  const CallScope scope;
  const Call call{state_of_caller(function), function};
  return body(call);
}

}  // namespace sterna::mpi
