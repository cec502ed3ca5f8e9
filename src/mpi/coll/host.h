// Collectives among the processes of a job that all live on one host with fewer processors: they
// meet in shared memory (gathering.h), and the last to come does the work of all. With messages, up
// a tree or in rounds, each step would wait until one certain process has its turn of a processor.
// Results are those of the schedules, bit by bit.
#pragma once

#include "mpi/coll/collectives.h"
#include "mpi/coll/enter.h"

namespace sterna::mpi {

struct RankState;

/// The job's processes outnumber the processors of the one host where all of them are; all see it
/// alike.
[[nodiscard]] bool is_crowded_host(const RankState& state) noexcept;
/// All members meet there; they all get the same answer.
[[nodiscard]] bool meets_on_host(const RankState& state, const Comm& comm) noexcept;
/// And such a reduction, which is_short(), is short enough.
[[nodiscard]] bool fits_on_host(const Reduction& r) noexcept;

// Blocking, with checked arguments. Results: what the entry point returns.
int meet_on_host_for_barrier(const Call& call) noexcept;
int meet_on_host_for_allreduce(const Call& call, const Reduction& r) noexcept;

}  // namespace sterna::mpi
