// Which numbers of net::Transport's handlers belong to rpc.
#pragma once

#include <cstdint>

namespace sterna::rpc {

inline constexpr std::uint32_t kNodeHandler = 0;
inline constexpr std::uint32_t kRankHandler = 0;
inline constexpr std::uint32_t kGatheredHandler = 1;  // Of nodes; to the own one only.

}  // namespace sterna::rpc
