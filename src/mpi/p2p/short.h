// The short way of a process below MPI_THREAD_MULTIPLE: a blocking message of one packet, from the
// entry point straight into the driver and out of it (net/matching/short.cc); one that is not
// waited for, without what only large or unusual ones need. Whatever is unusual is refused before
// anything has happened, and the entry point goes on as usual.
#pragma once

#include <mpi.h>

#include "mpi/p2p/message.h"

namespace sterna::mpi {

/// Between MPI_Init and MPI_Finalize of such a process: its state; else null. Written by the thread
/// that calls those two, read by the same one or by threads that take turns with it.
inline constinit RankState* short_way_state = nullptr;

/// MPI_Send, complete. False: not here, not now.
[[nodiscard]] bool try_send_short(RankState& state, const Side& side, MPI_Comm comm) noexcept;

/// MPI_Isend of a message that is complete at once. False: not here, not now.
[[nodiscard]] bool try_isend_short(RankState& state, const Side& side, MPI_Comm comm,
                                   MPI_Request* request) noexcept;

/// MPI_Irecv of few bytes. False: not here, not now.
[[nodiscard]] bool try_ireceive_short(RankState& state, const Side& side, MPI_Comm comm,
                                      MPI_Request* request) noexcept;

/// Whether a receive with these arguments, which are right then, may go the short way.
[[nodiscard]] bool is_plain_receive(RankState& state, const Side& side, MPI_Comm comm) noexcept;

/// MPI_Recv, complete, if the message comes soon. False: not here, not now.
[[nodiscard]] bool try_receive_short(RankState& state, const Side& side, MPI_Comm comm,
                                     MPI_Status* status) noexcept;

}  // namespace sterna::mpi
