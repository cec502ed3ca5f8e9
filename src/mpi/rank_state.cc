// Making and ending the MPI state of a rank.
#include "mpi/rank_state.h"

#include <cstring>
#include <utility>

#include "mpi/coll/schedule.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/error.h"
#include "mpi/group/group.h"
#include "mpi/p2p/buffered.h"
#include "mpi/request/request.h"

namespace sterna::mpi {
namespace {

Comm* create_predefined(RankState& state, std::uint32_t first, std::uint32_t size,
                        std::uint32_t context, const char* name) noexcept {
  Comm* comm = create_comm(state, create_group_of_range(state, first, size), context, nullptr);
  if (comm != nullptr) {
    comm->is_predefined = true;
    std::strcpy(comm->name, name);
  }
  return comm;
}

// Blocks of the free lists; what the program did not free stays in the heap, as with any library.
void free_lists(RankState& state) noexcept {
  if (Request* const sent = state.sent.exchange(nullptr, std::memory_order_relaxed)) {
    state.destroy(sent);
  }
  while (state.free_requests != nullptr) {
    Request* request = state.free_requests;
    state.free_requests = request->next;
    state.destroy(request);
  }
  while (state.free_schedules != nullptr) {
    Schedule* schedule = state.free_schedules;
    state.free_schedules = schedule->next;
    state.deallocate(schedule->steps);
    state.deallocate(schedule->flights);
    state.deallocate(schedule->held_types);
    state.destroy(schedule);
  }
}

}  // namespace

int open_state(runtime::RankContext& context, int thread_level) noexcept {
  void* place = context.heap->allocate(sizeof(RankState), 64);
  if (place == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  auto* state = ::new (place) RankState{context};
  state->thread_level = thread_level;
  state->is_multiple = thread_level == MPI_THREAD_MULTIPLE;
  context.mpi = state;
  // The first numbers of all ranks are set aside: MPI_COMM_WORLD has the first of rank 0, which all
  // know, and MPI_COMM_SELF the second of each.
  const std::uint32_t first = reserve_context(*state);
  const std::uint32_t second = reserve_context(*state);
  (void)first;
  state->world = create_predefined(*state, 0, context.size, kContextsPerComm, "MPI_COMM_WORLD");
  state->self = create_predefined(*state, context.rank, 1, second, "MPI_COMM_SELF");
  state->empty_group = create_group_of_range(*state, 0, 0);
  if (state->world == nullptr || state->self == nullptr || state->empty_group == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  (void)come_near(*state, MPI_COMM_WORLD);
  state->phase.store(Phase::running, std::memory_order_release);
  return MPI_SUCCESS;
}

void close_state(RankState& state) noexcept {
  (void)come_near(state, MPI_COMM_WORLD);  // It ends first: no other one is looked up afterwards.
  (void)delete_all_attributes(state, MPI_COMM_WORLD, state.world->attributes);
  release_comm(state, state.world);
  release_comm(state, state.self);
  release_group(state, state.empty_group);
  release_buffers(state, state.buffers);
  state.deallocate(state.attribute_values);
  free_lists(state);
  state.near = {};
  state.world = nullptr;
  state.self = nullptr;
  state.empty_group = nullptr;
  state.buffers = nullptr;
  state.attribute_values = nullptr;
  // The state itself stays: it says that the rank is finalized.
  state.phase.store(Phase::finalized, std::memory_order_release);
}

}  // namespace sterna::mpi
