// Short messages between ranks of one worker, without leaving the rank's thread pointer: no
// RuntimeScope, so nothing of it may touch thread-local storage (errno, malloc, exceptions, logs).
// Whatever is unusual is refused before anything has happened, and the entry point goes on as
// usual: wrong arguments, derived types, MPI_PROC_NULL, MPI_THREAD_MULTIPLE, collectives under way,
// a rank that shall move, process mode.
//
// Inline: for the entry points themselves. Each instruction counts: a message takes some 40 ns.
#pragma once

#include <mpi.h>

#include "memory/thread_slot.h"
#include "mpi/p2p/message.h"
#include "mpi/request/status.h"
#include "net/matching/direct.h"
#include "net/transport.h"
#include "runtime/safe_point.h"
#include "threads/wait/handover.h"

namespace sterna::mpi {

inline constexpr std::uint64_t kDirectBytesMax = 1024;
inline constexpr int kNotDirect = -1;  // No error class.

/// From now on the main thread of the rank may make direct messages, or (null) may not.
inline void set_direct(memory::RankSlot& slot, RankState* state) noexcept {
  slot.mpi = state;
  if (state != nullptr) {
    state->context->transport->direct_way().lead(slot);
  }
  memory::set_thread_slot(slot, state != nullptr ? &slot : nullptr);
}

/// A rank's only thread, in its own code, with nothing under way that a wait must look after.
struct DirectCaller {
  RankState* state = nullptr;
  memory::RankSlot* slot = nullptr;
  std::int32_t move_request = -1;  // As it was seen: nobody asks, or it shuffles and stays now.

  [[nodiscard, gnu::always_inline]] static bool find(DirectCaller& caller) noexcept {
    memory::RankSlot* const slot = memory::thread_slot;
    if (slot == nullptr) [[unlikely]] {
      return false;
    }
    RankState* const state = static_cast<RankState*>(slot->mpi);
    // A program may have stacks of its own; the runtime knows the way back from a rank's only.
    if (!slot->stack.contains(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) ||
        state->active_schedules != nullptr) [[unlikely]] {
      return false;
    }
    caller = {state, slot, slot->move_request.load(std::memory_order_relaxed)};
    return caller.move_request < 0 || stays(*state->context, caller.move_request);
  }

 private:
  /// This is a safe point too: of a rank that shuffles they are counted.
  [[nodiscard]] static bool stays(runtime::RankContext& context, std::int32_t request) noexcept;
};

/// MPI_Sendrecv: what the entry point returns, or kNotDirect. Switches.
[[nodiscard]] int try_exchange_direct(const char* function, const Side& send, const Side& receive,
                                      MPI_Comm comm, MPI_Status* status) noexcept;

/// Goes on where the receive of `state`, of these arguments, is done with a fault, or was
/// interrupted.
[[nodiscard]] int conclude_direct(const char* function, RankState& state, Side side,
                                  MPI_Status* status) noexcept;
void signal_direct(threads::Waiter waiter) noexcept;
/// The look that is due before a switch.
void look_around_direct(threads::Thread& me) noexcept;

/// MPI_Send, complete. False: not here, not now.
[[nodiscard, gnu::always_inline]] inline bool try_send_direct(const Side& side,
                                                              MPI_Comm comm) noexcept {
  DirectCaller caller;
  net::Buffer run;
  if (!DirectCaller::find(caller) || !find_run(side, run) || run.bytes > kDirectBytesMax)
      [[unlikely]] {
    return false;
  }
  RankState& state = *caller.state;
  threads::Thread& me = *caller.slot->thread;
  if (state.near.handle != comm && !come_near(state, comm)) [[unlikely]] {
    return false;
  }
  if (static_cast<std::uint32_t>(side.peer) >= state.near.size || side.tag < 0 ||
      !threads::enter_runtime(me)) [[unlikely]] {
    return false;
  }
  threads::Waiter receiver;
  const bool is_sent = net::DirectWay::of(*caller.slot)
                           .try_send(*caller.slot,
                                     {state.near.world_of(static_cast<std::uint32_t>(side.peer)),
                                      state.near.context, side.tag},
                                     run.address, run.bytes, receiver);
  if (receiver) [[unlikely]] {
    signal_direct(receiver);
  }
  threads::leave_runtime(me);
  return is_sent;
}

/// MPI_Recv: what the entry point returns, or kNotDirect: not here, not now. `place` is left for
/// whoever goes on here, if the caller waits, and is what was left for it then (handover.h).
/// Switches.
[[nodiscard, gnu::always_inline]] inline int try_receive_direct(const char* function,
                                                                const Side& side, MPI_Comm comm,
                                                                MPI_Status* status,
                                                                std::uintptr_t& place) noexcept {
  DirectCaller caller;
  net::Buffer run;
  if (!DirectCaller::find(caller) || !find_run(side, run) || run.bytes > kDirectBytesMax)
      [[unlikely]] {
    return kNotDirect;
  }
  RankState& state = *caller.state;
  threads::Thread& me = *caller.slot->thread;
  if (state.near.handle != comm && !come_near(state, comm)) [[unlikely]] {
    return kNotDirect;
  }
  const NearComm& near = state.near;
  const bool is_any = side.peer == MPI_ANY_SOURCE;
  if ((!is_any && static_cast<std::uint32_t>(side.peer) >= near.size) ||
      (side.tag < 0 && side.tag != MPI_ANY_TAG) || !threads::enter_runtime(me)) [[unlikely]] {
    return kNotDirect;
  }
  if (threads::is_look_due(me)) [[unlikely]] {
    look_around_direct(me);
  }
  threads::leave_word(me, place);
  state.direct_receive.data.address = run.address;
  state.direct_receive.data.bytes = run.bytes;
  memory::RankSlot* const volatile kept = caller.slot;  // As in DirectSection::leave_for().
  const net::DirectReceive outcome =
      net::DirectWay::of(*caller.slot)
          .receive(*caller.slot, caller.move_request, state.direct_receive,
                   {is_any ? net::kAnySource : near.world_of(static_cast<std::uint32_t>(side.peer)),
                    near.context, side.tag == MPI_ANY_TAG ? net::kAnyTag : side.tag});
  memory::RankSlot& slot = *kept;
  place = threads::word_left(*slot.thread);
  threads::leave_runtime(*slot.thread);
  if (outcome == net::DirectReceive::refused) [[unlikely]] {
    return kNotDirect;
  }
  RankState& again = *static_cast<RankState*>(slot.mpi);
  const net::RecvRequest& receive = again.direct_receive;
  if (outcome != net::DirectReceive::received || receive.fault != net::Fault::none) [[unlikely]] {
    return conclude_direct(function, again, side, status);
  }
  if (status != MPI_STATUS_IGNORE) {
    set_status(*status, again.near.comm->peers().index_of(receive.envelope.source),
               receive.envelope.tag, receive.envelope.bytes);
  }
  return MPI_SUCCESS;
}

}  // namespace sterna::mpi
