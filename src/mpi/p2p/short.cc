// See short.h. A process has no slot: its calls need neither a RuntimeScope nor a safe point.
#include "mpi/p2p/short.h"

#include "mpi/call_scope.h"
#include "mpi/p2p/direct.h"
#include "mpi/p2p/enter.h"
#include "mpi/p2p/gather.h"
#include "mpi/request/status.h"
#include "net/transport.h"
#include "runtime/background/background.h"
#include "threads/carriers/border.h"

namespace sterna::mpi {
namespace {

/// The caller has the runtime alone for its life, or is one of several; or is not one that could.
class ShortTurn {
 public:
  explicit ShortTurn(const RankState& state) noexcept
      : caller_{short_way_caller},
        is_alone_{caller_ == nullptr ? !state.is_multiple : caller_->try_enter_briefly()},
        // Before it is shared a second caller goes the usual way, which shares it.
        is_ours_{is_alone_ || caller_ == nullptr || caller_->is_shared()} {}
  ~ShortTurn() {
    if (caller_ != nullptr && is_alone_) {
      caller_->leave_briefly();
    }
  }
  ShortTurn(const ShortTurn&) = delete;
  ShortTurn& operator=(const ShortTurn&) = delete;

  [[nodiscard]] bool is_ours() const noexcept { return is_ours_; }
  [[nodiscard]] bool is_alone() const noexcept { return is_alone_; }

 private:
  progress::OneCaller* const caller_;
  const bool is_alone_;
  const bool is_ours_;
};

/// Large messages are under way, and somebody may be moving them on at this moment: only a call of
/// the usual kind takes the runtime back.
[[nodiscard]] bool is_handed_over() noexcept {
  const runtime::Background* const background =
      runtime::process_background.load(std::memory_order_relaxed);
  return background != nullptr && background->is_away();
}

/// As find_run(), or nothing: MPI's messages without bytes are many.
[[nodiscard, gnu::always_inline]] inline bool find_run_or_nothing(const Side& side,
                                                                  net::Buffer& run) noexcept {
  if (find_run(side, run)) [[likely]] {
    return true;
  }
  run = {};
  return side.count == 0 && is_predefined(side.datatype) && side.buffer != MPI_IN_PLACE &&
         find_datatype(side.datatype) != nullptr;
}

/// Room for what is found beside others: most calls write nothing there.
union NearCommRoom {
  NearCommRoom() noexcept {}
  NearComm comm;
};

/// The communicator, as it is known or found now; null: none. In a turn of the caller's, who beside
/// others does not know what they named last.
[[nodiscard, gnu::always_inline]] inline const NearComm* find_near(RankState& state,
                                                                   MPI_Comm handle,
                                                                   const ShortTurn& turn,
                                                                   NearCommRoom& room) noexcept {
  if (turn.is_alone()) [[likely]] {
    return state.near.handle == handle || come_near(state, handle) ? &state.near : nullptr;
  }
  Comm* const comm = find_comm(state, handle);
  return comm != nullptr ? ::new (&room.comm) NearComm{near_of(handle, *comm)} : nullptr;
}
[[nodiscard, gnu::always_inline]] inline net::Pattern pattern_of(const NearComm& comm,
                                                                 const Side& side) noexcept {
  return {side.peer == MPI_ANY_SOURCE ? net::kAnySource
                                      : comm.world_of(static_cast<std::uint32_t>(side.peer)),
          comm.context, side.tag == MPI_ANY_TAG ? net::kAnyTag : side.tag};
}

/// A wait has to advance collectives, too. Beside others: for a wait that does not end soon.
[[nodiscard]] inline bool has_schedules(const RankState& state, const ShortTurn& turn) noexcept {
  return turn.is_alone() && state.active_schedules != nullptr;
}

[[nodiscard, gnu::always_inline]] inline bool is_plain(const NearComm& comm, const Side& receive,
                                                       net::Buffer& run) noexcept {
  return (static_cast<std::uint32_t>(receive.peer) < comm.size || receive.peer == MPI_ANY_SOURCE) &&
         (receive.tag >= 0 || receive.tag == MPI_ANY_TAG) && find_run_or_nothing(receive, run);
}

[[nodiscard, gnu::always_inline]] inline bool send_in_turn(RankState& state, const ShortTurn& turn,
                                                           const Side& side,
                                                           MPI_Comm handle) noexcept {
  NearCommRoom room;
  const NearComm* const comm = find_near(state, handle, turn, room);
  net::Buffer run;
  if (comm == nullptr || static_cast<std::uint32_t>(side.peer) >= comm->size || side.tag < 0 ||
      !find_run_or_nothing(side, run) || is_handed_over()) {
    return false;
  }
  const runtime::RankContext& context = *state.context;
  return context.transport->try_send_short(
      *context.endpoint,
      {comm->world_of(static_cast<std::uint32_t>(side.peer)), comm->context, side.tag},
      {run.address, run.bytes});
}

}  // namespace

/// A receive that has waited beside others has ended with a fault.
[[gnu::noinline]] static int conclude_short(RankState& state, Side side, Comm& comm,
                                            const net::Envelope& found, net::Fault fault,
                                            MPI_Status* status) noexcept {
  const CallScope scope;
  Call call{state, "MPI_Recv"};
  call.comm = &comm;
  Bytes bytes{state};
  (void)bytes.for_receive(side);  // One run: takes no memory.
  return conclude(call, found, fault, bytes, status);
}

// In each of them the locks of the transport are taken: not to be preempted there.

[[gnu::always_inline]] static inline bool try_send_here(RankState& state, const Side& side,
                                                        MPI_Comm handle) noexcept {
  const threads::RuntimeEntry entry{threads::self_if_any()};
  const ShortTurn turn{state};
  return turn.is_ours() && send_in_turn(state, turn, side, handle);
}

bool try_send_short(RankState& state, const Side& side, MPI_Comm handle) noexcept {
  return try_send_here(state, side, handle);
}

int send_in_process(void* buffer, int count, MPI_Datatype datatype, int peer, int tag,
                    MPI_Comm comm) noexcept {
  const Side side{buffer, count, datatype, peer, tag};
  RankState* const state = short_way();
  if (state != nullptr && try_send_here(*state, side, comm)) [[likely]] {
    return MPI_SUCCESS;
  }
  const Side usual = side;  // Has an address: the other stays in registers.
  return enter_send_slowly("MPI_Send", MessageMode::standard, usual, comm);
}

[[gnu::always_inline]] static inline bool try_isend_here(RankState& state, const Side& side,
                                                         MPI_Comm handle,
                                                         MPI_Request* request) noexcept {
  const threads::RuntimeEntry entry{threads::self_if_any()};
  const ShortTurn turn{state};
  Request* const sent = request != nullptr && turn.is_ours() ? sent_request(state) : nullptr;
  if (sent == nullptr || !send_in_turn(state, turn, side, handle)) {
    return false;
  }
  *request = handle_of(sent);
  return true;
}

[[gnu::always_inline]] static inline int isend_or_enter(const char* function, const Side& side,
                                                        MPI_Comm comm,
                                                        MPI_Request* request) noexcept {
  RankState* const state = short_way();
  if (state != nullptr && try_isend_here(*state, side, comm, request)) [[likely]] {
    return MPI_SUCCESS;
  }
  const Side usual = side;
  return enter_isend(function, MessageMode::standard, usual, comm, request);
}

int isend_in_process(void* buffer, int count, MPI_Datatype datatype, int peer, int tag,
                     MPI_Comm comm, MPI_Request* request) noexcept {
  return isend_or_enter("MPI_Isend", {buffer, count, datatype, peer, tag}, comm, request);
}
int isend_c_in_process(void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                       MPI_Comm comm, MPI_Request* request) noexcept {
  return isend_or_enter("MPI_Isend_c", {buffer, count, datatype, peer, tag}, comm, request);
}

[[gnu::always_inline]] static inline bool try_ireceive_here(RankState& state, const Side& side,
                                                            MPI_Comm handle,
                                                            MPI_Request* request) noexcept {
  const threads::RuntimeEntry entry{threads::self_if_any()};
  const ShortTurn turn{state};
  if (!turn.is_ours()) {
    return false;
  }
  NearCommRoom room;
  const NearComm* const comm = find_near(state, handle, turn, room);
  net::Buffer run;
  if (comm == nullptr || request == nullptr || !is_plain(*comm, side, run) ||
      run.bytes >= kLargeReceiveBytes || is_handed_over()) {
    return false;
  }
  Request* const made = create_plain_receive(state, *comm->comm);
  if (made == nullptr) {
    return false;
  }
  *request = handle_of(made);
  const runtime::RankContext& context = *state.context;
  context.transport->receive_run(*context.endpoint, made->receive, pattern_of(*comm, side),
                                 run.address, run.bytes);
  return true;
}

[[gnu::always_inline]] static inline int ireceive_or_enter(const char* function, const Side& side,
                                                           MPI_Comm comm,
                                                           MPI_Request* request) noexcept {
  RankState* const state = short_way();
  if (state != nullptr && try_ireceive_here(*state, side, comm, request)) [[likely]] {
    return MPI_SUCCESS;
  }
  const Side usual = side;
  return enter_ireceive(function, usual, comm, request);
}

int ireceive_in_process(void* buffer, int count, MPI_Datatype datatype, int peer, int tag,
                        MPI_Comm comm, MPI_Request* request) noexcept {
  return ireceive_or_enter("MPI_Irecv", {buffer, count, datatype, peer, tag}, comm, request);
}
int ireceive_c_in_process(void* buffer, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                          MPI_Comm comm, MPI_Request* request) noexcept {
  return ireceive_or_enter("MPI_Irecv_c", {buffer, count, datatype, peer, tag}, comm, request);
}

bool is_plain_receive(RankState& state, const Side& side, MPI_Comm handle) noexcept {
  const ShortTurn turn{state};
  if (!turn.is_ours()) {
    return false;
  }
  NearCommRoom room;
  const NearComm* const comm = find_near(state, handle, turn, room);
  net::Buffer run;
  return comm != nullptr && !is_handed_over() && !has_schedules(state, turn) &&
         is_plain(*comm, side, run);
}

bool is_plain_nothing(const Side& side) noexcept {
  net::Buffer run;
  return side.peer == MPI_PROC_NULL && side.tag >= 0 && find_run_or_nothing(side, run);
}

/// What the entry point returns, or kNotDirect.
[[gnu::always_inline]] static inline int try_receive_here(RankState& state, const Side& side,
                                                          MPI_Comm handle,
                                                          MPI_Status* status) noexcept {
  const threads::RuntimeEntry entry{threads::self_if_any()};
  const ShortTurn turn{state};
  if (!turn.is_ours()) {
    return kNotDirect;
  }
  NearCommRoom room;
  const NearComm* const comm = find_near(state, handle, turn, room);
  net::Buffer run;
  if (comm == nullptr || is_handed_over() || has_schedules(state, turn) ||
      !is_plain(*comm, side, run)) {
    return kNotDirect;
  }
  const runtime::RankContext& context = *state.context;
  net::Envelope found;
  net::Fault fault = net::Fault::none;
  // Who waits longer has to advance collectives, as in wait_done().
  const bool may_wait = state.active_schedules == nullptr;
  if (!context.transport->try_receive_short(*context.endpoint, pattern_of(*comm, side),
                                            {run.address, run.bytes}, found,
                                            may_wait ? &fault : nullptr)) {
    return kNotDirect;
  }
  if (fault != net::Fault::none) [[unlikely]] {
    return conclude_short(state, side, *comm->comm, found, fault, status);
  }
  if (status != MPI_STATUS_IGNORE) {
    set_status(*status, comm->comm->peers().index_of(found.source), found.tag, found.bytes);
  }
  return MPI_SUCCESS;
}

int try_receive_short(RankState& state, const Side& side, MPI_Comm handle,
                      MPI_Status* status) noexcept {
  return try_receive_here(state, side, handle, status);
}

extern "C" int sterna_mpi_receive_in_process(void* buffer, int count, MPI_Datatype datatype,
                                             int peer, int tag, MPI_Comm comm,
                                             MPI_Status* status) noexcept {
  const Side side{buffer, count, datatype, peer, tag};
  RankState* const state = short_way();
  const int result =
      state != nullptr ? try_receive_here(*state, side, comm, status) : kNotDirect;
  if (result != kNotDirect) [[likely]] {
    return result;
  }
  const Side usual = side;
  return enter_receive_slowly("MPI_Recv", usual, comm, status);
}

}  // namespace sterna::mpi
