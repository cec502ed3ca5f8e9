// The short way of a process: a blocking message of one packet, from the entry point straight into
// the driver and out of it (net/matching/short.cc); one that is not waited for, without what only
// large or unusual ones need. Where one thread calls (below MPI_THREAD_MULTIPLE, or until another
// one does, progress/one_caller.h) without locks. Whatever is unusual is refused before anything
// has happened, and the entry point goes on as usual.
#pragma once

#include <atomic>

#include <mpi.h>

#include "mpi/p2p/message.h"
#include "progress/one_caller.h"

namespace sterna::mpi {

/// Between MPI_Init and MPI_Finalize of a process: its state; else null. Relaxed: written by the
/// thread that calls those two, before and after all others.
inline constinit std::atomic<RankState*> short_way_state{nullptr};
/// Null: the way is not open.
[[nodiscard]] inline RankState* short_way() noexcept {
  return short_way_state.load(std::memory_order_relaxed);
}
/// Who takes it alone, at MPI_THREAD_MULTIPLE, until it is shared; null: threads take turns, or
/// several have called from the begin on (RankState::is_multiple). Constant between MPI_Init and
/// MPI_Finalize.
inline constinit progress::OneCaller* short_way_caller = nullptr;

/// MPI_Send, complete. False: not here, not now.
[[nodiscard]] bool try_send_short(RankState& state, const Side& side, MPI_Comm comm) noexcept;

/// MPI_Send and MPI_Recv of who is no rank's own thread in a node, complete: the short way or the
/// usual one. Each entry point goes on there at once, with nothing on the stack.
[[nodiscard]] int send_in_process(void* buffer, int count, MPI_Datatype datatype, int peer, int tag,
                                  MPI_Comm comm) noexcept;
extern "C" [[gnu::visibility("hidden")]] int sterna_mpi_receive_in_process(
    void* buffer, int count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
    MPI_Status* status) noexcept;

/// MPI_Isend and MPI_Irecv of the same, in the same way: a message that is complete at once, a
/// receive of few bytes, or what is usual.
[[nodiscard]] int isend_in_process(void* buffer, int count, MPI_Datatype datatype, int peer,
                                   int tag, MPI_Comm comm, MPI_Request* request) noexcept;
[[nodiscard]] int isend_c_in_process(void* buffer, MPI_Count count, MPI_Datatype datatype, int peer,
                                     int tag, MPI_Comm comm, MPI_Request* request) noexcept;
[[nodiscard]] int ireceive_in_process(void* buffer, int count, MPI_Datatype datatype, int peer,
                                      int tag, MPI_Comm comm, MPI_Request* request) noexcept;
[[nodiscard]] int ireceive_c_in_process(void* buffer, MPI_Count count, MPI_Datatype datatype,
                                        int peer, int tag, MPI_Comm comm,
                                        MPI_Request* request) noexcept;

/// Whether a receive with these arguments, which are right then, may go the short way.
[[nodiscard]] bool is_plain_receive(RankState& state, const Side& side, MPI_Comm comm) noexcept;

/// Whether one side of an exchange, which is right then, has nothing to do.
[[nodiscard]] bool is_plain_nothing(const Side& side) noexcept;

/// MPI_Recv: what the entry point returns, if the message comes soon or, beside other threads, at
/// all; kNotDirect: not here, not now. Switches.
[[nodiscard]] int try_receive_short(RankState& state, const Side& side, MPI_Comm comm,
                                    MPI_Status* status) noexcept;

}  // namespace sterna::mpi
