// Frames that wait in this node: to be sent, or for a rank that is moving. Node memory, reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "base/annotate.h"
#include "base/mpsc_queue.h"
#include "base/spin_lock.h"
#include "net/driver.h"

namespace sterna::net {

/// Of a frame whose way depends on no rank.
inline constexpr std::uint32_t kAnyRoute = ~std::uint32_t{0};

/// One frame, header included.
struct HeldPacket : MpscNode {
  HeldPacket* next = nullptr;
  std::uint32_t from_node = 0;
  std::uint32_t bytes = 0;
  std::uint32_t capacity = 0;
  std::uint32_t route_version = kAnyRoute;  // In a gate: see Gate::route_version().
  std::uint32_t overtaken = 0;              // In a gate: by how many that came later.

  [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] std::span<const std::byte> packet() noexcept { return {data(), bytes}; }
};

/// Any thread. Keeps a bounded number of free ones in a few sizes, of which the last two are for
/// links, that keep what they send: malloc gives memory of such blocks back to the system each
/// time, and then each page of the next one is a fault. Others come from malloc.
class PacketPool {
 public:
  PacketPool() noexcept = default;
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  /// A packet of the bytes of `pieces`. Never null: a node without memory for a packet ends.
  [[nodiscard]] HeldPacket* copy(std::span<const Piece> pieces) noexcept {
    HeldPacket* const packet = take(pieces);
    fill(*packet, pieces);
    return packet;
  }
  /// The two halves of copy(): a packet for the bytes of `pieces`, and the bytes.
  [[nodiscard]] HeldPacket* take(std::span<const Piece> pieces) noexcept;
  static void fill(HeldPacket& packet, std::span<const Piece> pieces) noexcept;
  void release(HeldPacket* packet) noexcept;

 private:
  static constexpr std::uint32_t kCapacities[] = {448, 16 << 10, 66 << 10, 260 << 10, 1028 << 10};
  static constexpr std::uint32_t kFreeCountMax[] = {1024, 64, 64, 32, 8};
  static constexpr std::size_t kSizes = std::size(kCapacities);
  SpinLock lock_;
  HeldPacket* free_[kSizes] STERNA_GUARDED_BY(lock_) = {};
  std::uint32_t free_count_[kSizes] STERNA_GUARDED_BY(lock_) = {};
};

}  // namespace sterna::net
