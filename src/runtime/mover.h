// The way from a safe point to migration/: installed by the node at its start.
#pragma once

#include <cstdint>

#include "runtime/rank_context.h"

namespace sterna::runtime {

/// Moves the calling rank, or comes back without having moved it (refused; the reason is counted in
/// its slot). Switches.
using MoveRank = void (*)(RankContext& rank, std::uint32_t to_node) noexcept;
void set_mover(MoveRank move) noexcept;

}  // namespace sterna::runtime
