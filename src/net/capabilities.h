// What a driver of a network can, and what networks of its kind cost.
#pragma once

#include <cstdint>

namespace sterna::net {

/// What the core asks instead of a driver's name. Constant after open. The figures are a profile:
/// the cost model (net/costs/cost.h) starts from them and corrects them by what it measures.
struct Capabilities {
  std::uint32_t packet_bytes_max = 4096;  // At least kPacketBytesMin.
  bool is_ordered = true;   // Packets of one channel arrive in the order sent.
  bool is_reliable = true;  // A packet accepted arrives once, unchanged, or the peer is lost.
  bool can_revive = false;          // Driver::revive does something.
  std::uint32_t latency_ns = 1000;  // One small packet, one way.
  std::uint32_t bandwidth_mb_per_s = 1000;
  std::uint32_t packet_ns = 1000;       // One more packet behind others, however small.
  std::uint32_t cpu_ps_per_byte = 100;  // Of the processor, both sides together.
  std::uint32_t direct_latency_ns = 0;  // A write_remote of few bytes; 0: there is none.
  std::uint32_t direct_mb_per_s = 0;
  bool has_short_way = false;  // Channel::try_place and Driver::sight do something.
  // Channel::try_lend takes packets for some peers: Channel::lent_bytes_max says for which.
  bool can_lend = false;
  bool operator==(const Capabilities&) const = default;
};
inline constexpr std::uint32_t kPacketBytesMin = 256;

}  // namespace sterna::net
