// Requests: their life, and what completing one means for each type.
#include "mpi/request/request.h"

#include <new>

#include "mpi/coll/schedule.h"
#include "mpi/comm/comm.h"
#include "mpi/p2p/buffered.h"
#include "mpi/p2p/packed.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "runtime/scope.h"

namespace sterna::mpi {
namespace {

bool has_message(net::Fault fault) noexcept {
  return fault == net::Fault::none || fault == net::Fault::truncated;
}

/// What is known of the message. Where none came the envelope may still be that of the request's
/// last use: the status is empty then.
void tell_received(const Request& request, MPI_Status& status) noexcept {
  const net::RecvRequest& receive = request.receive;
  if (!has_message(receive.fault)) [[unlikely]] {
    set_empty(status);
    set_status_cancelled(status, receive.fault == net::Fault::cancelled);
    return;
  }
  const net::Envelope& envelope = receive.envelope;
  set_status(status, request.comm->peers().index_of(envelope.source), envelope.tag, envelope.bytes);
}

void finish_receive(RankState& state, Request& request) noexcept {
  tell_received(request, request.status);
  request.is_cancelled = request.receive.fault == net::Fault::cancelled;
  if (request.packed == nullptr) {
    return;
  }
  if (has_message(request.receive.fault)) [[likely]] {
    const MessageArguments& a = request.arguments;
    (void)unpack(TypedBuffer::of(a.buffer, a.count, *find_datatype(a.datatype)), 0,
                 {request.packed, request.receive.envelope.bytes});
  }
  if (!request.is_persistent) {
    deallocate_packed(state, request.packed);
    request.packed = nullptr;
  }
}

// Ends both parts, once; the status is that of the receive.
void settle_pair(RankState& state, Request& request) noexcept {
  if (request.parts[1] == nullptr && !request.is_settled) {
    set_proc_null(request.status);
  }
  for (int i = 0; i < 2; ++i) {
    if (request.parts[i] != nullptr) {
      MPI_Request handle = handle_of(request.parts[i]);
      request.parts[i] = nullptr;
      const int error =
          finish_request(state, &handle, i == 1 ? &request.status : MPI_STATUS_IGNORE);
      request.error = request.error == MPI_SUCCESS ? error : request.error;
    }
  }
  request.is_settled = true;
}

// Once per start: gathers error and status of what has ended.
int settle(RankState& state, Request& request) noexcept {
  switch (request.type) {
    case RequestType::send:
      set_empty(request.status);
      request.is_cancelled = request.send.fault == net::Fault::cancelled;
      set_status_cancelled(request.status, request.is_cancelled);
      request.error = class_of_fault(request.send.fault);
      break;
    case RequestType::receive:
      request.error = class_of_fault(request.receive.fault);
      finish_receive(state, request);
      break;
    case RequestType::schedule:
      request.error = request.schedule->error;
      break;
    case RequestType::generalized: {
      const Generalized& g = request.generalized;
      request.error = MPI_SUCCESS;
      if (g.query != nullptr && !request.is_freed) {  // Of one that is freed nobody asks.
        runtime::UserScope user;
        request.error = g.query(g.extra_state, &request.status);
      }
      break;
    }
    case RequestType::pair:
      settle_pair(state, request);
      break;
    case RequestType::flush:
    case RequestType::finished:
      break;
  }
  return request.error;
}

void copy_status(const MPI_Status& from, MPI_Status* into) noexcept {
  if (into != MPI_STATUS_IGNORE) {
    const int error = into->MPI_ERROR;
    *into = from;
    into->MPI_ERROR = error;
  }
}

/// From the free list, or new; active, without a communicator. Null: no memory.
Request* take_request(RankState& state, RequestType type) noexcept {
  bool has_orphans = false;
  Request* request = nullptr;
  {
    StateGuard guard{state};
    has_orphans = state.orphans != nullptr;
    request = state.free_requests;
    if (request != nullptr) {
      state.free_requests = request->next;
    }
  }
  if (has_orphans) [[unlikely]] {
    sweep_orphans(state);
  }
  if (request == nullptr) {
    void* place = state.heap().allocate(sizeof(Request), 64);
    if (place == nullptr) {
      return nullptr;
    }
    request = ::new (place) Request{};
  }
  request->kind = ObjectKind::request;
  request->type = type;
  request->next = nullptr;
  request->is_active = true;
  return request;
}

}  // namespace

Request* create_request(RankState& state, RequestType type, Comm* comm) noexcept {
  Request* const request = take_request(state, type);
  if (request != nullptr && comm != nullptr) {
    request->comm = comm;
    comm->retain();
  }
  return request;
}

Request* create_plain_receive_slowly(RankState& state, Comm& comm) noexcept {
  Request* const request = take_request(state, RequestType::receive);
  if (request != nullptr) {
    begin_plain_receive(*request, comm, state.is_multiple);
  }
  return request;
}

Request* sent_request_slowly(RankState& state) noexcept {
  Request* const made = take_request(state, RequestType::finished);
  if (made == nullptr) {
    return nullptr;
  }
  made->is_shared = true;
  set_empty(made->status);
  Request* sent = nullptr;
  if (!state.sent.compare_exchange_strong(sent, made, std::memory_order_release,
                                          std::memory_order_acquire)) {
    made->is_shared = false;  // Another thread was quicker.
    destroy_request(state, made);
    return sent;
  }
  return made;
}

void end_plain_beside(RankState& state, Request& request) noexcept {
  release_comm(state, request.comm);
  request.comm = nullptr;
  request.kind = ObjectKind::freed;
  request.is_active = request.is_freed = request.is_plain = false;
  const StateGuard guard{state};
  request.next = state.free_requests;
  state.free_requests = &request;
}

void destroy_request(RankState& state, Request* request) noexcept {
  if (request->schedule != nullptr) {
    destroy_schedule(state, request->schedule);
    request->schedule = nullptr;
  }
  release_buffers(state, request->flushed);
  request->flushed = nullptr;
  deallocate_packed(state, request->packed);
  request->packed = nullptr;
  release_datatype(state.heap(), request->arguments.datatype);
  request->arguments = {};
  release_comm(state, request->comm);
  request->comm = nullptr;
  request->kind = ObjectKind::freed;  // A handle that is used again is found out.
  request->is_persistent = request->is_active = request->is_freed = request->is_cancelled = false;
  request->is_settled = request->is_plain = false;
  request->error = MPI_SUCCESS;
  StateGuard guard{state};
  request->next = state.free_requests;
  state.free_requests = request;
}

Request* create_finished(RankState& state, Comm* comm, const MPI_Status& status) noexcept {
  Request* request = create_request(state, RequestType::finished, comm);
  if (request != nullptr) {
    request->status = status;
  }
  return request;
}

progress::Completion* completion_of(Request& request) noexcept {
  if (!request.is_active) {
    return nullptr;
  }
  switch (request.type) {
    case RequestType::send:
      return &request.send.done;
    case RequestType::receive:
      return &request.receive.done;
    case RequestType::schedule:
      return &request.schedule->ended;
    case RequestType::generalized:
      return &request.ended;
    case RequestType::pair:
      for (Request* part : request.parts) {
        progress::Completion* completion = part == nullptr ? nullptr : completion_of(*part);
        if (completion != nullptr && !completion->done()) {
          return completion;
        }
      }
      break;
    case RequestType::flush:
    case RequestType::finished:
      break;
  }
  return nullptr;
}

bool is_done(RankState& state, Request& request) noexcept {
  if (request.type == RequestType::flush && request.is_active) {
    return is_flushed(state, *request.flushed, request.flushed_number);
  }
  progress::Completion* completion = completion_of(request);
  if (completion == nullptr || completion->done()) {
    return true;
  }
  if (request.type == RequestType::schedule) {
    advance_schedules(state);
    return completion->done();
  }
  return false;
}

void wait_for(RankState& state, Request& request) noexcept {
  for (std::uint32_t round = 0; request.type == RequestType::flush && !is_done(state, request);
       ++round) {
    wait_a_little(state, round);
  }
  // A pair has one after the other.
  for (auto* c = completion_of(request); c != nullptr && !c->done(); c = completion_of(request)) {
    wait_done(state, *c);
  }
}

int read_status(RankState& state, Request& request, MPI_Status* status) noexcept {
  if (!request.is_active) {
    give_empty(status);
    return MPI_SUCCESS;
  }
  if (request.type == RequestType::receive) {
    // The bytes are unpacked by finish_request only; the envelope is known now.
    MPI_Status known{};
    tell_received(request, known);
    copy_status(known, status);
    return class_of_fault(request.receive.fault);
  }
  const int error = settle(state, request);
  copy_status(request.status, status);
  return error;
}

void Failure::note(const Request& request, int its_error) noexcept {
  if (error != MPI_SUCCESS) {
    return;
  }
  error = its_error;
  comm = request.comm;
  if (comm != nullptr) {
    comm->retain();
  }
}

int Failure::report(const Call& call) noexcept {
  const int result = Call{call.state, call.function, comm}.fail_plain(error);
  if (comm != nullptr) {
    release_comm(call.state, comm);
  }
  return result;
}

int finish_request(RankState& state, MPI_Request* handle, MPI_Status* status,
                   Failure* failure) noexcept {
  Request& request = *find_request(*handle);
  if (try_finish_plain(state, request, status)) {
    *handle = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  if (request.is_shared) {
    copy_status(request.status, status);
    *handle = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  if (!request.is_active) {
    return read_status(state, request, status);
  }
  int error = settle(state, request);
  copy_status(request.status, status);
  request.is_active = false;
  if (request.type == RequestType::generalized && request.generalized.free != nullptr) {
    runtime::UserScope user;
    const int result = request.generalized.free(request.generalized.extra_state);
    error = error == MPI_SUCCESS ? result : error;
  }
  if (error != MPI_SUCCESS && failure != nullptr) [[unlikely]] {
    failure->note(request, error);
  }
  if (request.is_persistent && !request.is_freed) {
    request.is_cancelled = false;
    return error;
  }
  destroy_request(state, &request);
  *handle = MPI_REQUEST_NULL;
  return error;
}

}  // namespace sterna::mpi
