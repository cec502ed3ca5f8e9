// What the strategies that let frames share packets have in common.
#pragma once

#include <algorithm>

#include "net/packets/strategy.h"

namespace sterna::net {

/// The first frame, and if it is small all small ones that fit behind it, also past larger ones of
/// other flows: a large frame pays for its packet itself, and copying it behind others would delay
/// them. Frames of one flow stay in order.
inline std::uint32_t gather(std::span<const WaitingFrame> waiting, std::uint32_t share_bytes,
                            std::uint32_t packet_bytes_max,
                            std::span<std::uint8_t> chosen) noexcept {
  chosen[0] = 0;
  std::uint32_t bytes = waiting[0].bytes;
  if (bytes > share_bytes) {
    return 1;
  }
  std::uint32_t count = 1;
  std::uint64_t skipped_flows[4];
  std::uint32_t skipped = 0;
  const auto is_free = [&](const WaitingFrame& frame) {
    return skipped == 0 || (frame.may_pass && std::find(skipped_flows, skipped_flows + skipped,
                                                        frame.flow) == skipped_flows + skipped);
  };
  for (std::size_t i = 1; i < waiting.size(); ++i) {
    const WaitingFrame& frame = waiting[i];
    if (frame.bytes <= share_bytes && frame.bytes <= packet_bytes_max - bytes && is_free(frame)) {
      bytes += frame.bytes;
      chosen[count++] = static_cast<std::uint8_t>(i);
    } else if (skipped < std::size(skipped_flows)) {
      skipped_flows[skipped++] = frame.flow;
    } else {
      break;
    }
  }
  return count;
}

}  // namespace sterna::net
