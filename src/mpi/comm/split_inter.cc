// Splitting an intercommunicator: of each color those on both sides make one of their own (MPI-5.0
// §7.4.2).
#include <algorithm>

#include "mpi/comm/create.h"

namespace sterna::mpi {
namespace {

/// What a rank wants, and the contexts it offers: those of leaders are taken.
struct Choice {
  int color = MPI_UNDEFINED;
  int key = 0;
  std::uint32_t rank = 0;  // In its group.
  std::uint32_t world = 0;
  std::uint32_t context = 0;  // Of the intercommunicator.
  std::uint32_t local = 0;    // Of its side's own communicator.
};

/// One side: all choices, then those of one color, in the new order.
struct Side {
  Choice* choices = nullptr;
  std::uint32_t count = 0;

  void keep(int color) noexcept {
    Choice* const end =
        std::remove_if(choices, choices + count, [&](const Choice& c) { return c.color != color; });
    count = static_cast<std::uint32_t>(end - choices);
    std::sort(choices, end, [](const Choice& a, const Choice& b) {
      return a.key != b.key ? a.key < b.key : a.rank < b.rank;
    });
  }
};

Group* group_of(RankState& state, const Side& side) noexcept {
  auto* members = state.allocate_array<std::uint32_t>(side.count);
  if (members == nullptr) {
    return nullptr;
  }
  for (std::uint32_t i = 0; i < side.count; ++i) {
    members[i] = side.choices[i].world;
  }
  Group* const group = create_group(state, members, side.count);
  state.deallocate(members);
  return group;
}

/// Both sides tell the other one, and their own members, what they want: one collective, so that a
/// tag is taken once, and who fails says so to all.
int tell_choices(Call& call, const Choice& mine, Side& own, Side& remote) noexcept {
  constexpr auto kBytes = static_cast<MPI_Count>(sizeof(Choice));
  Comm& inter = *call.comm;
  own.choices[inter.rank] = mine;
  return run_collective(call, {call.function}, [&](Builder& b) {
    b.use(*inter.local);
    build_allgather(b, {MPI_IN_PLACE, 0, MPI_BYTE}, Parts::equal({own.choices, kBytes, MPI_BYTE}));
    b.use(inter);
    b.fence();
    build_allgather(b, Data::of(&mine, kBytes, MPI_BYTE),
                    Parts::equal({remote.choices, kBytes, MPI_BYTE}));
  });
}

/// Null: no memory, or no context was left.
Comm* assemble(RankState& state, const Comm& old, const Side& own, const Side& remote,
               std::uint32_t context) noexcept {
  const std::uint32_t local_context = own.choices[0].local;
  if (context == 0 || local_context == 0) {
    return nullptr;
  }
  Group* const group = group_of(state, own);
  if (group == nullptr) {
    return nullptr;
  }
  group->retain();
  Comm* const made = create_comm(state, group, context, &old);
  if (made == nullptr) {
    return nullptr;
  }
  made->is_low_group = old.is_low_group;
  made->remote = group_of(state, remote);
  made->local = create_comm(state, group, local_context, nullptr);
  if (made->remote == nullptr || made->local == nullptr) {
    release_comm(state, made);
    return nullptr;
  }
  return made;
}

void return_unused(RankState& state, std::uint32_t offered, std::uint32_t taken) noexcept {
  if (offered != 0 && offered != taken) {
    return_context(state, offered);
  }
}

int split_sides(Call& call, Choice& mine, Side& own, Side& remote, Comm** result) noexcept {
  RankState& state = call.state;
  const Comm& old = *call.comm;
  if (mine.color != MPI_UNDEFINED) {
    mine.context = reserve_context(state);
    mine.local = reserve_context(state);
  }
  const int error = tell_choices(call, mine, own, remote);
  std::uint32_t context = 0;
  std::uint32_t local = 0;
  bool has_members = false;
  if (error == MPI_SUCCESS && mine.color != MPI_UNDEFINED) {
    own.keep(mine.color);
    remote.keep(mine.color);
    has_members = remote.count > 0;  // An empty side: no communicator.
  }
  if (has_members) {
    context = (old.is_low_group ? own : remote).choices[0].context;
    local = own.choices[0].local;
    *result = assemble(state, old, own, remote, context);
  }
  return_unused(state, mine.local, local);  // The last first: only the last can be returned.
  return_unused(state, mine.context, context);
  return has_members && *result == nullptr
             ? call.fail(MPI_ERR_OTHER, "no memory or no context number is left")
             : error;
}

}  // namespace

int split_inter(Call& call, int color, int key, Comm** result) noexcept {
  RankState& state = call.state;
  const Comm& inter = *call.comm;
  *result = nullptr;
  Side own{state.allocate_array<Choice>(inter.size), inter.size};
  Side remote{state.allocate_array<Choice>(inter.remote->size), inter.remote->size};
  Choice mine{.color = color,
              .key = key,
              .rank = static_cast<std::uint32_t>(inter.rank),
              .world = state.context->rank};
  const int error = own.choices == nullptr || remote.choices == nullptr
                        ? call.fail_plain(MPI_ERR_NO_MEM)
                        : split_sides(call, mine, own, remote, result);
  state.deallocate(own.choices);
  state.deallocate(remote.choices);
  return error;
}

}  // namespace sterna::mpi
