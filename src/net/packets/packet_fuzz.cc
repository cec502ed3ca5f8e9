// Fuzzes the decoders of packets: what they accept is in range and inside the packet, and what is
// said of a packet whose head alone has come is what would be said of it whole.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "base/check.h"
#include "net/packets/packet.h"

namespace sterna::net {
namespace {

constexpr FrameLimits kLimits{.node_count = 4, .rank_count = 16};

void check_frames(Packet packet) {
  Packet rest = packet;
  Frame frame;
  std::size_t used = 0;
  while (decode_frame(rest, kLimits, frame) == DecodeState::frame) {
    used += kHeaderBytes + frame.payload.size();
    check(used + rest.size() == packet.size(), "frames lie one after the other in the packet");
    check(frame.header.source < kLimits.rank_count, "a source that is accepted exists");
    check(frame.header.destination < kLimits.rank_count, "a destination that is accepted exists");
    ClearPayload clear;
    RemoteExtents extents;
    if (frame.header.kind == FrameKind::clear &&
        decode_clear(frame.payload, kLimits, clear, extents)) {
      check(extents.count <= kClearExtentsMax && clear.node < kLimits.node_count,
            "a clearance that is accepted is in range");
    }
  }
}

/// Of what a driver says: the head, and how long the packet is that has not come yet. By it the
/// place of the bytes is found (transfer/placed.cc).
void check_head(Packet head, std::size_t packet_bytes) {
  FrameHeader header;
  if (!decode_head(head, packet_bytes, kLimits, header)) {
    return;
  }
  check(head.size() >= kHeaderBytes && packet_bytes >= kHeaderBytes,
        "a head that is accepted has come whole");
  check(header.payload_bytes == packet_bytes - kHeaderBytes,
        "the one frame of a packet that is accepted is all of it");
  const bool is_of_nodes = header.kind >= FrameKind::node;
  check(header.source < kLimits.rank_count &&
            header.destination < (is_of_nodes ? kLimits.node_count : kLimits.rank_count),
        "whom a head that is accepted names exists");
  if (header.kind == FrameKind::data || header.kind == FrameKind::bulk) {
    check(header.total_bytes + header.payload_bytes >= header.total_bytes,
          "bytes that are accepted end behind where they begin");
  }
  check(header.kind != FrameKind::head || header.payload_bytes != 0, "a first part has bytes");
}

void check_heads(Packet packet) {
  const Packet head = packet.first(std::min(packet.size(), kPacketHeadBytes));
  std::uint32_t claimed = 0;
  if (head.size() == kHeaderBytes) {
    std::memcpy(&claimed, head.data() + offsetof(FrameHeader, payload_bytes), sizeof claimed);
  }
  for (const std::size_t bytes :
       {std::size_t{0}, kHeaderBytes - 1, kHeaderBytes, kHeaderBytes + 1, packet.size(),
        packet.size() + 1, kHeaderBytes + claimed}) {
    check_head(head, bytes);
    check_head(packet.first(packet.size() / 2), bytes);
  }
  Packet rest = packet;
  Frame frame;
  const bool is_one_frame =
      decode_frame(rest, kLimits, frame) == DecodeState::frame && rest.empty();
  FrameHeader header;
  const bool is_accepted = decode_head(head, packet.size(), kLimits, header);
  check(is_accepted == is_one_frame, "the head says of a packet what the packet says");
  check(!is_accepted || std::memcmp(&header, &frame.header, sizeof header) == 0,
        "both read the same header");
}

}  // namespace
}  // namespace sterna::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  const net::Packet packet{reinterpret_cast<const std::byte*>(data), bytes};
  net::check_frames(packet);
  net::check_heads(packet);
  net::WayCosts costs;
  if (net::decode_costs(packet, costs)) {
    check(packet.size() == sizeof costs && costs.latency_ns != 0,
          "costs that are accepted are whole");
  }
  net::ClearPayload clear;
  net::RemoteExtents extents;
  (void)net::decode_clear(packet, net::kLimits, clear, extents);
  return 0;
}
