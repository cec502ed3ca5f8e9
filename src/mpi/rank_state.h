// All that MPI keeps for one rank, reachable from RankContext::mpi. It lies in the rank's system
// heap and moves with the rank as bytes: plain structures and addresses of the rank's slot only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <mpi.h>

#include "base/spin_lock.h"
#include "mpi/heap_user.h"
#include "mpi/object.h"
#include "net/message.h"
#include "runtime/rank_context.h"

namespace sterna::mpi {

struct Comm;
struct Group;
struct Request;
struct Schedule;
struct Keyval;
struct BufferPool;

/// Where the rank is between its start and its end.
enum class Phase : std::uint8_t {
  before_init,  // MPI_Init has not been called; few functions may be.
  running,      // Between MPI_Init and MPI_Finalize.
  finalizing,   // MPI_Finalize calls the delete functions of MPI_COMM_SELF.
  finalized,    // After MPI_Finalize.
};

/// What point-to-point calls need of the communicator that they named last.
struct NearComm {
  MPI_Comm handle = MPI_COMM_WORLD;
  Comm* comm = nullptr;
  // Of its Comm::peers(): members, or (without) the first of them, in the job.
  const std::uint32_t* members = nullptr;
  std::uint32_t first = 0;
  std::uint32_t size = 0;
  std::uint32_t context = 0;  // For messages.

  [[nodiscard]] std::uint32_t world_of(std::uint32_t index) const noexcept {
    return members == nullptr ? first + index : members[index];
  }
};

/// Waits for one rank that followed each other closely: p2p/gather.h.
struct CloseWaits {
  std::uint32_t source = ~std::uint32_t{0};
  std::uint32_t count = 0;
  std::uint32_t limit = 64;
  std::uint64_t last_ns = 0;
};

struct RankState : HeapUser {
  explicit RankState(runtime::RankContext& rank_context) noexcept
      : HeapUser{*rank_context.heap}, context{&rank_context} {}

  // Constant after MPI_Init.
  runtime::RankContext* context;
  Comm* world = nullptr;
  Comm* self = nullptr;
  Group* empty_group = nullptr;
  int thread_level = MPI_THREAD_SINGLE;
  // Several threads may call: locks are taken. At MPI_THREAD_MULTIPLE; in a process from the first
  // call of a second thread on (progress/one_caller.h), by whom it is written.
  bool is_multiple = false;
  std::uintptr_t main_thread =
      0;  // Which thread called MPI_Init: its stack's slot or thread pointer.

  // True while a thread advances the active schedules: set by exchange (acquire), cleared
  // (release).
  std::atomic<bool> is_advancing{false};

  // Of the rank's main thread: direct messages (p2p/direct.h). The receive has no fault and no
  // extents while it is idle.
  NearComm near;
  net::RecvRequest direct_receive;
  CloseWaits close_waits;

  // Written by the threads that call MPI_Init and MPI_Finalize.
  std::atomic<Phase> phase{Phase::before_init};

  // Of sent_request(). Written by the thread that was quickest (release), and by free_lists().
  std::atomic<Request*> sent{nullptr};

  SpinLock lock;  // Guards what follows; held for a few instructions, never across a switch.
  Request* free_requests = nullptr;
  Request* orphans = nullptr;  // Freed by the program while under way.
  Schedule* free_schedules = nullptr;
  Schedule* active_schedules = nullptr;  // Non-blocking collectives that every wait advances.
  Keyval* keyvals = nullptr;
  int next_keyval = 0;
  BufferPool* buffers = nullptr;                          // MPI_Buffer_attach.
  MPI_Errhandler self_errhandler = MPI_ERRORS_ARE_FATAL;  // Of errors that belong to no object.
  std::uint32_t next_context = 0;    // The rank's next communicator as a leader; comm/context.cc.
  void* attribute_values = nullptr;  // Values of the predefined attributes; attribute/.
  void* datatypes = nullptr;         // Root of what datatype/ keeps.
  void* ops = nullptr;               // Root of what op/ keeps.
};

/// The state of the calling rank, or null before MPI_Init made it.
[[nodiscard]] inline RankState* find_state() noexcept {
  runtime::RankContext* context = runtime::find_current_rank();
  return context == nullptr ? nullptr : static_cast<RankState*>(context->mpi);
}

/// The same between MPI_Init and MPI_Finalize; else stops the job with a sentence that names the
/// function: no error handler exists then. Call it inside a RuntimeScope.
[[noreturn, gnu::cold]] void fail_outside_job(const char* function) noexcept;
[[nodiscard]] inline RankState& state_of_caller(const char* function) noexcept {
  RankState* state = find_state();
  if (state == nullptr || state->phase.load(std::memory_order_relaxed) == Phase::before_init ||
      state->phase.load(std::memory_order_relaxed) == Phase::finalized) [[unlikely]] {
    fail_outside_job(function);
  }
  return *state;
}

/// Takes a lock of the rank's state where several threads may call.
class StateGuard {
 public:
  explicit StateGuard(RankState& state) noexcept : state_{state.is_multiple ? &state : nullptr} {
    if (state_ != nullptr) {
      state_->lock.lock();
    }
  }
  ~StateGuard() {
    if (state_ != nullptr) {
      state_->lock.unlock();
    }
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  RankState* const state_;
};

/// MPI_Init and MPI_Finalize: make and end the state of the calling rank. The result is an error
/// class. open_state is local; close_state frees all that the program left behind. May switch.
int open_state(runtime::RankContext& context, int thread_level) noexcept;
void close_state(RankState& state) noexcept;

}  // namespace sterna::mpi
