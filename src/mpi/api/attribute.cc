// Attributes of communicators, and the predefined ones.
#include "mpi/attribute/attribute.h"

#include <cstring>

#include <mpi.h>

#include "mpi/any_time.h"
#include "mpi/call_scope.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/table.h"
#include "mpi/p2p/message.h"
#include "net/transport.h"

namespace sterna::mpi {
namespace {

/// Where a program's pointers to predefined values point to.
struct PredefinedValues {
  int tag_max;
  int io;
  int host;
  int is_time_global;
  int last_code;
  int universe;
};

int* find_predefined(RankState& state, int keyval) noexcept {
  const int last_code = last_used_code(any_time());
  StateGuard guard{state};
  if (state.attribute_values == nullptr) {
    // CLOCK_MONOTONIC is one clock in all processes of a host.
    const auto& hosts = state.context->transport->job().host_of_node;
    bool is_one_host = true;
    for (const std::string& host : hosts) {
      is_one_host = is_one_host && host == hosts[0];
    }
    state.attribute_values = state.create<PredefinedValues>(
        PredefinedValues{kTagMax, MPI_ANY_SOURCE, MPI_PROC_NULL, is_one_host ? 1 : 0, 0,
                         static_cast<int>(state.context->size)});
  }
  auto* values = static_cast<PredefinedValues*>(state.attribute_values);
  if (values == nullptr) {
    return nullptr;
  }
  values->last_code = last_code;
  switch (keyval) {
    case MPI_TAG_UB:
      return &values->tag_max;
    case MPI_IO:
      return &values->io;
    case MPI_HOST:
      return &values->host;
    case MPI_WTIME_IS_GLOBAL:
      return &values->is_time_global;
    case MPI_LASTUSEDCODE:
      return &values->last_code;
    case MPI_UNIVERSE_SIZE:
      return &values->universe;
    default:
      return nullptr;
  }
}

bool is_predefined_key(int keyval) noexcept {
  return keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE;
}

int report(const Call& call, int error, int keyval) noexcept {
  return error == MPI_ERR_KEYVAL
             ? call.fail(error, "%d is no key of communicators, or has no value here", keyval)
             : call.pass(error);
}

int set_on(const char* name, MPI_Comm comm, int keyval, void* value) noexcept {
  const CallScope scope;
  Call call{state_of_caller(name), name};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  return report(call,
                set_attribute(call.state, AttributeOwner::communicator, comm, call.comm->attributes,
                              keyval, value),
                keyval);
}

int delete_on(const char* name, MPI_Comm comm, int keyval) noexcept {
  const CallScope scope;
  Call call{state_of_caller(name), name};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  return report(call,
                delete_attribute(call.state, AttributeOwner::communicator, comm,
                                 call.comm->attributes, keyval),
                keyval);
}

int get_on(const char* name, MPI_Comm comm, int keyval, void* place, int* flag) noexcept {
  const CallScope scope;
  Call call{state_of_caller(name), name};
  if (const int error = check_comm(call, comm)) {
    return error;
  }
  void* value = nullptr;
  bool is_set = false;
  if (is_predefined_key(keyval)) {
    value = find_predefined(call.state, keyval);
    is_set = value != nullptr;
  } else if (const int error = get_attribute(call.state, AttributeOwner::communicator,
                                             call.comm->attributes, keyval, &value, &is_set)) {
    return report(call, error, keyval);
  }
  *flag = is_set ? 1 : 0;
  if (is_set) {
    std::memcpy(place, &value, sizeof value);
  }
  return MPI_SUCCESS;
}

int make_key(const char* name, void* copy, void* remove, int* keyval, void* extra) noexcept {
  const CallScope scope;
  Call call{state_of_caller(name), name};
  return call.pass(
      create_keyval(call.state, AttributeOwner::communicator, copy, remove, extra, keyval));
}

int drop_key(const char* name, int* keyval) noexcept {
  const CallScope scope;
  Call call{state_of_caller(name), name};
  return report(call, free_keyval(call.state, AttributeOwner::communicator, keyval), *keyval);
}

}  // namespace

extern "C" {

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                            MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval,
                            void* extra_state) {
  return make_key("MPI_Comm_create_keyval", reinterpret_cast<void*>(comm_copy_attr_fn),
                  reinterpret_cast<void*>(comm_delete_attr_fn), comm_keyval, extra_state);
}

int PMPI_Keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval,
                       void* extra_state) {
  return make_key("MPI_Keyval_create", reinterpret_cast<void*>(copy_fn),
                  reinterpret_cast<void*>(delete_fn), keyval, extra_state);
}

int PMPI_Comm_free_keyval(int* comm_keyval) {
  return drop_key("MPI_Comm_free_keyval", comm_keyval);
}

int PMPI_Keyval_free(int* keyval) {
  return drop_key("MPI_Keyval_free", keyval);
}

int PMPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val) {
  return set_on("MPI_Comm_set_attr", comm, comm_keyval, attribute_val);
}

int PMPI_Attr_put(MPI_Comm comm, int keyval, void* attribute_val) {
  return set_on("MPI_Attr_put", comm, keyval, attribute_val);
}

int PMPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag) {
  return get_on("MPI_Comm_get_attr", comm, comm_keyval, attribute_val, flag);
}

int PMPI_Attr_get(MPI_Comm comm, int keyval, void* attribute_val, int* flag) {
  return get_on("MPI_Attr_get", comm, keyval, attribute_val, flag);
}

int PMPI_Comm_delete_attr(MPI_Comm comm, int comm_keyval) {
  return delete_on("MPI_Comm_delete_attr", comm, comm_keyval);
}

int PMPI_Attr_delete(MPI_Comm comm, int keyval) {
  return delete_on("MPI_Attr_delete", comm, keyval);
}

}  // extern "C"
}  // namespace sterna::mpi
