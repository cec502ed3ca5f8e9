// Requests: one operation under way, and the ways to wait for one or many of them.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"
#include "mpi/p2p/typed_layout.h"
#include "mpi/rank_state.h"
#include "mpi/request/status.h"
#include "net/message.h"

namespace sterna::mpi {

struct BufferPool;
struct Schedule;

enum class RequestType : std::uint8_t {
  send,         // One message out.
  receive,      // One message in.
  schedule,     // A collective, or any other program of steps (coll/schedule.h).
  generalized,  // The program completes it.
  pair,         // A send and a receive: MPI_Isendrecv.
  flush,        // Of an attached buffer: nobody announces its end, one looks.
  finished,     // Nothing was to be done: MPI_PROC_NULL, a buffered send.
};

enum class MessageMode : std::uint8_t { standard, synchronous, ready, buffered };

/// What MPI_Grequest_start was given.
struct Generalized {
  MPI_Grequest_query_function* query = nullptr;
  MPI_Grequest_free_function* free = nullptr;
  MPI_Grequest_cancel_function* cancel = nullptr;
  void* extra_state = nullptr;
};

/// The arguments of a message, kept for persistent requests and for unpacking.
struct MessageArguments {
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;  // One reference when derived.
  int peer = MPI_PROC_NULL;
  int tag = 0;
  MessageMode mode = MessageMode::standard;
};

/// Written by the thread that starts it and the one that completes it, which the program orders;
/// `message.done` orders both with the transport.
struct Request final : Object {
  Request() noexcept : Object{ObjectKind::request} {}

  RequestType type = RequestType::finished;
  bool is_persistent = false;
  bool is_active = false;  // Started and not completed: a wait or test has not returned it.
  bool is_freed = false;   // MPI_Request_free: ends itself when done.
  bool is_cancelled = false;
  bool is_settled = false;     // A pair: its parts have been looked at.
  bool is_plain = false;       // Of create_plain_receive().
  bool is_shared = false;      // That of sent_request().
  Comm* comm = nullptr;        // One reference; null: none.
  Request* next = nullptr;     // Of the free list or the orphans; guard: RankState::lock.
  net::RecvRequest receive;    // type receive. Here, so that few lines are touched.
  net::SendRequest send;       // type send.
  progress::Completion ended;  // type generalized.
  MessageArguments arguments;
  std::byte* packed = nullptr;  // The bytes of a message whose type is not contiguous. Owned.
  std::uint64_t packed_bytes = 0;
  Schedule* schedule = nullptr;  // Owned.
  Generalized generalized;
  Request* parts[2] = {nullptr, nullptr};  // Of a pair: send, receive; null: MPI_PROC_NULL. Owned.
  BufferPool* flushed = nullptr;           // One reference.
  std::uint64_t flushed_number = 0;        // The last of the messages that are to leave.
  MPI_Status status{};                     // Types finished, flush, generalized and schedule.
  int error = MPI_SUCCESS;                 // Of the operation, with `status`.
  TypedLayout layout;                      // Of `receive` or `send`, if it has one.
};

/// From the free list, or new; null: no memory. `comm` may be null, else gets a reference.
[[nodiscard]] Request* create_request(RankState& state, RequestType type, Comm* comm) noexcept;
/// The request, which is free, becomes one of create_plain_receive().
inline void begin_plain_receive(Request& request, Comm& comm, bool is_multiple) noexcept {
  request.kind = ObjectKind::request;
  request.type = RequestType::receive;
  request.next = nullptr;
  request.is_active = true;
  request.is_plain = true;
  request.comm = &comm;
  is_multiple ? comm.retain() : comm.retain_in_turn();
}
/// The same for a receive into one run of memory: it holds nothing but its communicator, and costs
/// little to end.
[[nodiscard]] Request* create_plain_receive_slowly(RankState& state, Comm& comm) noexcept;
[[nodiscard, gnu::always_inline]] inline Request* create_plain_receive(RankState& state,
                                                                       Comm& comm) noexcept {
  // Where several call, nothing is read before their lock is taken.
  Request* const request = state.is_multiple ? nullptr : state.free_requests;
  if (request == nullptr || state.orphans != nullptr) [[unlikely]] {
    return create_plain_receive_slowly(state, comm);
  }
  state.free_requests = request->next;
  begin_plain_receive(*request, comm, false);
  return request;
}
/// What is left of try_finish_plain() where several threads call.
void end_plain_beside(RankState& state, Request& request) noexcept;
/// As finish_request(), of such a receive that has its message. False: it is not one, and nothing
/// happened.
[[nodiscard, gnu::always_inline]] inline bool try_finish_plain(RankState& state, Request& request,
                                                               MPI_Status* status) noexcept {
  if (!request.is_plain || request.receive.fault != net::Fault::none) {
    return false;
  }
  const net::Envelope& envelope = request.receive.envelope;
  Comm& comm = *request.comm;
  if (status != MPI_STATUS_IGNORE) {
    set_status(*status, comm.peers().index_of(envelope.source), envelope.tag, envelope.bytes);
  }
  if (state.is_multiple) [[unlikely]] {
    end_plain_beside(state, request);
    return true;
  }
  if (!comm.release_in_turn()) [[unlikely]] {
    release_comm(state, &comm);
  }
  request.comm = nullptr;
  request.kind = ObjectKind::freed;
  request.is_active = request.is_freed = request.is_plain = false;
  request.next = state.free_requests;
  state.free_requests = &request;
  return true;
}
/// The first of the operations that a call completes and that failed: whose handler is called, with
/// which code. The request may be gone by then.
struct Failure {
  int error = MPI_SUCCESS;  // Of none that failed: MPI_SUCCESS.
  Comm* comm = nullptr;     // One reference; null: it has none.

  /// Only the first one is kept.
  [[gnu::cold]] void note(const Request& request, int its_error) noexcept;
  /// Calls the handler of its communicator; returns what that leaves of the code.
  [[gnu::cold]] int report(const Call& call) noexcept;
};

/// The request of all sends that were done when they returned: any number of handles point to it,
/// and it stays. Null: no memory.
[[nodiscard]] Request* sent_request_slowly(RankState& state) noexcept;
[[nodiscard, gnu::always_inline]] inline Request* sent_request(RankState& state) noexcept {
  Request* const sent = state.sent.load(std::memory_order_acquire);
  return sent != nullptr ? sent : sent_request_slowly(state);
}
/// Gives everything back that it holds. It is not under way.
void destroy_request(RankState& state, Request* request) noexcept;
/// A request that is complete from the start.
[[nodiscard]] Request* create_finished(RankState& state, Comm* comm,
                                       const MPI_Status& status) noexcept;

[[nodiscard]] inline MPI_Request handle_of(Request* request) noexcept {
  return reinterpret_cast<MPI_Request>(request);
}
/// The request of a handle that is not MPI_REQUEST_NULL, or null: not a request.
[[nodiscard]] inline Request* find_request(MPI_Request handle) noexcept {
  return is_object(handle, ObjectKind::request) ? reinterpret_cast<Request*>(handle) : nullptr;
}

/// The same where find_request() has found one.
[[nodiscard]] inline Request& known_request(MPI_Request handle) noexcept {
  return *reinterpret_cast<Request*>(handle);
}

/// Whether the operation has ended; advances it where that needs the caller. Never blocks.
[[nodiscard]] bool is_done(RankState& state, Request& request) noexcept;
/// The same, asked in few steps: false may be wrong.
[[nodiscard]] inline bool is_seen_done(const Request& request) noexcept {
  return request.is_plain ? request.receive.done.done() : request.is_shared;
}
/// What announces its end; null: it has ended, or (RequestType::flush) one looks again and again.
[[nodiscard]] progress::Completion* completion_of(Request& request) noexcept;
/// Blocks until is_done. Switches; may move the rank.
void wait_for(RankState& state, Request& request) noexcept;
/// After is_done: unpacks, fills the status (may be MPI_STATUS_IGNORE), returns the error class of
/// the operation, makes the request inactive or destroys it and sets the handle to
/// MPI_REQUEST_NULL. `failure`, if any, notes an error.
int finish_request(RankState& state, MPI_Request* handle, MPI_Status* status,
                   Failure* failure = nullptr) noexcept;
/// The status of a request that is done, and the error class, without an effect on it.
int read_status(RankState& state, Request& request, MPI_Status* status) noexcept;

/// Advances the non-blocking collectives of the rank.
void advance_schedules(RankState& state) noexcept;

/// What a test that found nothing does: the network and the collectives advance, others run. May
/// switch; may move the rank.
void test_in_vain(RankState& state) noexcept;

/// The program gives up the handle: the request ends itself when it is done; a generalized one by
/// the call that completes it. Result: the error of a generalized one that ends now. May switch.
int abandon_request(RankState& state, Request& request) noexcept;
/// What a generalized request is for has ended. Result: its error, if the program has freed it, and
/// so it ends now. May switch.
int complete_generalized(RankState& state, Request& request) noexcept;
/// Ends those requests that were given up and are done by now. May switch.
void sweep_orphans(RankState& state) noexcept;
/// Waits for what MPI_Request_free left under way. Switches.
void drain_orphans(RankState& state) noexcept;

}  // namespace sterna::mpi
