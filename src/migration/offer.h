// What the source tells the destination before a rank moves: its shape, and which bytes are alive.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/rank_slot.h"
#include "net/message.h"

namespace sterna::migration {

inline constexpr std::size_t kExtentCountMax = 1 << 20;
inline constexpr std::size_t kOfferBytesMax = 104 + 16 * kExtentCountMax;

struct Offer {
  memory::RankShape shape;
  std::uint64_t fingerprint = 0;  // Of binaries, addresses and layout: must be equal on both sides.
  std::uint32_t source_pid =
      0;  // With memory_fd: where the slot's memory can be opened on this host.
  std::int32_t memory_fd = -1;      // -1: the bytes must be copied.
  std::uint64_t memory_inode = 0;   // Of memory_fd: proves that what was opened is that memory.
  std::uint64_t memory_bytes = 0;   // That it holds.
  std::uint64_t memory_device = 0;  // With it: the same inode number elsewhere is another memory.
  std::uint64_t number = 0;         // Of an OFFER: ascending at its source; CANCEL names it.
  std::uint64_t expires_ns = 0;     // Of a PREPARE or GIFT: monotonic clock; later it is not heard.
  std::uint64_t given = 0;          // Of a GIFT: what the word in the slot says (custody.h).
  std::vector<net::Extent> extents;  // Ascending, without overlap, all inside the rank's slot.
};

[[nodiscard]] std::vector<std::byte> encode(const Offer& offer);
/// malformed when an extent is outside of the slot of the rank, or out of order.
[[nodiscard]] Result<Offer> decode_offer(std::span<const std::byte> bytes);

/// Sorts, and joins what touches or overlaps.
void normalise(std::vector<net::Extent>& extents);

}  // namespace sterna::migration
