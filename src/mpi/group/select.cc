// New groups out of old ones.
#include "mpi/group/select.h"

#include <cstring>

namespace sterna::mpi {
namespace {

// Members of `a` that are (or are not) in `b`, then, if `extra`, those of it that are not in `a`.
Group* filter(RankState& state, const Group& a, const Group& b, bool wanted,
              const Group* extra) noexcept {
  auto* members =
      state.allocate_array<std::uint32_t>(a.size + (extra != nullptr ? extra->size : 0));
  if (members == nullptr) {
    return nullptr;
  }
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < a.size; ++i) {
    const std::uint32_t world = a.world_of(i);
    if (extra != nullptr || (b.index_of(world) != MPI_UNDEFINED) == wanted) {
      members[count++] = world;
    }
  }
  for (std::uint32_t i = 0; extra != nullptr && i < extra->size; ++i) {
    const std::uint32_t world = extra->world_of(i);
    if (a.index_of(world) == MPI_UNDEFINED) {
      members[count++] = world;
    }
  }
  Group* made = create_group(state, members, count);
  state.deallocate(members);
  return made;
}

}  // namespace

Group* unite_groups(RankState& state, const Group& a, const Group& b) noexcept {
  return filter(state, a, b, true, &b);
}

Group* intersect_groups(RankState& state, const Group& a, const Group& b) noexcept {
  return filter(state, a, b, true, nullptr);
}

Group* subtract_groups(RankState& state, const Group& a, const Group& b) noexcept {
  return filter(state, a, b, false, nullptr);
}

Selection::Selection(RankState& state, const Group& group) noexcept
    : state_{state},
      group_{group},
      members_{state.allocate_array<std::uint32_t>(group.size)},
      is_named_{state.allocate_array<bool>(group.size)} {
  if (is_named_ != nullptr) {
    std::memset(is_named_, 0, group.size * sizeof(bool));
  }
}

Selection::~Selection() {
  state_.deallocate(members_);
  state_.deallocate(is_named_);
}

bool Selection::add(int rank) noexcept {
  const auto index = static_cast<std::uint32_t>(rank);
  if (members_ == nullptr || is_named_ == nullptr || index >= group_.size || is_named_[index]) {
    return false;
  }
  is_named_[index] = true;
  members_[count_++] = group_.world_of(index);
  return true;
}

Group* Selection::chosen() noexcept {
  return members_ == nullptr ? nullptr : create_group(state_, members_, count_);
}

Group* Selection::others() noexcept {
  if (members_ == nullptr || is_named_ == nullptr) {
    return nullptr;
  }
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < group_.size; ++i) {
    if (!is_named_[i]) {
      members_[count++] = group_.world_of(i);
    }
  }
  return create_group(state_, members_, count);
}

}  // namespace sterna::mpi
