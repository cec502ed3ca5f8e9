// What the layers above the runtime need of the rank that calls: who it is, and its way to the
// network.
//
// In node mode the context lies in the rank's slot and moves with it; what points into node memory
// (node, transport, progress) is set again when the rank arrives. In process mode there is one
// context, of the process.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/heap.h"
#include "memory/rank_slot.h"
#include "threads/waiter.h"

namespace sterna::net {
class Transport;
struct Endpoint;
}  // namespace sterna::net

namespace sterna::progress {
class Progress;
}

namespace sterna::runtime {

class Runtime;

struct RankContext {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;  // Ranks of the job.
  // Node memory: read again after every call that switches.
  Runtime* runtime = nullptr;
  net::Transport* transport = nullptr;
  progress::Progress* progress = nullptr;
  // The rank's own, constant.
  net::Endpoint* endpoint = nullptr;
  memory::Heap* heap = nullptr;      // The system heap: what the runtime keeps for this rank.
  memory::RankSlot* slot = nullptr;  // Null in process mode.
  std::uint32_t shuffle_every = 0;   // For tests: moves at every n-th safe point (safe_point.h).
  std::uint32_t shuffle_left = 0;    // Safe points until then.
  std::uint64_t shuffle_state = 0;   // Of its random numbers.
  std::atomic<std::uint64_t> polled_cycles{0};  // Of tests in vain in process mode: the last poll.
  // Messages of the C API that have ended and whose callbacks are still to be called, the last one
  // first (capi/message_callback.h). Any thread pushes; who calls them takes all.
  std::atomic<threads::Listener*> ended_messages{nullptr};
  // The kernel thread that calls them at this moment, or the slot of a mobile rank; 0: none does.
  std::atomic<std::uintptr_t> callback_caller{0};
  // Roots of the MPI state (mpi/rank_state.h) and of what there is without it (mpi/any_time.h);
  // owned by src/mpi. The second is stored once (release) by whichever thread of the rank is first.
  void* mpi = nullptr;
  std::atomic<void*> mpi_any_time{nullptr};
  // Said to the launcher, by whatever node the rank was on.
  bool has_initialized_mpi = false;
  bool has_finalized_mpi = false;
};

/// The rank whose code called into the runtime, or null outside of a job's life: before
/// Runtime::open_process, after it closed. From any kernel thread of a process-mode program, and
/// any thread of a rank.
[[nodiscard]] RankContext* find_current_rank() noexcept;

/// As find_current_rank, where there must be one.
[[nodiscard]] inline RankContext& current_rank() noexcept {
  RankContext* context = find_current_rank();
  check(context != nullptr, "a call that needs a rank is made between start and end of a job");
  return *context;
}

}  // namespace sterna::runtime
