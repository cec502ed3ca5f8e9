// Blocks for the bytes of messages whose types are not contiguous: of the rank's system heap, so
// that they move with it; of a process those that are used again, since malloc() gives long ones
// back to the system each time, and every message would wait for new pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sterna::mpi {

struct RankState;

/// Not cleared. Null: no memory.
[[nodiscard]] std::byte* allocate_packed(RankState& state, std::uint64_t bytes) noexcept;
/// Null is allowed.
void deallocate_packed(RankState& state, std::byte* block) noexcept;

}  // namespace sterna::mpi
