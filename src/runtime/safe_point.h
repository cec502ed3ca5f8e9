// Places where a rank may be moved, and what a rank does when it finds nothing to do.
#pragma once

#include "runtime/rank_context.h"

namespace sterna::runtime {

/// A rank that shuffles is always asked: by this number, which is no node.
inline constexpr std::int32_t kShuffleRequest = 1 << 30;

/// For tests: from now on the rank moves to a random node at each `every`-th safe point.
void start_shuffling(RankContext& rank, std::uint32_t every, std::uint64_t seed) noexcept;

/// The rank moves to another node here if it was asked to. Switches. What is left of the caller's
/// world is what lies in the rank's slot: read RankContext's node pointers again.
void move_if_asked(RankContext& rank) noexcept;

/// In every communication call, and in waits. Costs one load when nobody asks. May switch.
inline void safe_point(RankContext& rank) noexcept {
  if (rank.slot != nullptr && rank.slot->move_request.load(std::memory_order_relaxed) >= 0)
      [[unlikely]] {
    move_if_asked(rank);
  }
}

/// A test, a probe found nothing: gives the processor to others and lets the network advance, so
/// that a rank that tests in a loop starves nobody. May switch; may move the rank.
void tested_in_vain(RankContext& rank) noexcept;

/// Sleeps until then (monotonic clock), or, a mobile rank, until somebody wants something of it;
/// the network advances. Switches; may move the rank.
void nap_until(RankContext& rank, std::uint64_t deadline_ns) noexcept;

/// Between two looks at something that no completion announces, for who looks until it comes, at
/// most until `deadline_ns`. `round` counts the looks from 0: first as tested_in_vain, then sleeps,
/// the longer the more of that was in vain, 1.6 ms at most. Switches; may move the rank.
void wait_between_looks(RankContext& rank, std::uint32_t round, std::uint64_t deadline_ns) noexcept;

}  // namespace sterna::runtime
