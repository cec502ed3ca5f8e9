// Completing requests: one, all, any, some.
#include "mpi/request/request.h"

#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

void give_empty(MPI_Status* status) noexcept {
  if (status != MPI_STATUS_IGNORE) {
    set_empty(*status);
    status->MPI_ERROR = MPI_SUCCESS;
  }
}

/// A call on an array of requests; checks it.
struct ArrayCall : Call {
  ArrayCall(const char* name, int number, const MPI_Request* list) noexcept
      : Call{state_of_caller(name), name}, count{number}, handles{list} {
    runtime::safe_point(*state.context);
    if (count < 0) {
      error = fail(MPI_ERR_ARG, "the number of requests is %d", count);
      return;
    }
    for (int i = 0; i < count; ++i) {
      if (handles[i] != MPI_REQUEST_NULL && find_request(handles[i]) == nullptr) {
        error = fail(MPI_ERR_REQUEST, "entry %d of the array is not a request (or was freed)", i);
        return;
      }
    }
  }

  /// Null: MPI_REQUEST_NULL or inactive.
  [[nodiscard]] Request* active(int index) const noexcept {
    if (handles[index] == MPI_REQUEST_NULL) {
      return nullptr;
    }
    Request* request = find_request(handles[index]);
    return request->is_active ? request : nullptr;
  }
  [[nodiscard]] bool has_active() const noexcept {
    for (int i = 0; i < count; ++i) {
      if (active(i) != nullptr) {
        return true;
      }
    }
    return false;
  }
  /// Index of an active one that is done; -1: none.
  [[nodiscard]] int find_done() const noexcept {
    for (int i = 0; i < count; ++i) {
      Request* request = active(i);
      if (request != nullptr && is_done(state, *request)) {
        return i;
      }
    }
    return -1;
  }
  [[nodiscard]] bool all_done() const noexcept {
    for (int i = 0; i < count; ++i) {
      Request* request = active(i);
      if (request != nullptr && !is_done(state, *request)) {
        return false;
      }
    }
    return true;
  }

  int count;
  const MPI_Request* handles;
  int error = MPI_SUCCESS;
};

/// Completes one that is done, and reports its error through its communicator.
int complete(const Call& call, MPI_Request* handle, MPI_Status* status) noexcept {
  Comm* comm = find_request(*handle)->comm;
  if (comm != nullptr) {
    comm->retain();
  }
  const int error = finish_request(call.state, handle, status);
  const int result = Call{call.state, call.function, comm}.pass(error);
  if (comm != nullptr) {
    release_comm(call.state, comm);
  }
  return result;
}

int complete_all(const ArrayCall& call, MPI_Request* handles, MPI_Status* statuses) noexcept {
  bool has_failed = false;
  for (int i = 0; i < call.count; ++i) {
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    int error = MPI_SUCCESS;
    if (handles[i] == MPI_REQUEST_NULL) {
      give_empty(status);
    } else if (handles[i] == handle_of(call.state.sent.load(std::memory_order_relaxed))) {
      handles[i] = MPI_REQUEST_NULL;
      give_empty(status);
    } else if (try_finish_plain(call.state, known_request(handles[i]), status)) {
      handles[i] = MPI_REQUEST_NULL;
    } else {
      error = finish_request(call.state, &handles[i], status);
    }
    if (status != MPI_STATUS_IGNORE) {
      status->MPI_ERROR = error;
    }
    has_failed = has_failed || error != MPI_SUCCESS;
  }
  if (has_failed) {
    return call.fail(MPI_ERR_IN_STATUS, "an operation failed, see the statuses");
  }
  // The field is not written when all went well: MPI-5.0 §3.7.5.
  return MPI_SUCCESS;
}

int complete_some(const ArrayCall& call, MPI_Request* handles, int* outcount, int* indices,
                  MPI_Status* statuses) noexcept {
  bool has_failed = false;
  *outcount = 0;
  for (int i = 0; i < call.count; ++i) {
    Request* request = call.active(i);
    if (request == nullptr || !is_done(call.state, *request)) {
      continue;
    }
    const int place = (*outcount)++;
    indices[place] = i;
    MPI_Status* status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[place];
    const int error = finish_request(call.state, &handles[i], status);
    if (status != MPI_STATUS_IGNORE) {
      status->MPI_ERROR = error;
    }
    has_failed = has_failed || error != MPI_SUCCESS;
  }
  return has_failed ? call.fail(MPI_ERR_IN_STATUS, "an operation failed, see the statuses")
                    : MPI_SUCCESS;
}

}  // namespace

extern "C" {

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  const CallScope scope;
  ArrayCall call{"MPI_Wait", 1, request};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (*request == MPI_REQUEST_NULL) {
    give_empty(status);
    return MPI_SUCCESS;
  }
  wait_for(call.state, *find_request(*request));
  return complete(call, request, status);
}

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const CallScope scope;
  ArrayCall call{"MPI_Test", 1, request};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *flag = 1;
  if (*request == MPI_REQUEST_NULL) {
    give_empty(status);
    return MPI_SUCCESS;
  }
  if (call.all_done()) {
    return complete(call, request, status);
  }
  *flag = 0;
  test_in_vain(call.state);
  if (!call.all_done()) {
    return MPI_SUCCESS;
  }
  *flag = 1;
  return complete(call, request, status);
}

int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) {
  const CallScope scope;
  ArrayCall call{"MPI_Waitall", count, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  // The last one first: while it is waited for the others come, many in one look.
  for (int i = count; i-- > 0;) {
    const MPI_Request handle = array_of_requests[i];
    if (handle != MPI_REQUEST_NULL && !is_seen_done(known_request(handle))) {
      wait_for(call.state, known_request(handle));
    }
  }
  return complete_all(call, array_of_requests, array_of_statuses);
}

int PMPI_Testall(int count, MPI_Request array_of_requests[], int* flag,
                 MPI_Status* array_of_statuses) {
  const CallScope scope;
  ArrayCall call{"MPI_Testall", count, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *flag = 1;
  if (!call.all_done()) {
    test_in_vain(call.state);
    if (!call.all_done()) {
      *flag = 0;
      return MPI_SUCCESS;
    }
  }
  return complete_all(call, array_of_requests, array_of_statuses);
}

int PMPI_Waitany(int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status) {
  const CallScope scope;
  ArrayCall call{"MPI_Waitany", count, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (!call.has_active()) {
    *indx = MPI_UNDEFINED;
    give_empty(status);
    return MPI_SUCCESS;
  }
  int found = call.find_done();
  for (; found < 0; found = call.find_done()) {
    wait_for_one(call.state, array_of_requests, count);
  }
  *indx = found;
  return complete(call, &array_of_requests[found], status);
}

int PMPI_Testany(int count, MPI_Request array_of_requests[], int* indx, int* flag,
                 MPI_Status* status) {
  const CallScope scope;
  ArrayCall call{"MPI_Testany", count, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *flag = 1;
  *indx = MPI_UNDEFINED;
  if (!call.has_active()) {
    give_empty(status);
    return MPI_SUCCESS;
  }
  int found = call.find_done();
  if (found < 0) {
    test_in_vain(call.state);
    found = call.find_done();
  }
  if (found < 0) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  *indx = found;
  return complete(call, &array_of_requests[found], status);
}

int PMPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount,
                  int array_of_indices[], MPI_Status* array_of_statuses) {
  const CallScope scope;
  ArrayCall call{"MPI_Waitsome", incount, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (!call.has_active()) {
    *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  while (call.find_done() < 0) {
    wait_for_one(call.state, array_of_requests, incount);
  }
  return complete_some(call, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

int PMPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount,
                  int array_of_indices[], MPI_Status* array_of_statuses) {
  const CallScope scope;
  ArrayCall call{"MPI_Testsome", incount, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  if (!call.has_active()) {
    *outcount = MPI_UNDEFINED;
    return MPI_SUCCESS;
  }
  if (call.find_done() < 0) {
    test_in_vain(call.state);
  }
  return complete_some(call, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const CallScope scope;
  ArrayCall call{"MPI_Request_get_status", 1, &request};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *flag = 1;
  Request* active = call.active(0);
  if (active == nullptr) {
    give_empty(status);
    return MPI_SUCCESS;
  }
  if (!is_done(call.state, *active)) {
    test_in_vain(call.state);
    if (!is_done(call.state, *active)) {
      *flag = 0;
      return MPI_SUCCESS;
    }
  }
  return call.pass(read_status(call.state, *active, status));
}

int PMPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                                MPI_Status* array_of_statuses) {
  const CallScope scope;
  ArrayCall call{"MPI_Request_get_status_all", count, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *flag = call.all_done() ? 1 : 0;
  if (*flag == 0) {
    test_in_vain(call.state);
    return MPI_SUCCESS;
  }
  for (int i = 0; array_of_statuses != MPI_STATUSES_IGNORE && i < count; ++i) {
    Request* active = call.active(i);
    if (active == nullptr) {
      give_empty(&array_of_statuses[i]);
    } else {
      array_of_statuses[i].MPI_ERROR = read_status(call.state, *active, &array_of_statuses[i]);
    }
  }
  return MPI_SUCCESS;
}

int PMPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int* indx,
                                int* flag, MPI_Status* status) {
  const CallScope scope;
  ArrayCall call{"MPI_Request_get_status_any", count, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *flag = 1;
  *indx = MPI_UNDEFINED;
  if (!call.has_active()) {
    give_empty(status);
    return MPI_SUCCESS;
  }
  const int found = call.find_done();
  if (found < 0) {
    *flag = 0;
    test_in_vain(call.state);
    return MPI_SUCCESS;
  }
  *indx = found;
  return call.pass(read_status(call.state, *call.active(found), status));
}

int PMPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount,
                                 int array_of_indices[], MPI_Status* array_of_statuses) {
  const CallScope scope;
  ArrayCall call{"MPI_Request_get_status_some", incount, array_of_requests};
  if (call.error != MPI_SUCCESS) {
    return call.error;
  }
  *outcount = MPI_UNDEFINED;
  if (!call.has_active()) {
    return MPI_SUCCESS;
  }
  *outcount = 0;
  for (int i = 0; i < incount; ++i) {
    Request* active = call.active(i);
    if (active != nullptr && is_done(call.state, *active)) {
      if (array_of_statuses != MPI_STATUSES_IGNORE) {
        (void)read_status(call.state, *active, &array_of_statuses[*outcount]);
      }
      array_of_indices[(*outcount)++] = i;
    }
  }
  if (*outcount == 0) {
    test_in_vain(call.state);
  }
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace sterna::mpi
