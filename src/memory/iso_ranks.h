// Mapping parts of rank slots. Private to IsoSpace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "memory/layout.h"
#include "memory/rank_slot.h"

namespace sterna::memory {

[[nodiscard]] inline std::uintptr_t slot_base(std::uint32_t rank) noexcept {
  return kRankBase + (std::uintptr_t{rank} << rank_slot_shift());
}

/// Maps [base, base + bytes) of the rank's slot: of its file, or (-1) anonymous memory. Nothing
/// may be mapped there.
[[nodiscard]] Result<> map_part(std::uint32_t rank, int fd, std::uintptr_t base, std::size_t bytes);

/// Whether the parts of a rank fit its slot.
[[nodiscard]] Result<> check_shape(const RankShape& shape);

}  // namespace sterna::memory
