// Requests that the program gives up while they are under way: MPI_Request_free.
#include "mpi/request/request.h"
#include "mpi/request/wait.h"

namespace sterna::mpi {

void sweep_orphans(RankState& state) noexcept {
  Request* done = nullptr;
  {
    StateGuard guard{state};
    Request** link = &state.orphans;
    while (*link != nullptr) {
      Request* request = *link;
      progress::Completion* completion = completion_of(*request);
      if (completion != nullptr && !completion->done()) {
        link = &request->next;
        continue;
      }
      *link = request->next;
      request->next = done;
      done = request;
    }
  }
  while (done != nullptr) {
    Request* next = done->next;
    MPI_Request handle = handle_of(done);
    (void)finish_request(state, &handle, MPI_STATUS_IGNORE);
    done = next;
  }
}

int abandon_request(RankState& state, Request& request) noexcept {
  if (request.is_shared) {
    return MPI_SUCCESS;
  }
  if (!request.is_active) {
    destroy_request(state, &request);
    return MPI_SUCCESS;
  }
  const bool is_generalized = request.type == RequestType::generalized;
  bool has_ended = !is_generalized && is_done(state, request);
  {
    // Of complete_generalized() and this one the later call ends it: the lock says which that is.
    StateGuard guard{state};
    request.is_freed = true;
    has_ended = has_ended || (is_generalized && request.ended.done());
    if (!has_ended) {
      request.next = state.orphans;
      state.orphans = &request;
    }
  }
  if (!has_ended) {
    return MPI_SUCCESS;
  }
  MPI_Request handle = handle_of(&request);
  const int error = finish_request(state, &handle, MPI_STATUS_IGNORE);
  return is_generalized ? error : MPI_SUCCESS;
}

int complete_generalized(RankState& state, Request& request) noexcept {
  {
    StateGuard guard{state};
    if (!request.is_freed) {
      request.ended.complete();
      return MPI_SUCCESS;
    }
    Request** link = &state.orphans;
    while (*link != &request) {
      link = &(*link)->next;
    }
    *link = request.next;
  }
  MPI_Request handle = handle_of(&request);
  return finish_request(state, &handle, MPI_STATUS_IGNORE);
}

void drain_orphans(RankState& state) noexcept {
  sweep_orphans(state);
  for (std::uint32_t round = 0; state.orphans != nullptr; ++round) {
    wait_a_little(state, round);
    sweep_orphans(state);
  }
}

}  // namespace sterna::mpi
