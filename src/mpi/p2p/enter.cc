// Sends and receives: the shortest way for blocking ones, requests for the others.
#include "mpi/p2p/enter.h"

#include "mpi/call_scope.h"
#include "mpi/coll/schedule.h"
#include "mpi/p2p/buffered.h"
#include "mpi/p2p/direct.h"
#include "mpi/p2p/entering.h"
#include "mpi/p2p/gather.h"
#include "mpi/p2p/short.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "net/transport.h"
#include "runtime/runtime.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

net::SendMode transport_mode(MessageMode mode) noexcept {
  return mode == MessageMode::synchronous ? net::SendMode::synchronous
         : mode == MessageMode::ready     ? net::SendMode::ready
                                          : net::SendMode::standard;
}

int give_finished(const Call& call, bool is_receive, MPI_Request* handle) noexcept {
  MPI_Status status{};
  if (is_receive) {
    set_proc_null(status);
  } else {
    set_empty(status);
  }
  Request* request = create_finished(call.state, call.comm, status);
  if (request == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  *handle = handle_of(request);
  return MPI_SUCCESS;
}

// A request with these arguments; it is not started.
Request* create_message(const Call& call, RequestType type, const Side& side,
                        MessageMode mode) noexcept {
  Request* request = create_request(call.state, type, call.comm);
  if (request != nullptr) {
    retain_datatype(side.datatype);
    request->arguments = {side.buffer, side.count, side.datatype, side.peer, side.tag, mode};
  }
  return request;
}

int start_new(const Call& call, RequestType type, const Side& side, MessageMode mode,
              MPI_Request* handle) noexcept {
  Request* request = create_message(call, type, side, mode);
  const int error = request == nullptr ? MPI_ERR_NO_MEM : start_message(call.state, *request);
  if (error != MPI_SUCCESS) {
    if (request != nullptr) {
      destroy_request(call.state, request);
    }
    return call.fail_plain(error);
  }
  *handle = handle_of(request);
  return MPI_SUCCESS;
}

int create_persistent(const Call& call, RequestType type, const Side& side, MessageMode mode,
                      MPI_Request* handle) noexcept {
  Request* request =
      create_message(call, side.peer == MPI_PROC_NULL ? RequestType::finished : type, side, mode);
  if (request == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  if (type == RequestType::receive) {
    set_proc_null(request->status);
  } else {
    set_empty(request->status);
  }
  request->is_persistent = true;
  request->is_active = false;
  *handle = handle_of(request);
  return MPI_SUCCESS;
}

/// No message came: the envelope may be that of the request's last use, the bytes any.
[[gnu::cold]] int conclude_without(const Call& call, net::Fault fault,
                                   MPI_Status* status) noexcept {
  if (status != MPI_STATUS_IGNORE) {
    set_empty(*status);
  }
  return call.pass(class_of_fault(fault));
}

/// A rank that may move has nothing else to do on its worker, and a message of one packet comes
/// from another node soon. That of a process has been looked for (short.h). Who waits longer has
/// to advance collectives.
bool receives_at_once(const RankState& state, const net::Pattern& pattern, const net::Buffer& into,
                      net::Envelope& found) noexcept {
  const runtime::RankContext& context = *state.context;
  return !context.endpoint->is_fixed && into.extents == nullptr &&
         state.active_schedules == nullptr &&
         context.transport->try_receive_short(*context.endpoint, pattern,
                                              {into.address, into.bytes}, found);
}

/// A message has gone, as far as its sender is concerned.
void tell_sent(const RankState& state) noexcept {
  if (runtime::Background* const background = state.context->runtime->background()) {
    background->has_sent();
  }
}

int conclude_null(MPI_Status* status) noexcept {
  if (status != MPI_STATUS_IGNORE) {
    set_proc_null(*status);
  }
  return MPI_SUCCESS;
}

}  // namespace

int conclude(const Call& call, const net::Envelope& envelope, net::Fault fault, Bytes& bytes,
             MPI_Status* status) noexcept {
  if (fault != net::Fault::none && fault != net::Fault::truncated) [[unlikely]] {
    return conclude_without(call, fault, status);
  }
  bytes.deliver(envelope.bytes);
  const int source = call.comm->peers().index_of(envelope.source);
  if (status != MPI_STATUS_IGNORE) {
    set_status(*status, source, envelope.tag, envelope.bytes);
  }
  if (fault == net::Fault::truncated) {
    return call.fail(MPI_ERR_TRUNCATE,
                     "the message of rank %d with tag %d is longer than the buffer of %llu bytes",
                     source, envelope.tag, static_cast<unsigned long long>(bytes.buffer().bytes));
  }
  return MPI_SUCCESS;
}

// Apart from the short way, which is quicker without their registers.
[[gnu::noinline]] int enter_send_slowly(const char* function, MessageMode mode, const Side& side,
                                        MPI_Comm comm) noexcept {
  return enter_message(function, comm, [&](const Call& call) -> int {
    RankState& state = call.state;
    if (const int error = check_send(call, side)) {
      return error;
    }
    if (side.peer == MPI_PROC_NULL) {
      return MPI_SUCCESS;
    }
    if (mode == MessageMode::buffered) {
      return send_buffered(call, side);
    }
    const net::Target target = target_of(*call.comm, side.peer, side.tag);
    TypedLayout layout;
    Bytes bytes{state, &layout};
    if (!bytes.for_send(side, target.rank)) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    net::SendRequest send;
    send.is_awaited = true;
    state.context->transport->send(*state.context->endpoint, send, target, bytes.buffer(),
                                   transport_mode(mode));
    wait_done(state, send.done);
    tell_sent(state);
    return call.pass(class_of_fault(send.fault));
  });
}

[[gnu::noinline]] int enter_receive_slowly(const char* function, const Side& side, MPI_Comm comm,
                                           MPI_Status* status) noexcept {
  return enter_message(function, comm, [&](const Call& call) -> int {
    RankState& state = call.state;
    if (const int error = check_receive(call, side)) {
      return error;
    }
    if (side.peer == MPI_PROC_NULL) {
      return conclude_null(status);
    }
    TypedLayout layout;
    Bytes bytes{state, &layout};
    if (!bytes.for_receive(side)) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    const net::Pattern pattern = pattern_of(*call.comm, side.peer, side.tag);
    if (net::Envelope found; receives_at_once(state, pattern, bytes.buffer(), found)) {
      return conclude(call, found, net::Fault::none, bytes, status);
    }
    net::RecvRequest receive;
    state.context->transport->receive(*state.context->endpoint, receive, pattern, bytes.buffer());
    if (!receive.done.done() && !state.is_multiple) {
      gather_for(state, pattern.source);
    }
    wait_done(state, receive.done);
    return conclude(call, receive.envelope, receive.fault, bytes, status);
  });
}

int enter_send(const char* function, MessageMode mode, const Side& side, MPI_Comm comm) noexcept {
  RankState* const state = mode == MessageMode::standard ? short_way() : nullptr;
  return state != nullptr && try_send_short(*state, side, comm)
             ? MPI_SUCCESS
             : enter_send_slowly(function, mode, side, comm);
}

int enter_receive(const char* function, const Side& side, MPI_Comm comm,
                  MPI_Status* status) noexcept {
  RankState* const state = short_way();
  const int result =
      state != nullptr ? try_receive_short(*state, side, comm, status) : kNotDirect;
  return result != kNotDirect ? result : enter_receive_slowly(function, side, comm, status);
}

int enter_isend(const char* function, MessageMode mode, const Side& side, MPI_Comm comm,
                MPI_Request* request) noexcept {
  return enter_message(function, comm, [&](const Call& call) -> int {
    if (const int error = check_send(call, side)) {
      return error;
    }
    if (const int error = check_place(call, request)) {
      return error;
    }
    if (side.peer == MPI_PROC_NULL) {
      return give_finished(call, false, request);
    }
    if (mode == MessageMode::buffered) {
      const int error = send_buffered(call, side);
      return error != MPI_SUCCESS ? error : give_finished(call, false, request);
    }
    return start_new(call, RequestType::send, side, mode, request);
  });
}

int enter_ireceive(const char* function, const Side& side, MPI_Comm comm,
                   MPI_Request* request) noexcept {
  return enter_message(function, comm, [&](const Call& call) -> int {
    if (const int error = check_receive(call, side)) {
      return error;
    }
    if (const int error = check_place(call, request)) {
      return error;
    }
    return side.peer == MPI_PROC_NULL
               ? give_finished(call, true, request)
               : start_new(call, RequestType::receive, side, MessageMode::standard, request);
  });
}

int enter_send_init(const char* function, MessageMode mode, const Side& side, MPI_Comm comm,
                    MPI_Request* request) noexcept {
  return enter(
      function, [&](Call& call) { return check_comm(call, comm); },
      [&](const Call& call) -> int {
        if (const int error = check_send(call, side)) {
          return error;
        }
        if (const int error = check_place(call, request)) {
          return error;
        }
        return create_persistent(call, RequestType::send, side, mode, request);
      });
}

int enter_receive_init(const char* function, const Side& side, MPI_Comm comm,
                       MPI_Request* request) noexcept {
  return enter(
      function, [&](Call& call) { return check_comm(call, comm); },
      [&](const Call& call) -> int {
        if (const int error = check_receive(call, side)) {
          return error;
        }
        if (const int error = check_place(call, request)) {
          return error;
        }
        return create_persistent(call, RequestType::receive, side, MessageMode::standard, request);
      });
}

int enter_exchange(const char* function, const Side& send_side, const Side& receive_side,
                   MPI_Comm comm, MPI_Status* status) noexcept {
  // A send that is done, or none, leaves a receive, or none: at the edge of a grid.
  RankState* const near = short_way();
  if (near != nullptr && is_plain_receive(*near, receive_side, comm) &&
      (is_plain_nothing(send_side) || try_send_short(*near, send_side, comm))) {
    return enter_receive(function, receive_side, comm, status);
  }
  if (near != nullptr && is_plain_nothing(receive_side) && try_send_short(*near, send_side, comm)) {
    return conclude_null(status);
  }
  if (const int result = try_exchange_direct(function, send_side, receive_side, comm, status);
      result != kNotDirect) {
    return result;
  }
  return enter_message(function, comm, [&](const Call& call) -> int {
    RankState& state = call.state;
    if (const int error = check_send(call, send_side)) {
      return error;
    }
    if (const int error = check_receive(call, receive_side)) {
      return error;
    }
    TypedLayout layouts[2];
    Bytes incoming{state, &layouts[0]};
    Bytes outgoing{state, &layouts[1]};
    const bool has_target = send_side.peer != MPI_PROC_NULL;
    const net::Target target =
        has_target ? target_of(*call.comm, send_side.peer, send_side.tag) : net::Target{};
    if (!incoming.for_receive(receive_side) || !outgoing.for_send(send_side, target.rank)) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    net::RecvRequest receive;
    receive.is_beside_sends = true;
    net::SendRequest send;
    send.is_awaited = true;
    runtime::RankContext& context = *state.context;
    const bool has_source = receive_side.peer != MPI_PROC_NULL;
    const auto start_to_send = [&] {
      context.transport->send(*context.endpoint, send, target, outgoing.buffer());
    };
    // What goes at once need not find a receive that is posted, nor post one for its like.
    const bool is_sent_first = has_target && has_source && !context.endpoint->is_fixed &&
                               outgoing.buffer().bytes <= kDirectBytesMax;
    const net::Pattern pattern = has_source
                                     ? pattern_of(*call.comm, receive_side.peer, receive_side.tag)
                                     : net::Pattern{};
    if (is_sent_first) {
      start_to_send();
      if (net::Envelope found; send.done.done() && send.fault == net::Fault::none &&
                               receives_at_once(state, pattern, incoming.buffer(), found)) {
        return conclude(call, found, net::Fault::none, incoming, status);
      }
    }
    if (has_source) {
      context.transport->receive(*context.endpoint, receive, pattern, incoming.buffer());
    }
    if (has_target) {
      if (!is_sent_first) {
        start_to_send();
      }
      wait_done(state, send.done);
      tell_sent(state);
    }
    if (receive_side.peer == MPI_PROC_NULL) {
      (void)conclude_null(status);
    } else {
      wait_done(state, receive.done);
      if (const int error = conclude(call, receive.envelope, receive.fault, incoming, status)) {
        return error;
      }
    }
    return call.pass(class_of_fault(send.fault));
  });
}

int enter_exchange_replace(const char* function, const Side& side, int source, int tag,
                           MPI_Comm comm, MPI_Status* status) noexcept {
  std::byte* copy = nullptr;
  Side outgoing = side;
  RankState* state = nullptr;
  {
    const CallScope scope;
    Call call{state_of_caller(function), function};
    state = &call.state;
    if (const int error = check_comm(call, comm)) {
      return error;
    }
    if (const int error = check_send(call, side)) {
      return error;
    }
    const TypedBuffer typed =
        TypedBuffer::of(side.buffer, side.count, *find_datatype(side.datatype));
    copy = allocate_packed(*state, typed.bytes() + 1);
    if (copy == nullptr) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    (void)pack(typed, 0, {copy, typed.bytes()});
    outgoing = {copy, static_cast<MPI_Count>(typed.bytes()), MPI_BYTE, side.peer, side.tag};
  }
  const int error = enter_exchange(
      function, outgoing, {side.buffer, side.count, side.datatype, source, tag}, comm, status);
  const CallScope scope;
  deallocate_packed(*state, copy);
  return error;
}

}  // namespace sterna::mpi
