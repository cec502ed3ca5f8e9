// Fuzzes the decoder of frames: what it accepts is in range and inside the packet.
#include "base/check.h"
#include "net/packets/packet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  const net::FrameLimits limits{.node_count = 4, .rank_count = 16};
  const std::span<const std::byte> packet{reinterpret_cast<const std::byte*>(data), bytes};
  std::span<const std::byte> rest = packet;
  net::Frame frame;
  std::size_t used = 0;
  while (net::decode_frame(rest, limits, frame) == net::DecodeState::frame) {
    used += net::kHeaderBytes + frame.payload.size();
    check(used + rest.size() == packet.size(), "frames lie one after the other in the packet");
    check(frame.header.source < limits.rank_count, "a source that is accepted exists");
    check(frame.header.destination < limits.rank_count, "a destination that is accepted exists");
    net::ClearPayload clear;
    net::RemoteExtents extents;
    if (frame.header.kind == net::FrameKind::clear &&
        net::decode_clear(frame.payload, limits, clear, extents)) {
      check(extents.count <= net::kClearExtentsMax && clear.node < limits.node_count,
            "a clearance that is accepted is in range");
    }
  }
  net::ClearPayload clear;
  net::RemoteExtents extents;
  net::WayCosts costs;
  if (net::decode_costs(packet, costs)) {
    check(packet.size() == sizeof costs && costs.latency_ns != 0,
          "costs that are accepted are whole");
  }
  (void)net::decode_clear(packet, limits, clear, extents);
  return 0;
}
