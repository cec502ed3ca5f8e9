// Priorities: which frames overtake others that wait for the same node.
#pragma once

#include <cstring>

#include "net/packets/packet.h"
#include "net/packets/packet_pool.h"

namespace sterna::net {

[[nodiscard]] inline FrameHeader header_of(const HeldPacket& packet) noexcept {
  FrameHeader header;
  std::memcpy(&header, const_cast<HeldPacket&>(packet).data(), kHeaderBytes);
  return header;
}

/// Frames that wait for a gate, in the order in which they go.
struct WaitingFrames {
  HeldPacket* first = nullptr;
  HeldPacket* last = nullptr;
};

/// Adds a frame at the end, or, of a message with a priority, before those of less that it may
/// overtake: parts of other messages, but for messages before it between the same ranks with the
/// same context and tag, and for frames that kOvertakenMax have overtaken already, so that a stream
/// of urgent ones keeps none for ever. By the owner of the gate.
inline constexpr std::uint32_t kOvertakenMax = 64;
void add_by_priority(WaitingFrames& frames, HeldPacket& packet) noexcept;

}  // namespace sterna::net
