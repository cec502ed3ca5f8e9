// The parts of direct messages that are not met every time. See direct.h.
#include "mpi/p2p/direct.h"

#include <utility>

#include "mpi/call_scope.h"
#include "mpi/p2p/enter.h"
#include "mpi/request/wait.h"

namespace sterna::mpi {

bool DirectCaller::stays(runtime::RankContext& context, std::int32_t request) noexcept {
  if (request != runtime::kShuffleRequest || context.shuffle_left <= 1) {
    return false;
  }
  --context.shuffle_left;
  return true;
}

namespace {

/// The receive is right, whichever way it goes: once its send is done it cannot be refused.
[[nodiscard]] bool is_right(const Side& receive, MPI_Comm comm) noexcept {
  DirectCaller caller;
  net::Buffer run;
  if (!DirectCaller::find(caller) || !find_run(receive, run)) {
    return false;
  }
  RankState& state = *caller.state;
  return (state.near.handle == comm || come_near(state, comm)) &&
         (static_cast<std::uint32_t>(receive.peer) < state.near.size ||
          receive.peer == MPI_ANY_SOURCE) &&
         (receive.tag >= 0 || receive.tag == MPI_ANY_TAG);
}

}  // namespace

int try_exchange_direct(const char* function, const Side& send, const Side& receive, MPI_Comm comm,
                        MPI_Status* status) noexcept {
  if (!is_right(receive, comm) || !try_send_direct(send, comm)) {
    return kNotDirect;
  }
  std::uintptr_t place = 0;
  const int result = try_receive_direct(function, receive, comm, status, place);
  return result != kNotDirect ? result : enter_receive(function, receive, comm, status);
}

int conclude_direct(const char* function, RankState& state, Side side,
                    MPI_Status* status) noexcept {
  const CallScope scope;
  Call call{state, function};
  call.comm = state.near.comm;
  Bytes bytes{state};
  (void)bytes.for_receive(side);  // One run: takes no memory.
  net::RecvRequest& receive = state.direct_receive;
  wait_done(state, receive.done);
  // Copies: an error handler of the program may receive, and need not return.
  const net::Envelope envelope = receive.envelope;
  return conclude(call, envelope, std::exchange(receive.fault, net::Fault::none), bytes, status);
}

void look_around_direct(threads::Thread& me) noexcept {
  const CallScope scope;
  threads::look_around(me);
}

void signal_direct(threads::Waiter waiter) noexcept {
  const CallScope scope;
  waiter.signal();
}

}  // namespace sterna::mpi
