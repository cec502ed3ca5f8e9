// Making communicators: contexts are given by a leader and told to the others; no lock, no search.
#include "mpi/comm/create.h"

#include <algorithm>
#include <cstring>

#include "mpi/topo/topology.h"

namespace sterna::mpi {
namespace {

// What the leader of a new communicator tells; 0: it had no number left.
struct Agreement {
  std::uint32_t context = 0;  // Of the communicator, or of an intercommunicator.
  std::uint32_t local = 0;    // Of an intercommunicator's local one.
  std::uint32_t other = 0;    // Of the other side's.
  Comm* made = nullptr;       // Of this rank.
};

int adopt_contexts(RankState&, void* argument) {
  const auto& agreement = *static_cast<Agreement*>(argument);
  const bool is_inter = agreement.made->local != nullptr;
  if (agreement.context == 0 || (is_inter && (agreement.local == 0 || agreement.other == 0))) {
    return MPI_ERR_OTHER;
  }
  agreement.made->context = agreement.context;
  if (is_inter) {
    agreement.made->local->context = agreement.local;
  }
  return MPI_SUCCESS;
}

// Rank 0 reserves and tells. Of an intercommunicator: that of the lower group tells the other one,
// which says what it has itself: who has no number left fails on both sides.
void build_agreement(Builder& b, Comm& old, Agreement& agreement) noexcept {
  RankState& state = b.state();
  constexpr std::size_t kBytes = sizeof(std::uint32_t);
  auto* numbers = reinterpret_cast<std::byte*>(&agreement);
  if (!old.is_inter()) {
    if (old.rank == 0) {
      agreement.context = reserve_context(state);
    }
    build_bcast_bytes(b, numbers, kBytes, 0);
    return;
  }
  if (old.rank == 0) {
    agreement.local = reserve_context(state);
    if (old.is_low_group) {
      agreement.context = reserve_context(state);
      b.receive_bytes(&agreement.other, kBytes, 0);
      b.send_bytes(&agreement.context, kBytes, 0);
    } else {
      agreement.other = agreement.local;  // The lower group has a local one if it has a context.
      b.receive_bytes(&agreement.context, kBytes, 0);
      b.send_bytes(&agreement.local, kBytes, 0);
    }
    b.fence();
  }
  b.use(*old.local);
  build_bcast_bytes(b, numbers, 3 * kBytes, 0);
  b.use(old);
}

Comm* copy_shape(RankState& state, const Comm& old) noexcept {
  old.group->retain();
  Comm* made = create_comm(state, old.group, 0, &old);
  if (made == nullptr || !old.is_inter()) {
    return made;
  }
  old.remote->retain();
  made->remote = old.remote;
  made->is_low_group = old.is_low_group;
  made->local = copy_shape(state, *old.local);
  if (made->local == nullptr) {
    release_comm(state, made);
    return nullptr;
  }
  return made;
}

int finish_creation(Call& call, int error, Comm* made, Comm** result) noexcept {
  if (error != MPI_SUCCESS) {
    release_comm(call.state, made);
    made = nullptr;
  }
  *result = made;
  return error;
}

}  // namespace

int duplicate_comm(Call& call, const Entry& entry, Comm** result) noexcept {
  RankState& state = call.state;
  Comm& old = *call.comm;
  Comm* made = copy_shape(state, old);
  if (made == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  if (old.topology != nullptr) {
    made->topology = copy_topology(state, old);
  }
  if (old.topology != nullptr && made->topology == nullptr) {
    release_comm(state, made);
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  int error = copy_attributes(state, handle_of(state, &old), old.attributes,
                              reinterpret_cast<MPI_Comm>(made), made->attributes);
  if (error != MPI_SUCCESS) {
    release_comm(state, made);
    return call.pass(error);
  }
  error = run_collective(call, entry, [&](Builder& b) {
    std::byte* place = b.temporary(sizeof(Agreement));
    if (place != nullptr) {
      auto* agreement = ::new (place) Agreement{};
      agreement->made = made;
      build_agreement(b, old, *agreement);
      b.call(adopt_contexts, agreement);
    }
  });
  return finish_creation(call, error, made, result);
}

int split_comm(Call& call, int color, int key, Comm** result) noexcept {
  struct Choice {
    int color;
    int key;
    std::uint32_t context;
    std::uint32_t world;
  };
  RankState& state = call.state;
  Comm& comm = *call.comm;
  *result = nullptr;
  auto* choices = state.allocate_array<Choice>(comm.size);
  auto* members = state.allocate_array<std::uint32_t>(comm.size);
  if (choices == nullptr || members == nullptr) {
    state.deallocate(choices);
    state.deallocate(members);
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  // Each offers a context, the leaders' ones are taken.
  const std::uint32_t offered = color == MPI_UNDEFINED ? 0 : reserve_context(state);
  choices[comm.rank] = {color, key, offered, state.context->rank};
  const int error = run_collective(call, {call.function}, [&](Builder& b) {
    build_allgather(b, {MPI_IN_PLACE, 0, MPI_BYTE},
                    Parts::equal({choices, sizeof(Choice), MPI_BYTE}));
  });
  Comm* made = nullptr;
  if (error == MPI_SUCCESS && color != MPI_UNDEFINED) {
    Choice* const end = std::remove_if(choices, choices + comm.size,
                                       [&](const Choice& c) { return c.color != color; });
    // Equal keys keep the order of the old ranks. (std::stable_sort would take memory of libc.)
    const auto count = static_cast<std::uint32_t>(end - choices);
    const Comm* old = &comm;
    std::sort(choices, end, [old](const Choice& a, const Choice& b) {
      return a.key != b.key ? a.key < b.key
                            : old->group->index_of(a.world) < old->group->index_of(b.world);
    });
    for (std::uint32_t i = 0; i < count; ++i) {
      members[i] = choices[i].world;
    }
    const std::uint32_t context = choices[0].context;
    if (context != 0) {
      made = create_comm(state, create_group(state, members, count), context, &comm);
    }
    if (context != offered) {
      return_context(state, offered);
    }
  }
  state.deallocate(choices);
  state.deallocate(members);
  if (error == MPI_SUCCESS && color != MPI_UNDEFINED && made == nullptr) {
    return call.fail(MPI_ERR_OTHER, "no memory or no context number is left");
  }
  *result = made;
  return error;
}

namespace {

int create_with(Call& call, Group& group, Schedule* schedule, std::uint32_t context_of_messages,
                Comm** result) noexcept {
  RankState& state = call.state;
  Agreement agreement;
  group.retain();
  Comm* made = create_comm(state, &group, 0, call.comm);
  if (made == nullptr) {
    destroy_schedule(state, schedule);
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  agreement.made = made;
  Builder b{state, *schedule};
  b.use_group(group);
  b.use_context(context_of_messages);
  if (group.rank == 0) {
    agreement.context = reserve_context(state);
  }
  build_bcast_bytes(b, reinterpret_cast<std::byte*>(&agreement.context), sizeof(std::uint32_t), 0);
  b.call(adopt_contexts, &agreement);
  const int error = b.finish();
  if (error != MPI_SUCCESS) {
    destroy_schedule(state, schedule);
    return finish_creation(call, call.pass(error), made, result);
  }
  return finish_creation(call, perform(call, {call.function}, schedule), made, result);
}

}  // namespace

int create_from_group(Call& call, Group& group, Comm** result) noexcept {
  const int tag = call.comm->next_collective_tag();
  *result = nullptr;
  if (group.rank == MPI_UNDEFINED) {
    return MPI_SUCCESS;
  }
  Schedule* schedule = create_schedule(call.state, *call.comm, tag);
  return schedule == nullptr ? call.fail_plain(MPI_ERR_NO_MEM)
                             : create_with(call, group, schedule,
                                           call.comm->context_for(ContextUse::collectives), result);
}

int create_among_group(Call& call, Group& group, int tag, Comm** result) noexcept {
  *result = nullptr;
  if (group.rank == MPI_UNDEFINED) {
    return MPI_SUCCESS;
  }
  Schedule* schedule = create_schedule(call.state, *call.comm, tag);
  return schedule == nullptr ? call.fail_plain(MPI_ERR_NO_MEM)
                             : create_with(call, group, schedule,
                                           call.comm->context_for(ContextUse::creation), result);
}

int free_comm(RankState& state, Comm* comm) noexcept {
  const int error = delete_all_attributes(state, handle_of(state, comm), comm->attributes);
  if (error == MPI_SUCCESS) {
    release_comm(state, comm);
  }
  return error;
}

}  // namespace sterna::mpi
