// What every entry point of a collective does, in all its forms: find the communicator, check the
// arguments, build the schedule, and run it, start it or keep it.
#pragma once

#include <mpi.h>

#include "mpi/coll/collectives.h"
#include "mpi/errors/error.h"

namespace sterna::mpi {

enum class Form : std::uint8_t {
  blocking,
  nonblocking,  // MPI_Ibarrier and so on.
  persistent,   // MPI_Barrier_init and so on.
};

/// Which function of MPI was called.
struct Entry {
  const char* function;
  Form form = Form::blocking;
  MPI_Request* request = nullptr;  // Of the other forms.
};

int enter_barrier(const Entry& entry, MPI_Comm comm) noexcept;
int enter_bcast(const Entry& entry, const Data& data, int root, MPI_Comm comm) noexcept;
int enter_gather(const Entry& entry, const Data& from, const Data& into, int root,
                 MPI_Comm comm) noexcept;
int enter_gatherv(const Entry& entry, const Data& from, const Parts& into, int root,
                  MPI_Comm comm) noexcept;
int enter_scatter(const Entry& entry, const Data& from, const Data& into, int root,
                  MPI_Comm comm) noexcept;
int enter_scatterv(const Entry& entry, const Parts& from, const Data& into, int root,
                   MPI_Comm comm) noexcept;
int enter_allgather(const Entry& entry, const Data& from, const Parts& into,
                    MPI_Comm comm) noexcept;
int enter_alltoall(const Entry& entry, const Parts& from, const Parts& into,
                   MPI_Comm comm) noexcept;
int enter_reduce(const Entry& entry, const Reduction& reduction, int root, MPI_Comm comm) noexcept;
int enter_allreduce(const Entry& entry, const Reduction& reduction, MPI_Comm comm) noexcept;
int enter_reduce_scatter(const Entry& entry, const Reduction& reduction, const Counts& counts,
                         MPI_Comm comm) noexcept;
int enter_reduce_scatter_block(const Entry& entry, const Reduction& reduction,
                               MPI_Comm comm) noexcept;
int enter_scan(const Entry& entry, const Reduction& reduction, MPI_Comm comm) noexcept;
int enter_exscan(const Entry& entry, const Reduction& reduction, MPI_Comm comm) noexcept;
int enter_neighbor_allgather(const Entry& entry, const Data& from, const Parts& into,
                             MPI_Comm comm) noexcept;
int enter_neighbor_alltoall(const Entry& entry, const Parts& from, const Parts& into,
                            MPI_Comm comm) noexcept;

/// Takes the schedule.
int perform(const Call& call, const Entry& entry, Schedule* schedule) noexcept;

/// Runs, starts or keeps what `build(builder)` appends. Used by the functions above and by those
/// that make communicators. Result: what the entry point returns.
template <typename Build>
int run_collective(const Call& call, const Entry& entry, Build&& build) noexcept {
  RankState& state = call.state;
  Schedule* schedule = create_schedule(state, *call.comm, call.comm->next_collective_tag());
  if (schedule == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  Builder builder{state, *schedule};
  build(builder);
  const int error = builder.finish();
  if (error != MPI_SUCCESS) {
    destroy_schedule(state, schedule);
    return call.fail_plain(error);
  }
  return perform(call, entry, schedule);
}
}  // namespace sterna::mpi
