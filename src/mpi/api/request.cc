// Completing requests: one, all, any, some.
#include "mpi/request/request.h"

#include <mpi.h>

#include "mpi/api/request_array.h"
#include "mpi/call_scope.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"

namespace sterna::mpi {
namespace {

/// Completes one that is done, and reports its error through its communicator.
int complete(const Call& call, MPI_Request* handle, MPI_Status* status) noexcept {
  Failure failure;
  const int error = finish_request(call.state, handle, status, &failure);
  return error == MPI_SUCCESS ? MPI_SUCCESS : failure.report(call);
}

int complete_all(const ArrayCall& call, MPI_Request* handles, MPI_Status* statuses) noexcept {
  Outcomes outcomes{statuses};
  for (int i = 0; i < call.count; ++i) {
    MPI_Status* status = outcomes.status(i);
    int error = MPI_SUCCESS;
    if (handles[i] == MPI_REQUEST_NULL) {
      give_empty(status);
    } else if (handles[i] == handle_of(call.state.sent.load(std::memory_order_relaxed))) {
      handles[i] = MPI_REQUEST_NULL;
      if (status != MPI_STATUS_IGNORE) {
        set_empty(*status);
      }
    } else if (try_finish_plain(call.state, known_request(handles[i]), status)) {
      handles[i] = MPI_REQUEST_NULL;
    } else {
      error = finish_request(call.state, &handles[i], status, &outcomes.failure);
    }
    outcomes.add(i, error);
  }
  return outcomes.end(call);
}

int complete_some(const ArrayCall& call, MPI_Request* handles, int* outcount, int* indices,
                  MPI_Status* statuses) noexcept {
  Outcomes outcomes{statuses};
  *outcount = 0;
  for (int i = 0; i < call.count; ++i) {
    Request* request = call.active(i);
    if (request == nullptr || !is_done(call.state, *request)) {
      continue;
    }
    const int place = (*outcount)++;
    indices[place] = i;
    outcomes.add(place, finish_request(call.state, &handles[i], outcomes.status(place),
                                       &outcomes.failure));
  }
  return outcomes.end(call);
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

}  // extern "C"
}  // namespace sterna::mpi
