// A few pages that all nodes of a host see, behind the segments of the shm driver (HostShare): for
// what they tell each other without messages. All zero at start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/opening/bootstrap.h"

namespace sterna::net {

inline constexpr std::uint64_t kHostBoardBytes = 128 << 10;

/// Maps it, for as long as the process lives; null: the host's nodes have none. From anywhere.
[[nodiscard]] std::byte* map_host_board(const HostShare& host) noexcept;

}  // namespace sterna::net
