// Making intercommunicators, and merging them.
#include <cstring>

#include "mpi/comm/create.h"

namespace sterna::mpi {
namespace {

// What the leaders exchange first.
struct Greeting {
  std::uint32_t size = 0;     // Of the group.
  std::uint32_t context = 0;  // An offer.
  std::uint32_t leader = 0;   // Rank in the job.
  std::uint32_t local = 0;    // For the group's own communicator; not for the other side.
  int is_high = 0;
};

// Both leaders send, then receive, in the schedule's tag.
void build_exchange(Builder& b, std::uint32_t context, std::uint32_t world, const void* from,
                    void* into, std::uint64_t from_bytes, std::uint64_t into_bytes) noexcept {
  b.receive_bytes_in(context, into, into_bytes, world);
  b.send_bytes_in(context, from, from_bytes, world);
  b.fence();
}

// Runs a schedule among call.comm with another tag for the messages between the leaders.
template <typename Build>
int run_with_tag(Call& call, int tag, Build build) noexcept {
  Schedule* schedule = create_schedule(call.state, *call.comm, tag);
  if (schedule == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  Builder b{call.state, *schedule};
  build(b);
  const int error = b.finish();
  if (error != MPI_SUCCESS) {
    destroy_schedule(call.state, schedule);
    return call.pass(error);
  }
  return perform(call, {call.function}, schedule);
}

int tell_all(Call& call, int leader, void* bytes, std::uint64_t count) noexcept {
  return run_collective(call, {call.function}, [&](Builder& b) {
    build_bcast_bytes(b, static_cast<std::byte*>(bytes), count, leader);
  });
}

void list_members(const Group& group, std::uint32_t* members) noexcept {
  for (std::uint32_t i = 0; i < group.size; ++i) {
    members[i] = group.world_of(i);
  }
}

Comm* assemble(RankState& state, const Comm& local, const std::uint32_t* remote,
               const Greeting& mine, const Greeting& theirs) noexcept {
  const bool is_low = mine.leader < theirs.leader;
  local.group->retain();
  Comm* made = create_comm(state, local.group, is_low ? mine.context : theirs.context, &local);
  if (made == nullptr) {
    return nullptr;
  }
  made->is_low_group = is_low;
  made->remote = create_group(state, remote, theirs.size);
  local.group->retain();
  made->local = create_comm(state, local.group, mine.local, nullptr);
  if (made->remote == nullptr || made->local == nullptr) {
    release_comm(state, made);
    return nullptr;
  }
  return made;
}

}  // namespace

int create_inter(Call& call, const Meeting& meeting, Comm** result) noexcept {
  RankState& state = call.state;
  Comm& local = *call.comm;
  const bool is_leader = local.rank == meeting.local_leader;
  Greeting greetings[2];  // Own, theirs.
  Greeting& mine = greetings[0];
  Greeting& theirs = greetings[1];
  const std::uint32_t context = is_leader ? meeting.bridge->context_for(ContextUse::creation) : 0;
  const std::uint32_t world =
      is_leader
          ? meeting.bridge->peers().world_of(static_cast<std::uint32_t>(meeting.remote_leader))
          : 0;
  *result = nullptr;
  if (is_leader) {
    mine = {local.size, reserve_context(state), state.context->rank, reserve_context(state), 0};
    const int error = run_with_tag(call, meeting.tag, [&](Builder& b) {
      build_exchange(b, context, world, &mine, &theirs, sizeof(Greeting), sizeof(Greeting));
    });
    if (error != MPI_SUCCESS) {
      return error;
    }
  }
  if (const int error = tell_all(call, meeting.local_leader, greetings, sizeof greetings)) {
    return error;
  }
  auto* own_list = state.allocate_array<std::uint32_t>(local.size);
  auto* remote_list = state.allocate_array<std::uint32_t>(theirs.size);
  int error =
      own_list == nullptr || remote_list == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
  if (error == MPI_SUCCESS && is_leader) {
    list_members(*local.group, own_list);
    error = run_with_tag(call, meeting.tag, [&](Builder& b) {
      build_exchange(b, context, world, own_list, remote_list, local.size * sizeof(std::uint32_t),
                     theirs.size * sizeof(std::uint32_t));
    });
  }
  if (error == MPI_SUCCESS) {
    error = tell_all(call, meeting.local_leader, remote_list, theirs.size * sizeof(std::uint32_t));
  }
  if (error == MPI_SUCCESS) {
    *result = assemble(state, local, remote_list, mine, theirs);
    error = *result == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
  }
  state.deallocate(own_list);
  state.deallocate(remote_list);
  return error;
}

int merge_inter(Call& call, bool is_high, Comm** result) noexcept {
  RankState& state = call.state;
  Comm& inter = *call.comm;
  Greeting greetings[2];
  Greeting& mine = greetings[0];
  Greeting& theirs = greetings[1];
  mine = {inter.size, 0, 0, 0, is_high ? 1 : 0};
  if (inter.rank == 0) {
    mine.context = reserve_context(state);
  }
  *result = nullptr;
  const int error = run_collective(call, {call.function}, [&](Builder& b) {
    if (inter.rank == 0) {
      build_exchange(b, inter.context_for(ContextUse::collectives), inter.remote->world_of(0),
                     &mine, &theirs, sizeof(Greeting), sizeof(Greeting));
    }
    b.use(*inter.local);
    build_bcast_bytes(b, reinterpret_cast<std::byte*>(greetings), sizeof greetings, 0);
  });
  if (error != MPI_SUCCESS) {
    return error;
  }
  const bool is_first = mine.is_high != theirs.is_high ? mine.is_high == 0 : inter.is_low_group;
  const Group& first = is_first ? *inter.group : *inter.remote;
  const Group& second = is_first ? *inter.remote : *inter.group;
  auto* members = state.allocate_array<std::uint32_t>(first.size + second.size);
  if (members == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  list_members(first, members);
  list_members(second, members + first.size);
  *result = create_comm(state, create_group(state, members, first.size + second.size),
                        is_first ? mine.context : theirs.context, &inter);
  state.deallocate(members);
  return *result == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
}

}  // namespace sterna::mpi
