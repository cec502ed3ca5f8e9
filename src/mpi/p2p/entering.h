// The way into an entry point of MPI that has a communicator: the scope of the runtime, the
// caller's state, the communicator, and the work only if all is well. For messages and collectives.
#pragma once

#include "mpi/call_scope.h"
#include "mpi/p2p/message.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {

/// Enters `function`: `check(call)` finds the communicator; what it returns, if it is an error, or
/// else what `work(call)` returns, the entry point returns.
template <typename Check, typename Work>
[[gnu::always_inline]] inline int enter(const char* function, Check&& check, Work&& work) noexcept {
  const CallScope scope;
  Call call{state_of_caller(function), function};
  if (const int error = check(call)) {
    return error;
  }
  return work(call);
}

/// As above, for what starts or ends a message of `comm`; the rank may move first.
template <typename Work>
[[gnu::always_inline]] inline int enter_message(const char* function, MPI_Comm comm,
                                                Work&& work) noexcept {
  return enter(
      function,
      [comm](Call& call) {
        runtime::safe_point(*call.state.context);
        return check_comm(call, comm);
      },
      work);
}

/// The place for a new request.
[[nodiscard]] inline int check_place(const Call& call, const MPI_Request* request) noexcept {
  return request != nullptr ? MPI_SUCCESS
                            : call.fail(MPI_ERR_ARG, "the address of the request is null");
}

}  // namespace sterna::mpi
