// Groups: construction, lookup, comparison.
#include "mpi/group/group.h"

#include <algorithm>
#include <cstring>

namespace sterna::mpi {

int Group::find_place(std::uint32_t world) const noexcept {
  Place* const end = places + size;
  const Place* place = std::lower_bound(
      places, end, world, [](const Place& p, std::uint32_t value) { return p.world < value; });
  return place != end && place->world == world ? static_cast<int>(place->index) : MPI_UNDEFINED;
}

Group* create_group_of_range(RankState& state, std::uint32_t first, std::uint32_t size) noexcept {
  Group* group = state.create<Group>();
  if (group != nullptr) {
    group->size = size;
    group->first = first;
    group->rank = group->index_of(state.context->rank);
  }
  return group;
}

namespace {

bool is_range(const std::uint32_t* members, std::uint32_t size) noexcept {
  for (std::uint32_t i = 1; i < size; ++i) {
    if (members[i] != members[0] + i) {
      return false;
    }
  }
  return true;
}

}  // namespace

Group* create_group(RankState& state, const std::uint32_t* members, std::uint32_t size) noexcept {
  if (is_range(members, size)) {
    return create_group_of_range(state, size == 0 ? 0 : members[0], size);
  }
  Group* group = state.create<Group>();
  if (group == nullptr) {
    return nullptr;
  }
  group->members = state.allocate_array<std::uint32_t>(size);
  group->places = state.allocate_array<Group::Place>(size);
  if (group->members == nullptr || group->places == nullptr) {
    release_group(state, group);
    return nullptr;
  }
  group->size = size;
  std::memcpy(group->members, members, size * sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < size; ++i) {
    group->places[i] = {members[i], i};
  }
  std::sort(group->places, group->places + size,
            [](const Group::Place& a, const Group::Place& b) { return a.world < b.world; });
  group->rank = group->index_of(state.context->rank);
  return group;
}

void release_group(RankState& state, Group* group) noexcept {
  if (group == nullptr || !group->release()) {
    return;
  }
  group->kind = ObjectKind::freed;
  state.deallocate(group->members);
  state.deallocate(group->places);
  state.destroy(group);
}

Group* find_group(RankState& state, MPI_Group handle) noexcept {
  if (handle == MPI_GROUP_EMPTY) {
    return state.empty_group;
  }
  return is_object(handle, ObjectKind::group) ? reinterpret_cast<Group*>(handle) : nullptr;
}

MPI_Group handle_of(RankState& state, Group* group) noexcept {
  return group == state.empty_group ? MPI_GROUP_EMPTY : reinterpret_cast<MPI_Group>(group);
}

int compare_groups(const Group& a, const Group& b) noexcept {
  if (a.size != b.size) {
    return MPI_UNEQUAL;
  }
  int result = MPI_IDENT;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const std::uint32_t world = a.world_of(i);
    if (world != b.world_of(i)) {
      result = MPI_SIMILAR;
    }
    if (b.index_of(world) == MPI_UNDEFINED) {
      return MPI_UNEQUAL;
    }
  }
  return result;
}

}  // namespace sterna::mpi
