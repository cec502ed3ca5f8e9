// Communicators.
#include "mpi/comm/comm.h"

#include <cstring>

#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/comm/create.h"
#include "mpi/info/info.h"
#include "mpi/p2p/message.h"
#include "net/transport.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

/// Finds the communicator of a call.
struct CommCall : Call {
  CommCall(const char* name, MPI_Comm handle) noexcept : Call{state_of_caller(name), name} {
    error = check_comm(*this, handle);
  }

  int error;

  int give(Comm* made, MPI_Comm* handle) const noexcept {
    *handle = made == nullptr ? MPI_COMM_NULL : handle_of(state, made);
    return MPI_SUCCESS;
  }
  int need_intra() const noexcept {
    return comm->is_inter() ? fail(MPI_ERR_COMM, "not for an intercommunicator") : MPI_SUCCESS;
  }
  int need_inter() const noexcept {
    return comm->is_inter() ? MPI_SUCCESS : fail(MPI_ERR_COMM, "not an intercommunicator");
  }
  int need_info(MPI_Info info) const noexcept {
    return info == MPI_INFO_NULL || find_info(info) != nullptr
               ? MPI_SUCCESS
               : fail(MPI_ERR_INFO, "the info object is not one");
  }
};

/// No hint changes what a communicator does.
int duplicate(const char* name, MPI_Comm comm, MPI_Info info, Form form, MPI_Comm* newcomm,
              MPI_Request* request) noexcept {
  CommCall call{name, comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (const int error = call.need_info(info)) {
    return error;
  }
  runtime::safe_point(*call.state.context);
  Comm* made = nullptr;
  const int error = duplicate_comm(call, {name, form, request}, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newcomm);
}

/// Null: the handle is no group, or has ranks that the communicator's group does not have; `error`
/// says so.
Group* find_members(const CommCall& call, MPI_Group handle, int& error) noexcept {
  Group* const members = find_group(call.state, handle);
  if (members == nullptr) {
    error = call.fail(MPI_ERR_GROUP, "the group is not one");
    return nullptr;
  }
  for (std::uint32_t i = 0; i < members->size; ++i) {
    if (call.comm->group->index_of(members->world_of(i)) == MPI_UNDEFINED) {
      error = call.fail(MPI_ERR_GROUP, "rank %u of the group is not in the communicator", i);
      return nullptr;
    }
  }
  return members;
}

// Nodes with the same name of host share memory; the first of them stands for all.
int host_of(const RankState& state) noexcept {
  const net::JobMap& job = state.context->transport->job();
  const std::string& own = job.host_of_node[job.node_index];
  for (std::uint32_t i = 0; i < job.node_index; ++i) {
    if (job.host_of_node[i] == own) {
      return static_cast<int>(i);
    }
  }
  return static_cast<int>(job.node_index);
}

}  // namespace

extern "C" {

int PMPI_Comm_size(MPI_Comm comm, int* size) {
  const CallScope scope;
  CommCall call{"MPI_Comm_size", comm};
  if (call.error == MPI_SUCCESS) {
    *size = static_cast<int>(call.comm->size);
  }
  return call.error;
}

int PMPI_Comm_rank(MPI_Comm comm, int* rank) {
  const CallScope scope;
  CommCall call{"MPI_Comm_rank", comm};
  if (call.error == MPI_SUCCESS) {
    *rank = call.comm->rank;
  }
  return call.error;
}

int PMPI_Comm_remote_size(MPI_Comm comm, int* size) {
  const CallScope scope;
  CommCall call{"MPI_Comm_remote_size", comm};
  if (call.error != MPI_SUCCESS || call.need_inter() != MPI_SUCCESS) {
    return call.error != MPI_SUCCESS ? call.error : MPI_ERR_COMM;
  }
  *size = static_cast<int>(call.comm->remote->size);
  return MPI_SUCCESS;
}

int PMPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  const CallScope scope;
  CommCall call{"MPI_Comm_test_inter", comm};
  if (call.error == MPI_SUCCESS) {
    *flag = call.comm->is_inter() ? 1 : 0;
  }
  return call.error;
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  const CallScope scope;
  CommCall call{"MPI_Comm_group", comm};
  if (call.error == MPI_SUCCESS) {
    call.comm->group->retain();
    *group = handle_of(call.state, call.comm->group);
  }
  return call.error;
}

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  const CallScope scope;
  CommCall call{"MPI_Comm_remote_group", comm};
  if (call.error != MPI_SUCCESS || call.need_inter() != MPI_SUCCESS) {
    return call.error != MPI_SUCCESS ? call.error : MPI_ERR_COMM;
  }
  call.comm->remote->retain();
  *group = handle_of(call.state, call.comm->remote);
  return MPI_SUCCESS;
}

int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) {
  const CallScope scope;
  CommCall call{"MPI_Comm_compare", comm1};
  CommCall other{"MPI_Comm_compare", comm1 != comm2 && call.error == MPI_SUCCESS ? comm2 : comm1};
  if (call.error != MPI_SUCCESS || other.error != MPI_SUCCESS) {
    return MPI_ERR_COMM;
  }
  const Comm& a = *call.comm;
  const Comm& b = *other.comm;
  if (&a == &b) {
    *result = MPI_IDENT;
    return MPI_SUCCESS;
  }
  *result = MPI_UNEQUAL;
  if (a.is_inter() == b.is_inter()) {
    const int local = compare_groups(*a.group, *b.group);
    const int remote = a.is_inter() ? compare_groups(*a.remote, *b.remote) : MPI_IDENT;
    const int worst = local > remote ? local : remote;
    *result = worst == MPI_IDENT ? MPI_CONGRUENT : worst;
  }
  return MPI_SUCCESS;
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
  const CallScope scope;
  return duplicate("MPI_Comm_dup", comm, MPI_INFO_NULL, Form::blocking, newcomm, nullptr);
}

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
  const CallScope scope;
  return duplicate("MPI_Comm_dup_with_info", comm, info, Form::blocking, newcomm, nullptr);
}

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  const CallScope scope;
  return duplicate("MPI_Comm_idup", comm, MPI_INFO_NULL, Form::nonblocking, newcomm, request);
}

int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm,
                             MPI_Request* request) {
  const CallScope scope;
  return duplicate("MPI_Comm_idup_with_info", comm, info, Form::nonblocking, newcomm, request);
}

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  const CallScope scope;
  CommCall call{"MPI_Comm_split", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (color < 0 && color != MPI_UNDEFINED) {
    return call.fail(MPI_ERR_ARG, "the color is %d, it must not be negative", color);
  }
  Comm* made = nullptr;
  const int error = call.comm->is_inter() ? split_inter(call, color, key, &made)
                                          : split_comm(call, color, key, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newcomm);
}

int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
  const CallScope scope;
  CommCall call{"MPI_Comm_split_type", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (const int error = call.need_info(info)) {
    return error;
  }
  const char* resource =
      info == MPI_INFO_NULL ? nullptr : get_info(*find_info(info), "mpi_hw_resource_type");
  const bool is_guided =
      split_type == MPI_COMM_TYPE_HW_GUIDED || split_type == MPI_COMM_TYPE_RESOURCE_GUIDED;
  int color = MPI_UNDEFINED;
  if (split_type == MPI_COMM_TYPE_SHARED ||
      (is_guided && resource != nullptr && std::strcmp(resource, "mpi_shared_memory") == 0)) {
    color = host_of(call.state);
  } else if (!is_guided && split_type != MPI_UNDEFINED && split_type != MPI_COMM_TYPE_HW_UNGUIDED) {
    return call.fail(MPI_ERR_ARG, "%d is no type to split by", split_type);
  }
  // Ranks move between processors: finer than a host there is nothing to split by.
  Comm* made = nullptr;
  // The standard defines splits of intercommunicators with MPI_Comm_split, and does not take them
  // back here: the same ranks and keys, with the host for a color.
  const int error = call.comm->is_inter() ? split_inter(call, color, key, &made)
                                          : split_comm(call, color, key, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newcomm);
}

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
  const CallScope scope;
  CommCall call{"MPI_Comm_create", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  int error = MPI_SUCCESS;
  Group* const members = find_members(call, group, error);
  if (members == nullptr) {
    return error;
  }
  Comm* made = nullptr;
  // Of an intercommunicator both sides give the group of their own side (MPI-5.0 §7.4.2).
  error = call.comm->is_inter()
              ? split_inter(call, members->rank == MPI_UNDEFINED ? MPI_UNDEFINED : 0, members->rank,
                            &made)
              : create_from_group(call, *members, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newcomm);
}

int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
  const CallScope scope;
  CommCall call{"MPI_Comm_create_group", comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  int error = call.need_intra();
  Group* const members = error == MPI_SUCCESS ? find_members(call, group, error) : nullptr;
  if (members == nullptr) {
    return error;
  }
  if (tag < 0) {
    return call.fail(MPI_ERR_TAG, "the tag is %d, it must not be negative", tag);
  }
  Comm* made = nullptr;
  error = create_among_group(call, *members, tag, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newcomm);
}

int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
                          int remote_leader, int tag, MPI_Comm* newintercomm) {
  const CallScope scope;
  CommCall call{"MPI_Intercomm_create", local_comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (const int error = call.need_intra()) {
    return error;
  }
  if (static_cast<std::uint32_t>(local_leader) >= call.comm->size) {
    return call.fail(MPI_ERR_RANK, "the local leader is %d of %u ranks", local_leader,
                     call.comm->size);
  }
  Meeting meeting{local_leader, nullptr, remote_leader, tag};
  if (call.comm->rank == local_leader) {
    meeting.bridge = find_comm(call.state, peer_comm);
    if (meeting.bridge == nullptr) {
      return call.fail(MPI_ERR_COMM, "the peer communicator is not one");
    }
    if (static_cast<std::uint32_t>(remote_leader) >= meeting.bridge->peers().size) {
      return call.fail(MPI_ERR_RANK, "the remote leader is %d", remote_leader);
    }
  }
  Comm* made = nullptr;
  const int error = create_inter(call, meeting, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newintercomm);
}

int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm) {
  const CallScope scope;
  CommCall call{"MPI_Intercomm_merge", intercomm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (const int error = call.need_inter()) {
    return error;
  }
  Comm* made = nullptr;
  const int error = merge_inter(call, high != 0, &made);
  return error != MPI_SUCCESS ? error : call.give(made, newintracomm);
}

int PMPI_Comm_free(MPI_Comm* comm) {
  const CallScope scope;
  CommCall call{"MPI_Comm_free", *comm};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (call.comm->is_predefined) {
    return call.fail(MPI_ERR_COMM, "%s cannot be freed", call.comm->name);
  }
  if (const int error = free_comm(call.state, call.comm)) {
    return call.pass(error);
  }
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace sterna::mpi
