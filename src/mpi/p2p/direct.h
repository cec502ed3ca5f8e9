// Short messages between ranks of one worker, without leaving the rank's thread pointer: no
// RuntimeScope, so nothing of it may touch thread-local storage (errno, malloc, exceptions, logs).
// Whatever is unusual is refused before anything has happened, and the entry point goes on as
// usual: wrong arguments, derived types, MPI_PROC_NULL, MPI_THREAD_MULTIPLE, collectives under way,
// a rank that shall move, process mode.
#pragma once

#include <mpi.h>

#include "mpi/p2p/message.h"

namespace sterna::mpi {

inline constexpr std::uint64_t kDirectBytesMax = 1024;

/// MPI_Send, complete. False: not here, not now.
[[nodiscard]] bool try_send_direct(const Side& side, MPI_Comm comm) noexcept;

/// MPI_Recv. False: not here, not now; else `result` is what the entry point returns. Switches.
[[nodiscard]] bool try_receive_direct(const char* function, const Side& side, MPI_Comm comm,
                                      MPI_Status* status, int& result) noexcept;

}  // namespace sterna::mpi
