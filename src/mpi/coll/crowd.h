// Whether many ranks share few processors: then the number of messages decides, since every one
// costs processor time that others want, and not how many of them come one after the other.
#pragma once

#include "mpi/coll/collectives.h"
#include "runtime/runtime.h"

namespace sterna::mpi {

// Ranks a node from which on a node is taken to have fewer processors than ranks.
inline constexpr std::uint32_t kCrowdedRanks = 4;

/// Of the whole job and nominal: all ranks must choose the same algorithm, and ranks move. So
/// neither the processors of this node count, nor who lives where today. Processes are never
/// crowded here: each is a node.
[[nodiscard]] inline bool is_crowded(const RankState& state) noexcept {
  const net::JobMap& job = state.context->runtime->job();
  return job.rank_count >= kCrowdedRanks * job.node_count;
}

}  // namespace sterna::mpi
