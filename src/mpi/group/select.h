// New groups out of old ones.
#pragma once

#include "mpi/group/group.h"

namespace sterna::mpi {

/// In the order of the standard: the first group, then what the second adds.
[[nodiscard]] Group* unite_groups(RankState& state, const Group& a, const Group& b) noexcept;
[[nodiscard]] Group* intersect_groups(RankState& state, const Group& a, const Group& b) noexcept;
[[nodiscard]] Group* subtract_groups(RankState& state, const Group& a, const Group& b) noexcept;

/// Some members of a group, each at most once. `group` outlives it.
class Selection {
 public:
  Selection(RankState& state, const Group& group) noexcept;
  ~Selection();
  Selection(const Selection&) = delete;
  Selection& operator=(const Selection&) = delete;

  /// False: not a member, or named before (or no memory).
  [[nodiscard]] bool add(int rank) noexcept;
  /// Those named, in the order of naming; null: no memory.
  [[nodiscard]] Group* chosen() noexcept;
  /// The rest, in the old order.
  [[nodiscard]] Group* others() noexcept;

 private:
  RankState& state_;
  const Group& group_;
  std::uint32_t* members_;  // Ranks of the job, of those named.
  bool* is_named_;
  std::uint32_t count_ = 0;
};

}  // namespace sterna::mpi
