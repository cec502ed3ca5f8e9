// Communicators: creation, lookup, end, context numbers.
#include "mpi/comm/comm.h"

#include <cstring>

#include "mpi/coll/local.h"
#include "mpi/errors/error.h"
#include "mpi/p2p/buffered.h"
#include "mpi/topo/topology.h"

namespace sterna::mpi {

Comm* find_comm_slow(RankState& state, MPI_Comm handle) noexcept {
  if (handle == MPI_COMM_SELF) {
    return state.self;
  }
  return is_object(handle, ObjectKind::communicator) ? reinterpret_cast<Comm*>(handle) : nullptr;
}

bool come_near(RankState& state, MPI_Comm handle) noexcept {
  Comm* const comm = find_comm(state, handle);
  if (comm != nullptr) {
    state.near = near_of(handle, *comm);
  }
  return comm != nullptr;
}

MPI_Comm handle_of(RankState& state, Comm* comm) noexcept {
  if (comm == state.world) {
    return MPI_COMM_WORLD;
  }
  return comm == state.self ? MPI_COMM_SELF : reinterpret_cast<MPI_Comm>(comm);
}

Comm* create_comm(RankState& state, Group* group, std::uint32_t context,
                  const Comm* parent) noexcept {
  Comm* comm = group == nullptr ? nullptr : state.create<Comm>();
  if (comm == nullptr) {
    release_group(state, group);
    return nullptr;
  }
  comm->group = group;
  comm->rank = group->rank;
  comm->size = group->size;
  comm->context = context;
  if (parent != nullptr) {
    comm->errhandler = parent->errhandler;
    retain_handler(comm->errhandler);
  }
  return comm;
}

void release_comm(RankState& state, Comm* comm) noexcept {
  if (comm == nullptr || !comm->release()) {
    return;
  }
  comm->kind = ObjectKind::freed;
  if (state.near.comm == comm && state.world != comm) {
    (void)come_near(state, MPI_COMM_WORLD);
  }
  leave_meeting(*comm);
  // Nobody else knows its number, and of its own calls none is under way: they have references.
  if (comm->size == 1 && !comm->is_inter() && !comm->is_predefined) {
    return_context(state, comm->context);
  }
  release_group(state, comm->group);
  release_group(state, comm->remote);
  release_comm(state, comm->local);
  release_handler(state, comm->errhandler);
  destroy_topology(state, comm->topology);
  release_buffers(state, comm->buffers);
  state.destroy(comm);
}

// The number of a communicator is (count of its leader * ranks of the job + leader): no two ranks
// give the same, and nobody needs to ask. The first of each rank is its MPI_COMM_SELF;
// MPI_COMM_WORLD takes the second of rank 0.
std::uint32_t reserve_context(RankState& state) noexcept {
  StateGuard guard{state};
  const std::uint64_t number =
      std::uint64_t{state.next_context} * state.context->size + state.context->rank;
  if (number * kContextsPerComm > 0xffff'fff0) {
    return 0;
  }
  ++state.next_context;
  return static_cast<std::uint32_t>(number * kContextsPerComm) + kContextsPerComm;
}

void return_context(RankState& state, std::uint32_t context) noexcept {
  StateGuard guard{state};
  const std::uint64_t last =
      std::uint64_t{state.next_context - 1} * state.context->size + state.context->rank;
  if (context == static_cast<std::uint32_t>(last * kContextsPerComm) + kContextsPerComm) {
    --state.next_context;
  }
}

}  // namespace sterna::mpi
