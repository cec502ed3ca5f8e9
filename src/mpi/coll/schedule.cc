// Running schedules: blocking, a step at a time, or again and again.
#include "mpi/coll/schedule.h"

#include <cstring>
#include <new>

#include "mpi/errors/error.h"
#include "mpi/op/op.h"
#include "mpi/p2p/message.h"
#include "mpi/request/request.h"
#include "mpi/request/wait.h"
#include "net/transport.h"
#include "runtime/background/background.h"
#include "runtime/runtime.h"
#include "runtime/safe_point.h"

namespace sterna::mpi {
namespace {

constexpr std::uint32_t kFreeSchedulesKeepSteps = 256;  // Larger programs give their memory back.
// Of a message, a few times what it costs to wake a thread for its answer.
constexpr std::uint64_t kLengthyNs = 20'000;
constexpr std::uint32_t kStepsLookedAt = 8;  // Messages; what the rest is like they tell.

void free_blocks(RankState& state, Schedule& schedule) noexcept {
  while (schedule.blocks != nullptr) {
    Block* block = schedule.blocks;
    schedule.blocks = block->next;
    state.deallocate(block);
  }
}

void set_error(Schedule& schedule, int error) noexcept {
  if (schedule.error == MPI_SUCCESS) {
    schedule.error = error;
  }
}

// After an error (a peer is lost) what a rank would send is wrong. The others wait for a message,
// so a shorter one goes: who gets it ends with an error as well, instead of a wrong result, and
// tells others in the same way. Its length says which error; one byte is the least that differs
// from nothing.
constexpr std::uint64_t kTellsLoss = 1;

std::uint64_t bytes_after(int error, std::uint64_t bytes) noexcept {
  return error == MPI_ERR_PROC_ABORTED && bytes > kTellsLoss ? kTellsLoss : 0;
}

int error_told(std::uint64_t bytes) noexcept {
  return bytes == kTellsLoss ? MPI_ERR_PROC_ABORTED : MPI_ERR_OTHER;
}

// True: all messages so far have ended.
bool settle(Schedule& schedule) noexcept {
  while (schedule.flight_ended < schedule.flight_count) {
    Flight& flight = schedule.flights[schedule.flight_ended];
    if (!flight.done().done()) {
      return false;
    }
    const net::Fault fault = flight.is_send ? flight.send.fault : flight.receive.fault;
    if (fault != net::Fault::none) {
      set_error(schedule, class_of_fault(fault));
    } else if (!flight.is_send && flight.receive.envelope.bytes < flight.receive.data.bytes) {
      set_error(schedule, error_told(flight.receive.envelope.bytes));
    }
    ++schedule.flight_ended;
  }
  schedule.flight_count = 0;
  schedule.flight_ended = 0;
  return true;
}

void start_message(RankState& state, Schedule& schedule, const Step& step) noexcept {
  Flight& flight = schedule.flights[schedule.flight_count++];
  flight.is_send = step.kind == StepKind::send;
  runtime::RankContext& context = *state.context;
  if (flight.is_send) {
    flight.send.done.reset();
    const std::uint64_t bytes =
        schedule.error == MPI_SUCCESS ? step.bytes : bytes_after(schedule.error, step.bytes);
    context.transport->send(*context.endpoint, flight.send, {step.peer, step.context, schedule.tag},
                            net::Buffer::of(step.from, bytes));
  } else {
    flight.receive.done.reset();
    flight.receive.is_beside_sends = true;
    context.transport->receive(*context.endpoint, flight.receive,
                               {step.peer, step.context, schedule.tag},
                               net::Buffer::of(step.into, step.bytes));
  }
}

/// Not to be done beside the program: it may call a function of the program.
bool is_of_program(const Step& step) noexcept {
  return step.kind == StepKind::call || (step.kind == StepKind::reduce && !is_predefined(step.op));
}

/// Its messages take so long that it is worth while to wake who moves it on while the program
/// computes. Large ones also count where they are quick: to copy them takes time.
bool is_lengthy(const RankState& state, const Schedule& schedule) noexcept {
  std::uint32_t looked = 0;
  for (std::uint32_t i = 0; i < schedule.step_count && looked < kStepsLookedAt; ++i) {
    const Step& step = schedule.steps[i];
    if (step.kind != StepKind::send && step.kind != StepKind::receive) {
      continue;
    }
    ++looked;
    if (step.bytes >= kLargeBytes ||
        state.context->transport->expected_ns(step.peer, step.bytes) >= kLengthyNs) {
      return true;
    }
  }
  return false;
}

void work(RankState& state, Schedule& schedule, const Step& step) noexcept {
  const auto typed = [](const void* address, MPI_Count count, MPI_Datatype type) {
    return TypedBuffer::of(address, count, *find_datatype(type));
  };
  switch (step.kind) {
    case StepKind::pack:
      (void)pack(typed(step.from, step.from_count, step.from_type), 0,
                 {static_cast<std::byte*>(step.into), step.bytes});
      break;
    case StepKind::unpack:
      (void)unpack(typed(step.into, step.into_count, step.into_type), 0,
                   {static_cast<const std::byte*>(step.from), step.bytes});
      break;
    case StepKind::copy:
      (void)copy_typed(typed(step.from, step.from_count, step.from_type),
                       typed(step.into, step.into_count, step.into_type));
      break;
    case StepKind::move_bytes:
      if (step.bytes != 0) {
        std::memmove(step.into, step.from, step.bytes);
      }
      break;
    case StepKind::reduce:
      reduce(step.op, step.into_type, step.from, step.into, step.into_count);
      break;
    case StepKind::call: {
      const int error = step.function(state, step.into);
      if (error != MPI_SUCCESS) {
        set_error(schedule, error);
      }
      break;
    }
    case StepKind::send:
    case StepKind::receive:
    case StepKind::fence:
      break;
  }
}

}  // namespace

Schedule* create_schedule(RankState& state, Comm& comm, int tag) noexcept {
  Schedule* schedule = nullptr;
  {
    StateGuard guard{state};
    schedule = state.free_schedules;
    if (schedule != nullptr) {
      state.free_schedules = schedule->next;
    }
  }
  if (schedule == nullptr) {
    schedule = state.create<Schedule>();
  }
  if (schedule != nullptr) {
    schedule->next = nullptr;
    schedule->comm = &comm;
    comm.retain();
    schedule->tag = tag;
    schedule->error = MPI_SUCCESS;
    schedule->step_count = 0;
    schedule->ended.reset();
    rewind(*schedule);
  }
  return schedule;
}

void destroy_schedule(RankState& state, Schedule* schedule) noexcept {
  if (schedule->cleanup != nullptr) {
    schedule->cleanup(state, schedule->cleanup_argument);
    schedule->cleanup = nullptr;
  }
  free_blocks(state, *schedule);
  for (std::uint32_t i = 0; i < schedule->held_count; ++i) {
    release_datatype(state.heap(), schedule->held_types[i]);
  }
  schedule->held_count = 0;
  if (schedule->held_op != MPI_OP_NULL) {
    release_op(state.heap(), schedule->held_op);
    schedule->held_op = MPI_OP_NULL;
  }
  release_comm(state, schedule->comm);
  schedule->comm = nullptr;
  if (schedule->step_capacity > kFreeSchedulesKeepSteps ||
      schedule->flight_capacity > kFreeSchedulesKeepSteps) {
    state.deallocate(schedule->steps);
    state.deallocate(schedule->flights);
    state.deallocate(schedule->held_types);
    state.destroy(schedule);
    return;
  }
  StateGuard guard{state};
  schedule->next = state.free_schedules;
  state.free_schedules = schedule;
}

bool advance(RankState& state, Schedule& schedule, Runner runner) noexcept {
  while (schedule.position < schedule.step_count) {
    const Step& step = schedule.steps[schedule.position];
    if (step.kind == StepKind::send || step.kind == StepKind::receive) {
      start_message(state, schedule, step);
    } else if (step.kind == StepKind::pack || settle(schedule)) {
      if (runner == Runner::background && is_of_program(step)) {
        return false;
      }
      work(state, schedule, step);
    } else {
      return false;
    }
    ++schedule.position;
  }
  return settle(schedule);
}

progress::Completion* blocker(Schedule& schedule) noexcept {
  return schedule.flight_ended < schedule.flight_count
             ? &schedule.flights[schedule.flight_ended].done()
             : nullptr;
}

int run(RankState& state, Schedule& schedule) noexcept {
  while (!advance(state, schedule)) {
    wait_done(state, *blocker(schedule));
  }
  return schedule.error;
}

void rewind(Schedule& schedule) noexcept {
  schedule.position = 0;
  schedule.flight_count = 0;
  schedule.flight_ended = 0;
  schedule.error = MPI_SUCCESS;
}

void activate(RankState& state, Schedule& schedule) noexcept {
  schedule.ended.reset();
  if (advance(state, schedule)) {
    schedule.ended.complete();
    return;
  }
  {
    StateGuard guard{state};
    schedule.next = state.active_schedules;
    state.active_schedules = &schedule;
  }
  runtime::Background* const background = state.context->runtime->background();
  if (background != nullptr && is_lengthy(state, schedule)) {
    background->want();
  }
}

void advance_active(RankState& state, Runner runner) noexcept {
  if (state.active_schedules == nullptr ||
      state.is_advancing.exchange(true, std::memory_order_acquire)) {
    return;
  }
  // New ones come in front and only this thread takes one out, so `link` stays valid between looks.
  Schedule** link = &state.active_schedules;
  for (;;) {
    Schedule* schedule = nullptr;
    {
      StateGuard guard{state};
      schedule = *link;
    }
    if (schedule == nullptr) {
      break;
    }
    if (!advance(state, *schedule, runner)) {
      link = &schedule->next;
      continue;
    }
    {
      StateGuard guard{state};
      Schedule** place = &state.active_schedules;
      while (*place != schedule) {
        place = &(*place)->next;
      }
      *place = schedule->next;
      link = place;
    }
    schedule->ended.complete();
  }
  state.is_advancing.store(false, std::memory_order_release);
}

void advance_schedules(RankState& state) noexcept {
  advance_active(state, Runner::program);
}

}  // namespace sterna::mpi
