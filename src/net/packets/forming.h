// Forms the next packet of a gate: what waits as a strategy sees it, and its choice, checked.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "net/packets/packet_pool.h"
#include "net/packets/priority.h"
#include "net/packets/strategy.h"

namespace sterna::net {

/// A packet of frames that wait. They stay in their list until take_out().
struct Formed {
  std::array<Piece, kPacketPiecesMax> pieces;
  std::array<HeldPacket*, kPacketPiecesMax> packets;
  std::uint32_t count = 0;
  std::uint32_t passed_over = 0;      // By packets, the first frame, once this one has gone.
  const char* broken_rule = nullptr;  // By the strategy; then the first frame goes alone.
};

/// `frames` is not empty. `passed_over`: how many packets have gone before the first frame; after
/// kPassedOverMax it goes alone.
inline constexpr std::uint32_t kPassedOverMax = 16;
void form_packet(const WaitingFrames& frames, const Strategy& strategy, const PacketLimits& limits,
                 std::uint32_t passed_over, Formed& formed) noexcept;

/// Takes the packets that were formed off the list.
void take_out(WaitingFrames& frames, const Formed& formed) noexcept;

}  // namespace sterna::net
