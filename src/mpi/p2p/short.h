// The short way of a process of which one thread calls (below MPI_THREAD_MULTIPLE, or until another
// one does, progress/one_caller.h): a blocking message of one packet, from the
// entry point straight into the driver and out of it (net/matching/short.cc); one that is not
// waited for, without what only large or unusual ones need. Whatever is unusual is refused before
// anything has happened, and the entry point goes on as usual.
#pragma once

#include <atomic>

#include <mpi.h>

#include "mpi/p2p/message.h"
#include "progress/one_caller.h"

namespace sterna::mpi {

/// Between MPI_Init and MPI_Finalize of such a process: its state; else null. Relaxed: written by
/// the thread that calls those two, and, by whoever shares, where no other is inside; who may see
/// an old value asks `short_way_caller` first.
inline constinit std::atomic<RankState*> short_way_state{nullptr};
/// Null: the way is not open.
[[nodiscard]] inline RankState* short_way() noexcept {
  return short_way_state.load(std::memory_order_relaxed);
}
/// Who may take it, at MPI_THREAD_MULTIPLE; else null. Constant between MPI_Init and MPI_Finalize.
inline constinit progress::OneCaller* short_way_caller = nullptr;

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
