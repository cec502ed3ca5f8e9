// Non-blocking exchanges, and the receives of matched messages.
#include "mpi/call_scope.h"
#include "mpi/p2p/enter.h"
#include "mpi/p2p/entering.h"
#include "mpi/p2p/matched.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "net/transport.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

int start_side(RankState& state, RequestType type, Comm* comm, const Side& side,
               Request** started) noexcept {
  *started = nullptr;
  if (side.peer == MPI_PROC_NULL) {
    return MPI_SUCCESS;
  }
  Request* request = create_request(state, type, comm);
  if (request == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  retain_datatype(side.datatype);
  request->arguments = {side.buffer, side.count, side.datatype,
                        side.peer,   side.tag,   MessageMode::standard};
  *started = request;
  return start_message(state, *request);
}

int start_exchange(const Call& call, const Side& send, const Side& receive, std::byte* packed,
                   MPI_Request* handle) noexcept {
  RankState& state = call.state;
  Request* owner = create_request(state, RequestType::pair, call.comm);
  if (owner == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  owner->packed = packed;
  int error = start_side(state, RequestType::receive, call.comm, receive, &owner->parts[1]);
  if (error == MPI_SUCCESS) {
    error = start_side(state, RequestType::send, call.comm, send, &owner->parts[0]);
  }
  *handle = handle_of(owner);
  return call.pass(error);
}

}  // namespace

int enter_iexchange(const char* function, const Side& send, const Side& receive, MPI_Comm comm,
                    MPI_Request* request) noexcept {
  return enter_message(function, comm, [&](const Call& call) -> int {
    if (const int error = check_send(call, send)) {
      return error;
    }
    if (const int error = check_receive(call, receive)) {
      return error;
    }
    return start_exchange(call, send, receive, nullptr, request);
  });
}

int enter_iexchange_replace(const char* function, const Side& side, int source, int tag,
                            MPI_Comm comm, MPI_Request* request) noexcept {
  return enter_message(function, comm, [&](const Call& call) -> int {
    if (const int error = check_send(call, side)) {
      return error;
    }
    if (const int error = check_pattern(call, source, tag)) {
      return error;
    }
    const TypedBuffer typed =
        TypedBuffer::of(side.buffer, side.count, *find_datatype(side.datatype));
    std::byte* copy = allocate_packed(call.state, typed.bytes() + 1);
    if (copy == nullptr) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    (void)pack(typed, 0, {copy, typed.bytes()});
    return start_exchange(
        call, {copy, static_cast<MPI_Count>(typed.bytes()), MPI_BYTE, side.peer, side.tag},
        {side.buffer, side.count, side.datatype, source, tag}, copy, request);
  });
}

namespace {

int check_message(Call& call, MPI_Message handle) noexcept {
  if (!is_object(handle, ObjectKind::message)) {
    return call.fail(MPI_ERR_REQUEST, "the message is not one of MPI_Mprobe, or was received");
  }
  call.comm = reinterpret_cast<MatchedMessage*>(handle)->comm;
  return MPI_SUCCESS;
}

net::Message& consume(RankState& state, MPI_Message* handle) noexcept {
  auto* matched = reinterpret_cast<MatchedMessage*>(*handle);
  net::Message& message = *matched->message;
  matched->kind = ObjectKind::freed;
  release_comm(state, matched->comm);
  state.destroy(matched);
  *handle = MPI_MESSAGE_NULL;
  return message;
}

}  // namespace

int enter_imreceive(const char* function, const Side& side, MPI_Message* message,
                    MPI_Request* handle) noexcept {
  const CallScope scope;
  Call call{state_of_caller(function), function};
  RankState& state = call.state;
  runtime::safe_point(*state.context);
  MPI_Status null_status{};
  set_proc_null(null_status);
  if (*message == MPI_MESSAGE_NO_PROC) {
    *message = MPI_MESSAGE_NULL;
    Request* done = create_finished(state, state.self, null_status);
    *handle = handle_of(done);
    return done == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
  }
  if (const int error = check_message(call, *message)) {
    return error;
  }
  if (const int error = check_data(call, side.buffer, side.count, side.datatype)) {
    return error;
  }
  Request* request = create_request(state, RequestType::receive, call.comm);
  Bytes bytes{state};
  if (request == nullptr || !bytes.for_receive(side)) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  retain_datatype(side.datatype);
  request->arguments = {side.buffer, side.count, side.datatype, 0, 0, MessageMode::standard};
  request->receive.done.reset();
  runtime::RankContext& context = *state.context;
  context.transport->receive_matched(*context.endpoint, request->receive, consume(state, message),
                                     bytes.buffer());
  request->packed = bytes.take_packed();
  *handle = handle_of(request);
  return MPI_SUCCESS;
}

int enter_mreceive(const char* function, const Side& side, MPI_Message* message,
                   MPI_Status* status) noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int error = enter_imreceive(function, side, message, &request)) {
    return error;
  }
  const CallScope scope;
  RankState& state = state_of_caller(function);
  Request& found = *find_request(request);
  wait_for(state, found);
  Comm* comm = found.comm;
  comm->retain();
  const int error = Call{state, function, comm}.pass(finish_request(state, &request, status));
  release_comm(state, comm);
  return error;
}

}  // namespace sterna::mpi
