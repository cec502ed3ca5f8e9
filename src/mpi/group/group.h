// Groups: ordered sets of ranks of the job. Regular ones ({first + i * stride}) take no table.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "mpi/rank_state.h"

namespace sterna::mpi {

/// Constant after it was made; shared by reference count.
struct Group final : Object {
  Group() noexcept : Object{ObjectKind::group} {}

  struct Place {
    std::uint32_t world;
    std::uint32_t index;
  };

  std::uint32_t size = 0;
  int rank = MPI_UNDEFINED;          // Of the owner of the object.
  std::uint32_t first = 0;           // Without a table, member i is first + i.
  std::uint32_t* members = nullptr;  // Ranks of the job, or null.
  Place* places = nullptr;           // The same, sorted by `world`.

  /// The rank in the job of member `index` < size.
  [[nodiscard]] std::uint32_t world_of(std::uint32_t index) const noexcept {
    return members == nullptr ? first + index : members[index];
  }
  /// The index of a rank of the job, or MPI_UNDEFINED.
  [[nodiscard]] int index_of(std::uint32_t world) const noexcept {
    if (members == nullptr) [[likely]] {
      const std::uint32_t index = world - first;
      return index < size ? static_cast<int>(index) : MPI_UNDEFINED;
    }
    return find_place(world);
  }
  [[nodiscard]] int find_place(std::uint32_t world) const noexcept;
};

/// A group of the given ranks of the job, in this order; null: no memory.
[[nodiscard]] Group* create_group(RankState& state, const std::uint32_t* members,
                                  std::uint32_t size) noexcept;
[[nodiscard]] Group* create_group_of_range(RankState& state, std::uint32_t first,
                                           std::uint32_t size) noexcept;
/// Drops a reference; the last one ends the group.
void release_group(RankState& state, Group* group) noexcept;

/// The group of a handle, or null: not a group. MPI_GROUP_EMPTY is one.
[[nodiscard]] Group* find_group(RankState& state, MPI_Group handle) noexcept;
[[nodiscard]] MPI_Group handle_of(RankState& state, Group* group) noexcept;

/// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
[[nodiscard]] int compare_groups(const Group& a, const Group& b) noexcept;

}  // namespace sterna::mpi
