// Priorities: which frames overtake others that wait for the same node.
#pragma once

#include "net/packet_pool.h"

namespace sterna::net {

/// Frames that wait for a gate, in the order in which they go.
struct WaitingFrames {
  HeldPacket* first = nullptr;
  HeldPacket* last = nullptr;
};

/// Adds a frame at the end, or, of a message with a priority, before those of less that it may
/// overtake: parts of other messages, but for messages before it between the same ranks with the
/// same context and tag. By the owner of the gate.
void add_by_priority(WaitingFrames& frames, HeldPacket& packet) noexcept;

}  // namespace sterna::net
