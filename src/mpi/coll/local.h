// Collectives among ranks that all live in this process and cannot leave it (a job of one node):
// they meet (threads/sync/meeting.h), and the last to come does the work of all in the memory of
// all. No message is sent. Results are those of the schedules, bit by bit.
#pragma once

#include "mpi/coll/collectives.h"
#include "mpi/coll/enter.h"

namespace sterna::mpi {

struct LocalMeeting;

/// Whether all members of the communicator meet here; they all get the same answer.
[[nodiscard]] bool meets_here(const RankState& state, const Comm& comm) noexcept;
/// And such a reduction is short enough, of a kind that any member can compute.
[[nodiscard]] bool is_short(const Comm& comm, const Reduction& r) noexcept;
/// The same for `bytes` that one member gives to all.
[[nodiscard]] bool is_short(const Comm& comm, const Data& data) noexcept;

/// The tree of allreduce.cc's recursive doubling: pairs of neighbours first, lower op upper; of a
/// number that is no power of two, the first pairs are made one before. `values` has one for each
/// rank, and the result is at the returned index.
std::size_t reduce_doubling(const Reduction& r, std::byte* values, std::uint64_t bytes,
                            std::size_t size) noexcept;

// Blocking, with checked arguments. Results: what the entry point returns. Switch.
int meet_for_barrier(const Call& call) noexcept;
int meet_for_allreduce(const Call& call, const Reduction& r) noexcept;
int meet_for_reduce(const Call& call, const Reduction& r, int root) noexcept;
int meet_for_bcast(const Call& call, const Data& data, int root) noexcept;

/// The rank meets nobody in this communicator any more.
void leave_meeting(Comm& comm) noexcept;

}  // namespace sterna::mpi
