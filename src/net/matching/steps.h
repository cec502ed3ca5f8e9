// How many lanes and receives matching looks at, counted by the code that does it: what
// matching_steps_test.cc bounds. Nothing else calls this.
#pragma once

#include "net/matching/matching.h"

namespace sterna::net {

struct MatchingSteps {
  std::uint32_t searches = 0;  // Lanes that were looked for.
  std::uint32_t lanes = 0;     // Looked at on the way, in all buckets.
  std::uint32_t masked = 0;    // Receives with a mask that were looked at.
};

/// Of take_receive(endpoint, exact), which takes the same receive; nothing is taken. As if no lane
/// had been found before (near_lanes), which saves a search.
[[nodiscard]] MatchingSteps count_steps(const Endpoint& endpoint, const Pattern& exact) noexcept;

}  // namespace sterna::net
