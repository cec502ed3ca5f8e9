// Strategies: what one packet carries when a rail is free and several frames wait for one node.
//
// A strategy is asked only when frames had to wait (the rail was busy or full): a frame that finds
// its rail free is sent alone, at once, so that no strategy costs latency.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "net/packet_pool.h"

namespace sterna::net {

/// What a strategy is told of the rail.
struct PacketLimits {
  std::uint32_t packet_bytes_max;  // Of one packet; each frame alone fits.
  // By the cost model (CostModel::share_bytes): a frame of at most so many bytes gains by sharing a
  // packet; less than a header: none does.
  std::uint32_t share_bytes;
};

class Strategy {
 public:
  /// Chooses what goes next: the first frames of the list `first` (linked by next, not empty), one
  /// at least, each as one element of `pieces` in order, limits.packet_bytes_max bytes in all.
  /// Returns how many. Called under the gate; sends nothing itself.
  [[nodiscard]] virtual std::uint32_t form(HeldPacket* first, const PacketLimits& limits,
                                           std::span<Piece> pieces) const noexcept = 0;

 protected:
  ~Strategy() = default;
};

struct StrategyEntry {
  std::string_view name;     // As written in STERNA_NET_STRATEGY.
  std::string_view summary;  // One line, for `sterna info`.
  const Strategy* strategy;  // Without state: one for all gates.
};

[[nodiscard]] std::span<const StrategyEntry* const> builtin_strategies() noexcept;
/// Fails with invalid_argument and the known names.
[[nodiscard]] Result<const Strategy*> find_strategy(std::string_view name);

}  // namespace sterna::net
