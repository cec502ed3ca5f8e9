// See direct.h.
#include "mpi/p2p/direct.h"

#include "base/thread_pointer.h"
#include "base/trace.h"
#include "mpi/p2p/enter.h"
#include "mpi/request/status.h"
#include "mpi/request/wait.h"
#include "net/transport.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::mpi {
namespace {

/// A rank's only thread, in its own code, with nothing under way that a wait must look after,
/// and nobody records what it does.
struct Caller {
  RankState* state = nullptr;
  memory::RankSlot* slot = nullptr;
  std::int32_t move_request = -1;  // As it was seen: nobody asks, or it shuffles and stays now.

  [[nodiscard, gnu::always_inline]] static bool find(Caller& caller) noexcept {
    memory::RankSlot* const slot = memory::rank_slot_of(__builtin_frame_address(0));
    if (slot == nullptr || slot->thread_pointer != thread_pointer()) {
      return false;
    }
    auto* const context = static_cast<runtime::RankContext*>(slot->context);
    if (context == nullptr || context->mpi == nullptr) {
      return false;
    }
    RankState& state = *static_cast<RankState*>(context->mpi);
    if (state.phase.load(std::memory_order_relaxed) != Phase::running || !state.is_direct ||
        state.active_schedules != nullptr || trace::is_on()) {
      return false;
    }
    caller = {&state, slot, slot->move_request.load(std::memory_order_relaxed)};
    return caller.move_request < 0 || stays(*context, caller.move_request);
  }

 private:
  /// This is a safe point too: of a rank that shuffles they are counted.
  [[nodiscard]] static bool stays(runtime::RankContext& context, std::int32_t request) noexcept {
    if (request != runtime::kShuffleRequest || context.shuffle_left <= 1) {
      return false;
    }
    --context.shuffle_left;
    return true;
  }
};

[[gnu::noinline]] int conclude_slowly(const char* function, RankState& state, Comm& comm,
                                      net::RecvRequest& receive, const Side& side,
                                      MPI_Status* status) noexcept {
  runtime::RuntimeScope scope;
  Call call{state, function};
  call.comm = &comm;
  Bytes bytes{state};
  (void)bytes.for_receive(side);  // One run: takes no memory.
  wait_done(state, receive.done);
  return conclude(call, receive, bytes, status);
}

[[gnu::noinline]] void signal_slowly(threads::Waiter waiter) noexcept {
  runtime::RuntimeScope scope;
  waiter.signal();
}

}  // namespace

bool try_send_direct(const Side& side, MPI_Comm handle) noexcept {
  Caller caller;
  net::Buffer run;
  if (!Caller::find(caller) || !find_run(side, run) || run.bytes > kDirectBytesMax) {
    return false;
  }
  const threads::RuntimeEntry entry{caller.slot->thread};
  const Comm* const comm = find_comm(*caller.state, handle);
  if (comm == nullptr || static_cast<std::uint32_t>(side.peer) >= comm->peers().size ||
      side.tag < 0) {
    return false;
  }
  const runtime::RankContext& context = *caller.state->context;
  threads::Waiter receiver;
  if (!context.transport->try_send_direct(*context.endpoint, *caller.slot,
                                          target_of(*comm, side.peer, side.tag),
                                          {run.address, run.bytes}, receiver)) {
    return false;
  }
  if (receiver) [[unlikely]] {
    signal_slowly(receiver);
  }
  return true;
}

bool try_receive_direct(const char* function, const Side& side, MPI_Comm handle, MPI_Status* status,
                        int& result) noexcept {
  Caller caller;
  net::Buffer run;
  if (!Caller::find(caller) || !find_run(side, run) || run.bytes > kDirectBytesMax) {
    return false;
  }
  const threads::RuntimeEntry entry{caller.slot->thread};
  Comm* const comm = find_comm(*caller.state, handle);
  if (comm == nullptr ||
      (static_cast<std::uint32_t>(side.peer) >= comm->peers().size &&
       side.peer != MPI_ANY_SOURCE) ||
      (side.tag < 0 && side.tag != MPI_ANY_TAG)) {
    return false;
  }
  const runtime::RankContext& context = *caller.state->context;
  net::RecvRequest receive;
  const net::DirectReceive outcome =
      context.transport->receive_direct(*context.endpoint, *caller.slot, caller.move_request,
                                        receive, pattern_of(*comm, side.peer, side.tag), run);
  if (outcome == net::DirectReceive::refused) {
    return false;
  }
  if (outcome == net::DirectReceive::interrupted || receive.fault != net::Fault::none)
      [[unlikely]] {
    result = conclude_slowly(function, *caller.state, *comm, receive, side, status);
    return true;
  }
  if (status != MPI_STATUS_IGNORE) {
    set_status(*status, comm->peers().index_of(receive.envelope.source), receive.envelope.tag,
               receive.envelope.bytes);
  }
  result = MPI_SUCCESS;
  return true;
}

}  // namespace sterna::mpi
