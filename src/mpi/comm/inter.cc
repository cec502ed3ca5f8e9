// Making intercommunicators, and merging them.
#include <cstring>

#include "mpi/comm/create.h"

namespace sterna::mpi {
namespace {

// What the leaders exchange first.
struct Greeting {
  std::uint32_t size = 0;     // Of the group; 0: no context number is left, or it is not known.
  std::uint32_t context = 0;  // An offer.
  std::uint32_t leader = 0;   // Rank in the job.
  std::uint32_t local = 0;    // For the group's own communicator; not for the other side.
  int is_high = 0;
};

constexpr const char* kNoContext = "no context number is left";

// Both leaders send, then receive, in the schedule's tag.
void build_exchange(Builder& b, std::uint32_t context, std::uint32_t world, const void* from,
                    void* into, std::uint64_t from_bytes, std::uint64_t into_bytes) noexcept {
  b.receive_bytes_in(context, into, into_bytes, world);
  b.send_bytes_in(context, from, from_bytes, world);
  b.fence();
}

// Runs a schedule among call.comm. Who has met an `error` before takes part all the same, and tells
// of it: the others wait for its messages. Returns the first error, which nobody has reported yet.
template <typename Build>
int run_after(Call& call, int error, int tag, Build build) noexcept {
  Schedule* schedule = create_schedule(call.state, *call.comm, tag);
  if (schedule == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  Builder b{call.state, *schedule};
  build(b);
  int outcome = b.finish();
  if (outcome == MPI_SUCCESS) {
    schedule->error = error;
    outcome = run(call.state, *schedule);
  }
  destroy_schedule(call.state, schedule);
  return outcome;
}

// In the same tree whatever the length: whom the first call has reached the second one can.
int tell_all(Call& call, int error, int leader, void* bytes, std::uint64_t count) noexcept {
  return run_after(call, error, call.comm->next_collective_tag(), [&](Builder& b) {
    build_bcast_tree(b, static_cast<std::byte*>(bytes), count, leader);
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

// Where a leader meets the other one.
struct Bridge {
  std::uint32_t context;
  std::uint32_t world;
  int tag;
};

// The first step: all of a group learn the sizes and the offers of both.
int exchange_greetings(Call& call, const Bridge* bridge, int leader,
                       Greeting (&greetings)[2]) noexcept {
  RankState& state = call.state;
  int error = MPI_SUCCESS;
  if (bridge != nullptr) {
    // The offer that may not be taken is the last, which can be returned.
    Greeting& mine = greetings[0];
    mine.local = reserve_context(state);
    mine.context = reserve_context(state);
    mine.leader = state.context->rank;
    mine.size = mine.context == 0 ? 0 : call.comm->size;
    error = run_after(call, error, bridge->tag, [&](Builder& b) {
      build_exchange(b, bridge->context, bridge->world, &mine, &greetings[1], sizeof(Greeting),
                     sizeof(Greeting));
    });
  }
  return tell_all(call, error, leader, greetings, sizeof greetings);
}

int no_memory_after(int error, const void* block) noexcept {
  return error == MPI_SUCCESS && block == nullptr ? MPI_ERR_NO_MEM : error;
}

// The second step, of all that know both sizes: `remote` becomes the members of the other group.
int exchange_members(Call& call, const Bridge* bridge, int leader, int error, std::uint32_t* remote,
                     std::uint64_t remote_bytes) noexcept {
  if (bridge != nullptr) {
    const Group& group = *call.comm->group;
    auto* own = call.state.allocate_array<std::uint32_t>(group.size);
    if (own != nullptr) {
      list_members(group, own);
    }
    error = run_after(call, no_memory_after(error, own), bridge->tag, [&](Builder& b) {
      build_exchange(b, bridge->context, bridge->world, own, remote,
                     group.size * sizeof(std::uint32_t), remote_bytes);
    });
    call.state.deallocate(own);
  }
  return tell_all(call, error, leader, remote, remote_bytes);
}

int meet(Call& call, const Bridge* bridge, int leader, Greeting (&greetings)[2],
         Comm** result) noexcept {
  RankState& state = call.state;
  const Greeting& mine = greetings[0];
  const Greeting& theirs = greetings[1];
  int error = exchange_greetings(call, bridge, leader, greetings);
  if (mine.size == 0 || theirs.size == 0) {
    return error == MPI_SUCCESS ? call.fail(MPI_ERR_OTHER, kNoContext) : call.pass(error);
  }
  // Who has no memory for it takes part all the same: others wait for what it passes on, and for
  // the error of a leader.
  auto* remote = state.allocate_array<std::uint32_t>(theirs.size);
  error = exchange_members(call, bridge, leader, no_memory_after(error, remote), remote,
                           remote == nullptr ? 0 : theirs.size * sizeof(std::uint32_t));
  if (error == MPI_SUCCESS) {
    *result = assemble(state, *call.comm, remote, mine, theirs);
    error = *result == nullptr ? MPI_ERR_NO_MEM : MPI_SUCCESS;
  }
  state.deallocate(remote);
  return call.pass(error);
}

}  // namespace

int create_inter(Call& call, const Meeting& meeting, Comm** result) noexcept {
  Bridge bridge{};
  const bool is_leader = call.comm->rank == meeting.local_leader;
  if (is_leader) {
    bridge = {meeting.bridge->context_for(ContextUse::creation),
              meeting.bridge->peers().world_of(static_cast<std::uint32_t>(meeting.remote_leader)),
              meeting.tag};
  }
  *result = nullptr;
  Greeting greetings[2];  // Own, theirs.
  const int error =
      meet(call, is_leader ? &bridge : nullptr, meeting.local_leader, greetings, result);
  if (is_leader && (*result == nullptr || !(*result)->is_low_group)) {
    return_context(call.state, greetings[0].context);
  }
  if (is_leader && *result == nullptr) {
    return_context(call.state, greetings[0].local);
  }
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
  const std::uint32_t context = is_first ? mine.context : theirs.context;
  if (inter.rank == 0 && !is_first) {
    return_context(state, mine.context);
  }
  if (context == 0) {  // The same on both sides.
    return call.fail(MPI_ERR_OTHER, kNoContext);
  }
  const Group& first = is_first ? *inter.group : *inter.remote;
  const Group& second = is_first ? *inter.remote : *inter.group;
  auto* members = state.allocate_array<std::uint32_t>(first.size + second.size);
  if (members == nullptr) {
    return call.fail_plain(MPI_ERR_NO_MEM);
  }
  list_members(first, members);
  list_members(second, members + first.size);
  *result = create_comm(state, create_group(state, members, first.size + second.size), context,
                        &inter);
  state.deallocate(members);
  return *result == nullptr ? call.fail_plain(MPI_ERR_NO_MEM) : MPI_SUCCESS;
}

}  // namespace sterna::mpi
