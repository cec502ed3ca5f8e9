// Building schedules.
#include <algorithm>
#include <cstring>
#include <new>

#include "mpi/coll/schedule.h"
#include "mpi/op/op.h"

namespace sterna::mpi {
namespace {

// Doubles an array of plain elements in the rank's heap.
template <typename T>
bool grow_array(RankState& state, T** elements, std::uint32_t* capacity, std::uint32_t count,
                std::uint32_t first) noexcept {
  const std::uint32_t wanted = *capacity == 0 ? first : 2 * *capacity;
  T* grown = state.allocate_array<T>(wanted);
  if (grown == nullptr) {
    return false;
  }
  if (count != 0) {
    std::memcpy(static_cast<void*>(grown), static_cast<const void*>(*elements), count * sizeof(T));
  }
  state.deallocate(*elements);
  *elements = grown;
  *capacity = wanted;
  return true;
}

}  // namespace

Builder::Builder(RankState& state, Schedule& schedule) noexcept
    : state_{state}, schedule_{schedule} {
  use(*schedule.comm);
}

void Builder::use(Comm& comm) noexcept {
  comm_ = &comm;
  peers_ = &comm.peers();
  context_ = comm.context_for(ContextUse::collectives);
  rank_ = comm.rank;
  size_ = static_cast<int>(comm.size);
}

void Builder::use_group(const Group& group) noexcept {
  peers_ = &group;
  rank_ = group.rank;
  size_ = static_cast<int>(group.size);
}

Step* Builder::append(StepKind kind) noexcept {
  if (error_ != MPI_SUCCESS) {
    return nullptr;
  }
  Schedule& s = schedule_;
  if (s.step_count == s.step_capacity &&
      !grow_array(state_, &s.steps, &s.step_capacity, s.step_count, 16)) {
    fail(MPI_ERR_NO_MEM);
    return nullptr;
  }
  return ::new (&s.steps[s.step_count++]) Step{kind};
}

void Builder::append_flight() noexcept {
  ++flights_since_fence_;
  if (flights_since_fence_ <= schedule_.flight_capacity) {
    return;
  }
  // Nothing is under way while a schedule is built: the old ones are dropped, not moved.
  const std::uint32_t wanted = schedule_.flight_capacity == 0 ? 4 : 2 * schedule_.flight_capacity;
  auto* grown = state_.allocate_array<Flight>(wanted);
  if (grown == nullptr) {
    fail(MPI_ERR_NO_MEM);
    return;
  }
  for (std::uint32_t i = 0; i < wanted; ++i) {
    ::new (&grown[i]) Flight{};
  }
  state_.deallocate(schedule_.flights);
  schedule_.flights = grown;
  schedule_.flight_capacity = wanted;
}

void Builder::send_bytes_in(std::uint32_t context, const void* from, std::uint64_t bytes,
                            std::uint32_t world) noexcept {
  append_flight();
  if (Step* step = append(StepKind::send)) {
    step->peer = world;
    step->context = context;
    step->from = from;
    step->bytes = bytes;
  }
}

void Builder::receive_bytes_in(std::uint32_t context, void* into, std::uint64_t bytes,
                               std::uint32_t world) noexcept {
  append_flight();
  if (Step* step = append(StepKind::receive)) {
    step->peer = world;
    step->context = context;
    step->into = into;
    step->bytes = bytes;
  }
}

void Builder::send_bytes(const void* from, std::uint64_t bytes, int peer) noexcept {
  send_bytes_in(context_, from, bytes, peers_->world_of(static_cast<std::uint32_t>(peer)));
}

void Builder::receive_bytes(void* into, std::uint64_t bytes, int peer) noexcept {
  receive_bytes_in(context_, into, bytes, peers_->world_of(static_cast<std::uint32_t>(peer)));
}

std::byte* Builder::next_signal() noexcept {
  return schedule_.signals + kSignalBytes * (signals_++ % kSignalsAtOnce);
}

void Builder::signal(int peer) noexcept {
  send_bytes(next_signal(), kSignalBytes, peer);
}

void Builder::await_signal(int peer) noexcept {
  receive_bytes(next_signal(), kSignalBytes, peer);
}

void Builder::send(const void* buffer, MPI_Count count, MPI_Datatype type, int peer) noexcept {
  const TypedBuffer typed = TypedBuffer::of(buffer, count, *find_datatype(type));
  const std::uint64_t bytes = typed.bytes();
  if (bytes == 0) {
    return;
  }
  if (typed.is_one_run()) {
    send_bytes(typed.first_byte(), bytes, peer);
    return;
  }
  std::byte* packed = temporary(bytes);
  pack_bytes(buffer, count, type, packed);
  send_bytes(packed, bytes, peer);
}

void Builder::receive(void* buffer, MPI_Count count, MPI_Datatype type, int peer) noexcept {
  const TypedBuffer typed = TypedBuffer::of(buffer, count, *find_datatype(type));
  const std::uint64_t bytes = typed.bytes();
  if (bytes == 0) {
    return;
  }
  if (typed.is_one_run()) {
    receive_bytes(typed.first_byte(), bytes, peer);
    return;
  }
  std::byte* packed = temporary(bytes);
  receive_bytes(packed, bytes, peer);
  if (auto* place = temporary(sizeof(Pending))) {
    *pending_end_ = ::new (place) Pending{nullptr, packed, buffer, count, type};
    pending_end_ = &(*pending_end_)->next;
  }
}

void Builder::fence() noexcept {
  flights_since_fence_ = 0;
  (void)append(StepKind::fence);
  Pending* pending = pending_;
  pending_ = nullptr;
  pending_end_ = &pending_;
  for (; pending != nullptr; pending = pending->next) {
    unpack_bytes(pending->bytes, pending->into, pending->count, pending->type);
  }
}

void Builder::pack_bytes(const void* from, MPI_Count count, MPI_Datatype type,
                         void* into) noexcept {
  if (Step* step = append(StepKind::pack)) {
    step->from = from;
    step->from_count = count;
    step->from_type = type;
    step->into = into;
    step->bytes = bytes_of(count, type);
  }
}

void Builder::unpack_bytes(const void* from, void* into, MPI_Count count,
                           MPI_Datatype type) noexcept {
  if (pending_ != nullptr) {
    fence();
  }
  flights_since_fence_ = 0;
  if (Step* step = append(StepKind::unpack)) {
    step->from = from;
    step->into = into;
    step->into_count = count;
    step->into_type = type;
    step->bytes = bytes_of(count, type);
  }
}

void Builder::copy(const void* from, MPI_Count from_count, MPI_Datatype from_type, void* into,
                   MPI_Count into_count, MPI_Datatype into_type) noexcept {
  if (bytes_of(from_count, from_type) == 0 || bytes_of(into_count, into_type) == 0) {
    return;
  }
  if (pending_ != nullptr) {
    fence();
  }
  flights_since_fence_ = 0;
  if (Step* step = append(StepKind::copy)) {
    step->from = from;
    step->from_count = from_count;
    step->from_type = from_type;
    step->into = into;
    step->into_count = into_count;
    step->into_type = into_type;
  }
}

void Builder::move(const void* from, void* into, std::uint64_t bytes) noexcept {
  if (pending_ != nullptr) {
    fence();
  }
  flights_since_fence_ = 0;
  if (Step* step = append(StepKind::move_bytes)) {
    step->from = from;
    step->into = into;
    step->bytes = bytes;
  }
}

void Builder::reduce(const void* from, void* into, MPI_Count count, MPI_Datatype type,
                     MPI_Op op) noexcept {
  if (pending_ != nullptr) {
    fence();
  }
  flights_since_fence_ = 0;
  if (Step* step = append(StepKind::reduce)) {
    step->from = from;
    step->into = into;
    step->into_count = count;
    step->into_type = type;
    step->op = op;
  }
}

void Builder::call(int (*function)(RankState&, void*), void* argument) noexcept {
  if (pending_ != nullptr) {
    fence();
  }
  flights_since_fence_ = 0;
  if (Step* step = append(StepKind::call)) {
    step->function = function;
    step->into = argument;
  }
}

std::byte* Builder::temporary(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kHead = 64;  // Of the block, and keeps what follows aligned.
  void* place = error_ == MPI_SUCCESS ? state_.heap().allocate(kHead + bytes, 64) : nullptr;
  if (place == nullptr) {
    fail(MPI_ERR_NO_MEM);
    return nullptr;
  }
  schedule_.blocks = ::new (place) Block{schedule_.blocks};
  return static_cast<std::byte*>(place) + kHead;
}

std::byte* Builder::temporary_of(MPI_Count count, MPI_Datatype type) noexcept {
  const Datatype& t = *find_datatype(type);
  if (count == 0) {
    return temporary(1);
  }
  // Instances lie at 0, extent, 2 * extent ...; a negative extent grows downwards. An operator of
  // the program may copy whole elements of its own, with the gaps that the type has at its ends.
  const MPI_Aint reach = (count - 1) * t.extent;
  MPI_Aint low = t.true_lb;
  MPI_Aint high = t.true_lb + t.true_extent;
  if (t.extent > 0) {
    low = std::min(low, t.lb);
    high = std::max(high, t.lb + t.extent);
  }
  low += reach < 0 ? reach : 0;
  high += reach > 0 ? reach : 0;
  std::byte* base = temporary(static_cast<std::uint64_t>(high - low));
  return base == nullptr ? nullptr : base - low;
}

void Builder::hold(MPI_Datatype type) noexcept {
  if (is_predefined(type) || error_ != MPI_SUCCESS) {
    return;
  }
  Schedule& s = schedule_;
  if (s.held_count == s.held_capacity &&
      !grow_array(state_, &s.held_types, &s.held_capacity, s.held_count, 4)) {
    fail(MPI_ERR_NO_MEM);
    return;
  }
  retain_datatype(type);
  s.held_types[s.held_count++] = type;
}

void Builder::hold_op(MPI_Op op) noexcept {
  if (!is_predefined(op)) {
    retain_op(op);
    schedule_.held_op = op;
  }
}

int Builder::finish() noexcept {
  fence();
  return error_;
}

}  // namespace sterna::mpi
