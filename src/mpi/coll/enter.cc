// Entry of the collectives that move data.
#include "mpi/coll/enter.h"

#include "mpi/coll/check.h"
#include "mpi/coll/host.h"
#include "mpi/coll/local.h"
#include "mpi/p2p/entering.h"
#include "mpi/request/request.h"
#include "mpi/request/status.h"
#include "mpi/topo/topology.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::mpi {

int check_entry(Call& call, const Entry& entry, MPI_Comm comm) noexcept {
  runtime::safe_point(*call.state.context);
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  return entry.form != Form::blocking ? check_place(call, entry.request) : MPI_SUCCESS;
}

int check_root(const Call& call, int root) noexcept {
  const Comm& comm = *call.comm;
  if (comm.is_inter() && (root == MPI_ROOT || root == MPI_PROC_NULL)) {
    return MPI_SUCCESS;
  }
  if (root >= 0 && static_cast<std::uint32_t>(root) < comm.peers().size) {
    return MPI_SUCCESS;
  }
  return call.fail(MPI_ERR_ROOT, "the root is %d, the communicator has ranks 0 to %d", root,
                   static_cast<int>(comm.peers().size) - 1);
}

int check_parts(const Call& call, const Parts& parts, int count) noexcept {
  if (parts.is_in_place()) {
    return call.fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed here");
  }
  if (parts.is_equal) {  // Without parts the buffer does not count.
    return check_data(call, count == 0 ? &parts : parts.buffer, parts.same_count, parts.type);
  }
  if (count > 0 && (parts.counts.values == nullptr || parts.displacements.values == nullptr)) {
    return call.fail(MPI_ERR_ARG, "the array of counts or of displacements is null");
  }
  for (int i = 0; i < count; ++i) {
    // Parts of a null buffer at displacements are absolute addresses: only the rest is checked.
    if (const int error = check_data(call, parts.buffer == nullptr ? &parts : parts.buffer,
                                     parts.count(i), parts.type_of(i))) {
      return error;
    }
  }
  return MPI_SUCCESS;
}

int perform(const Call& call, const Entry& entry, Schedule* schedule) noexcept {
  RankState& state = call.state;
  if (entry.form == Form::blocking) {
    const int error = run(state, *schedule);
    destroy_schedule(state, schedule);
    return call.pass(error);
  }
  Request* request = create_request(state, RequestType::schedule, call.comm);
  if (request == nullptr) {
    destroy_schedule(state, schedule);
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  request->schedule = schedule;
  MPI_Status empty{};
  set_empty(empty);
  request->status = empty;
  if (entry.form == Form::persistent) {
    request->is_persistent = true;
    request->is_active = false;
  } else {
    activate(state, *schedule);
  }
  *entry.request = handle_of(request);
  return MPI_SUCCESS;
}

int enter_barrier(const Entry& entry, MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (entry.form == Form::blocking && meets_here(call.state, *call.comm)) {
      return meet_for_barrier(call);
    }
    if (entry.form == Form::blocking && meets_on_host(call.state, *call.comm)) {
      return meet_on_host_for_barrier(call);
    }
    return run_collective(call, entry, [](Builder& b) { build_barrier(b); });
  });
}

int enter_bcast(const Entry& entry, const Data& data, int root, MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_root(call, root)) {
      return error;
    }
    if (root != MPI_PROC_NULL) {
      if (const int error = check(call, data)) {
        return error;
      }
    }
    if (entry.form == Form::blocking && meets_here(call.state, *call.comm) &&
        is_short(*call.comm, data)) {
      return meet_for_bcast(call, data, root);
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, data.type);
      build_bcast(b, data, root);
    });
  });
}

namespace {

// Gather and scatter alike: `whole` counts at the root, `own` at the others and, unless it is
// MPI_IN_PLACE, at the root of an intracommunicator.
int check_rooted(const Call& call, const Data& own, const Parts& whole, int root) noexcept {
  if (const int error = check_root(call, root)) {
    return error;
  }
  if (is_root(call, root)) {
    if (const int error = check_parts(call, whole, static_cast<int>(call.comm->peers().size))) {
      return error;
    }
    return call.comm->is_inter() || own.is_in_place() ? MPI_SUCCESS : check(call, own);
  }
  return is_leaf(call, root) ? check(call, own) : MPI_SUCCESS;
}

void hold_rooted(Builder& b, const Entry& entry, const Call& call, const Data& own,
                 const Parts& whole, int root) noexcept {
  if (is_root(call, root)) {
    hold(b, entry, whole, static_cast<int>(call.comm->peers().size));
  }
  if (!own.is_in_place() && (is_leaf(call, root) || !call.comm->is_inter())) {
    hold(b, entry, own.type);
  }
}

}  // namespace

int enter_gather(const Entry& entry, const Data& from, const Data& into, int root,
                 MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_rooted(call, from, Parts::equal(into), root)) {
      return error;
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold_rooted(b, entry, call, from, Parts::equal(into), root);
      build_gather(b, from, into, root);
    });
  });
}

int enter_gatherv(const Entry& entry, const Data& from, const Parts& into, int root,
                  MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_rooted(call, from, into, root)) {
      return error;
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold_rooted(b, entry, call, from, into, root);
      build_gatherv(b, from, into, root);
    });
  });
}

int enter_scatter(const Entry& entry, const Data& from, const Data& into, int root,
                  MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_rooted(call, into, Parts::equal(from), root)) {
      return error;
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold_rooted(b, entry, call, into, Parts::equal(from), root);
      build_scatter(b, from, into, root);
    });
  });
}

int enter_scatterv(const Entry& entry, const Parts& from, const Data& into, int root,
                   MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_rooted(call, into, from, root)) {
      return error;
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold_rooted(b, entry, call, into, from, root);
      build_scatterv(b, from, into, root);
    });
  });
}

int enter_allgather(const Entry& entry, const Data& from, const Parts& into,
                    MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    const int size = static_cast<int>(call.comm->peers().size);
    if (const int error = check_parts(call, into, size)) {
      return error;
    }
    if (!from.is_in_place() || call.comm->is_inter()) {
      if (const int error = check(call, from)) {
        return error;
      }
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, into, size);
      if (!from.is_in_place()) {
        hold(b, entry, from.type);
      }
      build_allgather(b, from, into);
    });
  });
}

int enter_alltoall(const Entry& entry, const Parts& from, const Parts& into,
                   MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    const int size = static_cast<int>(call.comm->peers().size);
    if (const int error = check_parts(call, into, size)) {
      return error;
    }
    if (!from.is_in_place() || call.comm->is_inter()) {
      if (const int error = check_parts(call, from, size)) {
        return error;
      }
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, into, size);
      hold(b, entry, from, size);
      build_alltoall(b, from, into);
    });
  });
}

namespace {

int check_neighbours(const Call& call) noexcept {
  return call.comm->topology != nullptr
             ? MPI_SUCCESS
             : call.fail(MPI_ERR_TOPOLOGY, "the communicator has no topology");
}

}  // namespace

int enter_neighbor_allgather(const Entry& entry, const Data& from, const Parts& into,
                             MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_neighbours(call)) {
      return error;
    }
    const int count = source_count(*call.comm);
    const bool is_sent = target_count(*call.comm) > 0;  // Else its buffer does not count.
    if (const int error =
            check_data(call, is_sent ? from.buffer : &from, from.count, from.type)) {
      return error;
    }
    if (const int error = check_parts(call, into, count)) {
      return error;
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, into, count);
      hold(b, entry, from.type);
      build_neighbor_allgather(b, from, into);
    });
  });
}

int enter_neighbor_alltoall(const Entry& entry, const Parts& from, const Parts& into,
                            MPI_Comm comm) noexcept {
  return enter_collective(entry, comm, [&](const Call& call) -> int {
    if (const int error = check_neighbours(call)) {
      return error;
    }
    if (const int error = check_parts(call, into, source_count(*call.comm))) {
      return error;
    }
    if (const int error = check_parts(call, from, target_count(*call.comm))) {
      return error;
    }
    return run_collective(call, entry, [&](Builder& b) {
      hold(b, entry, into, source_count(*call.comm));
      hold(b, entry, from, target_count(*call.comm));
      build_neighbor_alltoall(b, from, into);
    });
  });
}

}  // namespace sterna::mpi
