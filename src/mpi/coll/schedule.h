// A collective operation as a program of steps: messages, and local work between them. Building one
// sends nothing; running it to its end is a blocking collective, a step at a time a non-blocking
// one, again and again a persistent one.
//
// Messages of adjacent steps are under way together. Steps that read what arrived or write what is
// being sent wait for all messages before them: local ones do so themselves, fence() between
// messages. The order of local steps is that of building: results depend on the numbers of ranks
// only, never on who came first or where a rank lives.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "mpi/comm/comm.h"
#include "mpi/datatype/datatype.h"
#include "net/message.h"

namespace sterna::mpi {

struct Request;

/// Who runs the steps: a call of the program, or another thread in its place, which leaves
/// functions of the program to the program.
enum class Runner : std::uint8_t { program, background };

/// What a step does. Fenced: waits for all messages before it.
enum class StepKind : std::uint8_t {
  send,        // `bytes` at `from` to rank `peer` of the job.
  receive,     // `bytes` at `into`.
  pack,        // Typed `from` into bytes at `into`; not fenced: nothing before it writes `from`.
  fence,       // Waits only.
  unpack,      // Bytes at `from` into typed `into`. Fenced.
  copy,        // Typed to typed. Fenced.
  move_bytes,  // `bytes` from `from` into `into`. Fenced.
  reduce,      // into = from op into. Fenced.
  call,        // function(state, argument). Fenced.
};

struct Step {
  StepKind kind;
  std::uint32_t peer = 0;
  std::uint32_t context = 0;
  const void* from = nullptr;
  void* into = nullptr;
  std::uint64_t bytes = 0;
  MPI_Count from_count = 0;
  MPI_Count into_count = 0;
  MPI_Datatype from_type = MPI_DATATYPE_NULL;
  MPI_Datatype into_type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  int (*function)(RankState& state, void* argument) = nullptr;
};

/// One message of the steps under way.
struct Flight {
  bool is_send = false;
  net::SendRequest send;
  net::RecvRequest receive;
  [[nodiscard]] progress::Completion& done() noexcept { return is_send ? send.done : receive.done; }
};

struct Block {
  Block* next;
};

/// A message without data has more than a byte: it differs from what is sent after an error.
inline constexpr std::uint64_t kSignalBytes = 2;
inline constexpr std::uint32_t kSignalsAtOnce = 32;  // From partners at distances that double.

/// Guard: whoever runs it. One in RankState::active_schedules is run by the holder of
/// `RankState::is_advancing` only.
struct Schedule {
  Schedule* next = nullptr;  // Free list, or the active ones.
  Comm* comm = nullptr;      // One reference.
  int tag = 0;
  int error = MPI_SUCCESS;  // Of the first step that failed; the rest still runs, sending nothing.
  Step* steps = nullptr;
  std::uint32_t step_count = 0;
  std::uint32_t step_capacity = 0;
  std::uint32_t position = 0;  // Next step to do.
  Flight* flights = nullptr;
  std::uint32_t flight_capacity = 0;   // The most messages between two fences.
  std::uint32_t flight_count = 0;      // Under way, or ended but not looked at.
  std::uint32_t flight_ended = 0;      // Of them, seen to be done.
  Block* blocks = nullptr;             // Temporary memory.
  MPI_Datatype* held_types = nullptr;  // References, for those that outlive the call.
  std::uint32_t held_count = 0;
  std::uint32_t held_capacity = 0;
  MPI_Op held_op = MPI_OP_NULL;
  void (*cleanup)(RankState& state, void* argument) = nullptr;  // Called when it is destroyed.
  void* cleanup_argument = nullptr;
  progress::Completion ended;  // Of one in the active list.
  // What signals bring, which says nothing; those of a schedule come side by side.
  std::byte signals[kSignalBytes * kSignalsAtOnce] = {};
};

/// From the free list, or new; null: no memory.
[[nodiscard]] Schedule* create_schedule(RankState& state, Comm& comm, int tag) noexcept;
void destroy_schedule(RankState& state, Schedule* schedule) noexcept;
/// Runs as far as `runner` can without waiting. True: it has ended.
bool advance(RankState& state, Schedule& schedule, Runner runner = Runner::program) noexcept;
/// What it waits for, when advance() said false.
[[nodiscard]] progress::Completion* blocker(Schedule& schedule) noexcept;
/// Runs it to its end on the caller. Returns schedule.error. Switches; may move the rank.
int run(RankState& state, Schedule& schedule) noexcept;
/// Back to its first step. It is not under way.
void rewind(Schedule& schedule) noexcept;
/// Lets every wait and test of the rank advance it, and who progresses while the program of
/// a process computes (runtime/background/background.h), until schedule.ended.
void activate(RankState& state, Schedule& schedule) noexcept;
/// Advances those that are active.
void advance_active(RankState& state, Runner runner) noexcept;

/// Appends steps. The first error (no memory) sticks, then nothing more is appended.
class Builder {
 public:
  Builder(RankState& state, Schedule& schedule) noexcept;

  [[nodiscard]] RankState& state() noexcept { return state_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] Comm& comm() noexcept { return *comm_; }
  [[nodiscard]] int error() const noexcept { return error_; }
  void fail(int error) noexcept { error_ = error_ == MPI_SUCCESS ? error : error_; }

  /// Peers are ranks of comm from here on (of its remote group, if it has one).
  void use(Comm& comm) noexcept;
  /// Peers are members of the group, in the same context as before.
  void use_group(const Group& group) noexcept;

  /// Messages go in this context from here on.
  void use_context(std::uint32_t context) noexcept { context_ = context; }

  // Typed messages: packed and unpacked where the type needs it. No bytes: no message.
  void send(const void* buffer, MPI_Count count, MPI_Datatype type, int peer) noexcept;
  void receive(void* buffer, MPI_Count count, MPI_Datatype type, int peer) noexcept;
  // Raw messages, also of 0 bytes.
  void send_bytes(const void* from, std::uint64_t bytes, int peer) noexcept;
  void receive_bytes(void* into, std::uint64_t bytes, int peer) noexcept;
  void send_bytes_in(std::uint32_t context, const void* from, std::uint64_t bytes,
                     std::uint32_t world) noexcept;
  void receive_bytes_in(std::uint32_t context, void* into, std::uint64_t bytes,
                        std::uint32_t world) noexcept;

  // Messages that say only that somebody is there.
  void signal(int peer) noexcept;
  void await_signal(int peer) noexcept;

  void fence() noexcept;
  void copy(const void* from, MPI_Count from_count, MPI_Datatype from_type, void* into,
            MPI_Count into_count, MPI_Datatype into_type) noexcept;
  void pack_bytes(const void* from, MPI_Count count, MPI_Datatype type, void* into) noexcept;
  void unpack_bytes(const void* from, void* into, MPI_Count count, MPI_Datatype type) noexcept;
  void move(const void* from, void* into, std::uint64_t bytes) noexcept;
  /// into[i] = from[i] op into[i].
  void reduce(const void* from, void* into, MPI_Count count, MPI_Datatype type, MPI_Op op) noexcept;
  void call(int (*function)(RankState&, void*), void* argument) noexcept;

  /// Memory until the schedule is destroyed; null (and error()): none left.
  [[nodiscard]] std::byte* temporary(std::uint64_t bytes) noexcept;
  /// Room for `count` instances of a type, shifted so that it may be used as a buffer of that type.
  [[nodiscard]] std::byte* temporary_of(MPI_Count count, MPI_Datatype type) noexcept;
  /// A reference until the schedule is destroyed.
  void hold(MPI_Datatype type) noexcept;
  void hold_op(MPI_Op op) noexcept;

  /// Ends the building. Returns error().
  int finish() noexcept;

 private:
  Step* append(StepKind kind) noexcept;
  void append_flight() noexcept;
  [[nodiscard]] std::byte* next_signal() noexcept;

  RankState& state_;
  Schedule& schedule_;
  Comm* comm_ = nullptr;
  const Group* peers_ = nullptr;
  std::uint32_t context_ = 0;
  int rank_ = 0;
  int size_ = 0;
  int error_ = MPI_SUCCESS;
  std::uint32_t flights_since_fence_ = 0;
  std::uint32_t signals_ = 0;  // So far.
  struct Pending {
    Pending* next;
    std::byte* bytes;
    void* into;
    MPI_Count count;
    MPI_Datatype type;
  };
  Pending* pending_ = nullptr;
  Pending** pending_end_ = &pending_;
};

/// Displacement in memory between adjacent instances, of a type that is valid.
[[nodiscard]] inline MPI_Aint extent_of(MPI_Datatype type) noexcept {
  return find_datatype(type)->extent;
}
[[nodiscard]] inline std::uint64_t bytes_of(MPI_Count count, MPI_Datatype type) noexcept {
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(find_datatype(type)->bytes);
}
[[nodiscard]] inline std::byte* at(void* buffer, MPI_Count index, MPI_Aint extent) noexcept {
  return static_cast<std::byte*>(buffer) + index * extent;
}
[[nodiscard]] inline const std::byte* at(const void* buffer, MPI_Count index,
                                         MPI_Aint extent) noexcept {
  return static_cast<const std::byte*>(buffer) + index * extent;
}

}  // namespace sterna::mpi
