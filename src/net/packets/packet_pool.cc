// The pool of packets that wait.
#include "net/packets/packet_pool.h"

#include <cstdlib>
#include <new>

#include "base/check.h"
#include "net/buffer.h"

namespace sterna::net {

PacketPool::~PacketPool() {
  for (HeldPacket* packet : free_) {
    while (packet != nullptr) {
      HeldPacket* next = packet->next;
      packet->~HeldPacket();
      std::free(packet);
      packet = next;
    }
  }
}

HeldPacket* PacketPool::take(std::span<const Piece> pieces) noexcept {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces) {
    bytes += piece.size();
  }
  HeldPacket* packet = nullptr;
  std::uint32_t capacity = static_cast<std::uint32_t>(bytes);
  for (std::size_t i = 0; i < kSizes; ++i) {
    if (bytes <= kCapacities[i]) {
      capacity = kCapacities[i];
      const SpinGuard guard{lock_};
      if (free_[i] != nullptr) {
        packet = free_[i];
        free_[i] = packet->next;
        --free_count_[i];
      }
      break;
    }
  }
  if (packet == nullptr) {
    void* memory = std::malloc(sizeof(HeldPacket) + capacity);
    check(memory != nullptr, "there is memory for a packet that waits");
    packet = ::new (memory) HeldPacket;
    packet->capacity = capacity;
  }
  packet->next = nullptr;
  packet->overtaken = 0;
  packet->bytes = static_cast<std::uint32_t>(bytes);
  return packet;
}

void PacketPool::fill(HeldPacket& packet, std::span<const Piece> pieces) noexcept {
  std::byte* to = packet.data();
  for (const Piece& piece : pieces) {
    if (!piece.empty()) {
      copy_long(to, piece.data(), piece.size());
      to += piece.size();
    }
  }
}

void PacketPool::release(HeldPacket* packet) noexcept {
  for (std::size_t i = 0; i < kSizes; ++i) {
    if (packet->capacity == kCapacities[i]) {
      const SpinGuard guard{lock_};
      if (free_count_[i] < kFreeCountMax[i]) {
        packet->next = free_[i];
        free_[i] = packet;
        ++free_count_[i];
        return;
      }
    }
  }
  packet->~HeldPacket();
  std::free(packet);
}

}  // namespace sterna::net
