// Starting, freeing and cancelling requests; generalized ones; probes.
#include <mpi.h>

#include "mpi/call_scope.h"
#include "mpi/coll/schedule.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"
#include "mpi/p2p/buffered.h"
#include "mpi/p2p/matched.h"
#include "mpi/p2p/message.h"
#include "mpi/request/request.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "net/transport.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

int check_request(const Call& call, const MPI_Request* handle, Request** request) noexcept {
  *request = *handle == MPI_REQUEST_NULL ? nullptr : find_request(*handle);
  return *request != nullptr
             ? MPI_SUCCESS
             : call.fail(MPI_ERR_REQUEST, *handle == MPI_REQUEST_NULL
                                              ? "the request is MPI_REQUEST_NULL"
                                              : "the request is not one (or was freed)");
}

/// What fails is reported through the communicator of the request.
int start_persistent(const Call& caller, Request& request) noexcept {
  const Call call{caller.state, caller.function, request.comm};
  if (!request.is_persistent || request.is_active) {
    return call.fail(MPI_ERR_REQUEST, request.is_active ? "the request is active already"
                                                        : "the request is not persistent");
  }
  request.is_active = true;
  request.error = MPI_SUCCESS;
  if (request.type == RequestType::schedule) {
    rewind(*request.schedule);
    activate(call.state, *request.schedule);
    return MPI_SUCCESS;
  }
  if (request.type == RequestType::finished) {
    return MPI_SUCCESS;
  }
  if (request.arguments.mode == MessageMode::buffered) {
    const MessageArguments& a = request.arguments;
    request.send.done.reset();
    request.send.fault = net::Fault::none;
    const int error = send_buffered(call, {a.buffer, a.count, a.datatype, a.peer, a.tag});
    request.send.done.complete();
    request.is_active = error == MPI_SUCCESS;
    return error;
  }
  const int error = start_message(call.state, request);
  request.is_active = error == MPI_SUCCESS;
  return call.pass(error);
}

/// What a probe looks for.
struct Probe {
  Call call;
  net::Pattern pattern{};
  net::Envelope found{};
  int error = MPI_SUCCESS;
  std::uint32_t loss_count = 0;  // Before the first look.

  Probe(const char* function, int source, int tag, MPI_Comm comm) noexcept
      : call{state_of_caller(function), function} {
    runtime::safe_point(*call.state.context);
    error = check_comm(call, comm);
    if (error == MPI_SUCCESS) {
      error = check_pattern(call, source, tag);
    }
    if (error == MPI_SUCCESS && source != MPI_PROC_NULL) {
      pattern = pattern_of(*call.comm, source, tag);
      loss_count = net::Transport::loss_count(*call.state.context->endpoint);
    }
  }
  [[nodiscard]] bool look(net::MessageWatch* watch = nullptr) noexcept {
    runtime::RankContext& context = *call.state.context;
    return context.transport->probe(*context.endpoint, pattern, found, watch);
  }
  [[nodiscard]] net::Message* take(net::MessageWatch* watch = nullptr) noexcept {
    runtime::RankContext& context = *call.state.context;
    return context.transport->matched_probe(*context.endpoint, pattern, found, watch);
  }
  /// Calls `look(watch)` until that is true. False: no such message will come.
  template <typename Look>
  [[nodiscard]] bool wait(Look look) noexcept {
    for (std::uint32_t round = 0;; ++round) {
      net::MessageWatch watch;
      if (look(&watch)) {
        return true;
      }
      const bool ends = is_in_vain();  // Of losses since then the watch is told.
      if (!ends && !watch.must_look_again) {
        wait_done(call.state, watch.done);
        continue;
      }
      end_watch(watch);
      if (ends) {
        return look(nullptr);
      }
      wait_a_little(call.state, round);
    }
  }
  void end_watch(net::MessageWatch& watch) noexcept {
    runtime::RankContext& context = *call.state.context;
    context.transport->end_watch(*context.endpoint, watch);
  }
  /// No such message will come: its sender is lost, or, of one from anybody, may be among those
  /// that were lost since it was asked for, as with receives. After it a last look finds what had
  /// come.
  [[nodiscard]] bool is_in_vain() const noexcept {
    const runtime::RankContext& context = *call.state.context;
    return pattern.source == net::kAnySource
               ? net::Transport::loss_count(*context.endpoint) != loss_count
               : context.transport->is_rank_lost(pattern.source);
  }
  int fail_lost() noexcept {
    return call.fail(MPI_ERR_PROC_ABORTED,
                     "the process that was to send the message, or might have, has ended");
  }
  void fill(MPI_Status* status) const noexcept {
    if (status != MPI_STATUS_IGNORE) {
      set_status(*status, call.comm->peers().index_of(found.source), found.tag, found.bytes);
    }
  }
  int give(net::Message& message, MPI_Message* handle, MPI_Status* status) noexcept {
    MatchedMessage* matched = call.state.create<MatchedMessage>();
    if (matched == nullptr) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    matched->message = &message;
    matched->comm = call.comm;
    call.comm->retain();
    *handle = reinterpret_cast<MPI_Message>(matched);
    fill(status);
    return MPI_SUCCESS;
  }
};

void give_null(MPI_Status* status) noexcept {
  if (status != MPI_STATUS_IGNORE) {
    set_proc_null(*status);
  }
}

}  // namespace

void test_in_vain(RankState& state) noexcept {
  advance_schedules(state);
  runtime::tested_in_vain(*state.context);
  advance_schedules(state);
}

extern "C" {

int PMPI_Start(MPI_Request* request) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Start"), "MPI_Start"};
  Request* found = nullptr;
  runtime::safe_point(*call.state.context);
  const int error = check_request(call, request, &found);
  return error != MPI_SUCCESS ? error : start_persistent(call, *found);
}

int PMPI_Startall(int count, MPI_Request array_of_requests[]) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Startall"), "MPI_Startall"};
  runtime::safe_point(*call.state.context);
  for (int i = 0; i < count; ++i) {
    Request* found = nullptr;
    if (const int error = check_request(call, &array_of_requests[i], &found)) {
      return error;
    }
    if (const int error = start_persistent(call, *found)) {
      return error;
    }
  }
  return MPI_SUCCESS;
}

int PMPI_Request_free(MPI_Request* request) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Request_free"), "MPI_Request_free"};
  Request* found = nullptr;
  if (const int error = check_request(call, request, &found)) {
    return error;
  }
  *request = MPI_REQUEST_NULL;
  return call.pass(abandon_request(call.state, *found));
}

int PMPI_Cancel(MPI_Request* request) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Cancel"), "MPI_Cancel"};
  Request* found = nullptr;
  int error = check_request(call, request, &found);
  if (error != MPI_SUCCESS) {
    return error;
  }
  call.comm = found->comm;
  if (!found->is_active) {
    return call.fail(MPI_ERR_REQUEST, "the request is not active");
  }
  runtime::RankContext& context = *call.state.context;
  if (found->type == RequestType::receive && !found->receive.done.done()) {
    (void)context.transport->cancel_receive(*context.endpoint, found->receive);
  } else if (found->type == RequestType::send && !found->send.done.done()) {
    // Taken back if no receive has it yet; else, and if it went at once, it ends as it would have.
    (void)context.transport->cancel_send(*context.endpoint, found->send);
  } else if (found->type == RequestType::generalized && found->generalized.cancel != nullptr) {
    runtime::UserScope user;
    error = found->generalized.cancel(found->generalized.extra_state, found->ended.done() ? 1 : 0);
  }
  return call.pass(error);
}

int PMPI_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                        MPI_Grequest_cancel_function* cancel_fn, void* extra_state,
                        MPI_Request* request) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Grequest_start"), "MPI_Grequest_start"};
  Request* made = create_request(call.state, RequestType::generalized, nullptr);
  if (made == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  made->ended.reset();
  set_empty(made->status);
  made->generalized = {query_fn, free_fn, cancel_fn, extra_state};
  *request = handle_of(made);
  return MPI_SUCCESS;
}

int PMPI_Grequest_complete(MPI_Request request) {
  const CallScope scope;
  Call call{state_of_caller("MPI_Grequest_complete"), "MPI_Grequest_complete"};
  Request* found = nullptr;
  if (const int error = check_request(call, &request, &found)) {
    return error;
  }
  if (found->type != RequestType::generalized || found->ended.done()) {
    return call.fail(MPI_ERR_REQUEST, "the request is not a generalized one under way");
  }
  return call.pass(complete_generalized(call.state, *found));
}

int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const CallScope scope;
  Probe probe{"MPI_Probe", source, tag, comm};
  if (probe.error != MPI_SUCCESS || source == MPI_PROC_NULL) {
    give_null(status);
    return probe.error;
  }
  if (!probe.wait([&](net::MessageWatch* watch) { return probe.look(watch); })) [[unlikely]] {
    return probe.fail_lost();
  }
  probe.fill(status);
  return MPI_SUCCESS;
}

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const CallScope scope;
  Probe probe{"MPI_Iprobe", source, tag, comm};
  *flag = 1;
  if (probe.error != MPI_SUCCESS || source == MPI_PROC_NULL) {
    give_null(status);
    return probe.error;
  }
  if (!probe.look()) {
    test_in_vain(probe.call.state);
    const bool is_in_vain = probe.is_in_vain();
    if (!probe.look()) {
      *flag = 0;
      return is_in_vain ? probe.fail_lost() : MPI_SUCCESS;
    }
  }
  probe.fill(status);
  return MPI_SUCCESS;
}

int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  const CallScope scope;
  Probe probe{"MPI_Mprobe", source, tag, comm};
  if (probe.error != MPI_SUCCESS || source == MPI_PROC_NULL) {
    *message = MPI_MESSAGE_NO_PROC;
    give_null(status);
    return probe.error;
  }
  net::Message* found = nullptr;
  const bool has_come = probe.wait([&](net::MessageWatch* watch) {
    found = probe.take(watch);
    return found != nullptr;
  });
  return has_come ? probe.give(*found, message, status) : probe.fail_lost();
}

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                 MPI_Status* status) {
  const CallScope scope;
  Probe probe{"MPI_Improbe", source, tag, comm};
  *flag = 1;
  if (probe.error != MPI_SUCCESS || source == MPI_PROC_NULL) {
    *message = MPI_MESSAGE_NO_PROC;
    give_null(status);
    return probe.error;
  }
  net::Message* found = probe.take();
  if (found == nullptr) {
    test_in_vain(probe.call.state);
    const bool is_in_vain = probe.is_in_vain();
    found = probe.take();
    if (found == nullptr) {
      *flag = 0;
      return is_in_vain ? probe.fail_lost() : MPI_SUCCESS;
    }
  }
  return probe.give(*found, message, status);
}

}  // extern "C"
}  // namespace sterna::mpi
