// The answer of functions that are not implemented.
#include "mpi/api/unsupported.h"

#include "mpi/call_scope.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"
#include "mpi/rank_state.h"

namespace sterna::mpi {

int report_unsupported(const char* function, MPI_Comm comm) noexcept {
  const CallScope scope;
  RankState* state = find_state();
  if (state == nullptr || state->phase.load(std::memory_order_relaxed) != Phase::running) {
    return MPI_ERR_UNSUPPORTED_OPERATION;
  }
  return Call{*state, function, find_comm(*state, comm)}.fail(
      MPI_ERR_UNSUPPORTED_OPERATION,
      "this function is not implemented (sterna info --mpi lists those)");
}

}  // namespace sterna::mpi
