// Making communicators: what the ranks agree on, and the objects that come of it.
#pragma once

#include <mpi.h>

#include "mpi/coll/enter.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"

namespace sterna::mpi {

/// All results are what the entry point returns; *made is null where this rank is no member.

/// Form::nonblocking: *made may be used when the request has ended.
int duplicate_comm(Call& call, const Entry& entry, Comm** made) noexcept;
int split_comm(Call& call, int color, int key, Comm** made) noexcept;
/// Of an intercommunicator. Null also where the other side has nobody of this color.
int split_inter(Call& call, int color, int key, Comm** made) noexcept;
/// Collective over call.comm; all give the same group, or disjoint ones.
int create_from_group(Call& call, Group& group, Comm** made) noexcept;
/// Collective over the group only; `tag` tells calls apart.
int create_among_group(Call& call, Group& group, int tag, Comm** made) noexcept;
/// `call.comm` is the local communicator; the leaders meet in `bridge`.
struct Meeting {
  int local_leader;
  Comm* bridge;  // Counts at the leaders only.
  int remote_leader;
  int tag;
};
int create_inter(Call& call, const Meeting& meeting, Comm** made) noexcept;
int merge_inter(Call& call, bool is_high, Comm** made) noexcept;

/// Ends a communicator that a program frees: deletes its attributes, drops the reference.
int free_comm(RankState& state, Comm* comm) noexcept;

}  // namespace sterna::mpi
