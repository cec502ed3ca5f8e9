// What is known of requests that have ended, without completing them: MPI_Request_get_status.
#include <mpi.h>

#include "mpi/api/request_array.h"
#include "mpi/call_scope.h"
#include "mpi/request/request.h"
#include "mpi/request/status.h"

namespace sterna::mpi {
namespace {

int read(RankState& state, Request& request, MPI_Status* status, Failure& failure) noexcept {
  const int error = read_status(state, request, status);
  if (error != MPI_SUCCESS) [[unlikely]] {
    failure.note(request, error);
  }
  return error;
}

/// Of one: reports its error through its communicator.
int read(const Call& call, Request& request, MPI_Status* status) noexcept {
  Failure failure;
  const int error = read(call.state, request, status, failure);
  return error == MPI_SUCCESS ? MPI_SUCCESS : failure.report(call);
}

}  // namespace

extern "C" {

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
  return read(call, *active, status);
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
  Outcomes outcomes{array_of_statuses};
  for (int i = 0; i < count; ++i) {
    Request* active = call.active(i);
    if (active == nullptr) {
      give_empty(outcomes.status(i));
      outcomes.add(i, MPI_SUCCESS);
    } else {
      outcomes.add(i, read(call.state, *active, outcomes.status(i), outcomes.failure));
    }
  }
  return outcomes.end(call);
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
  return read(call, *call.active(found), status);
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
  Outcomes outcomes{array_of_statuses};
  *outcount = 0;
  for (int i = 0; i < incount; ++i) {
    Request* active = call.active(i);
    if (active != nullptr && is_done(call.state, *active)) {
      const int place = (*outcount)++;
      array_of_indices[place] = i;
      outcomes.add(place, read(call.state, *active, outcomes.status(place), outcomes.failure));
    }
  }
  if (*outcount == 0) {
    test_in_vain(call.state);
  }
  return outcomes.end(call);
}

}  // extern "C"
}  // namespace sterna::mpi
