// What strategies say of rails: the sums behind earliest_rail().
#pragma once

#include <span>
#include <string>

#include <fmt/format.h>

#include "net/packets/strategy.h"

namespace sterna::net {

/// "rail 0: 11096 ns (latency 7000, 0 bytes on their way and 16384 at 250 ps/byte), rail 1: ...".
inline std::string tell_arrivals(std::span<const RailView> rails, std::uint32_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const RailView& rail = rails[i];
    const std::uint64_t ps =
        rail.latency_ns * 1000 + (rail.in_flight_bytes + bytes) * rail.ps_per_byte();
    text +=
        fmt::format("{}rail {}: {} ns (latency {}, {} bytes on their way and {} at {} ps/byte{})",
                    i == 0 ? "" : ", ", i, ps / 1000, rail.latency_ns, rail.in_flight_bytes, bytes,
                    rail.ps_per_byte(),
                    !rail.is_up                      ? "; it does not work"
                    : !rail.has_room                 ? "; it has no room"
                    : rail.measured_ps_per_byte != 0 ? " as measured"
                                                     : "");
  }
  return text;
}

/// "a packet of 16384 bytes takes rail 0, where it arrives first: ...".
inline std::string tell_earliest(std::span<const RailView> rails, std::uint32_t bytes) {
  const std::uint32_t first = earliest_rail(rails, bytes);
  const std::string what =
      first == kNoRail
          ? std::string{"waits, since the rail where it would arrive first has no room"}
          : fmt::format("takes rail {}, where it arrives first", first);
  return fmt::format("a packet of {} bytes {}: {}", bytes, what, tell_arrivals(rails, bytes));
}

}  // namespace sterna::net
