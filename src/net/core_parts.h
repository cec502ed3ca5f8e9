// Plain data of a TransportCore.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "net/transport.h"

namespace sterna::net {

/// From so many bytes on a packet may be measured: how long it takes to be taken.
inline constexpr std::size_t kMeasuredPacketBytes = 4 << 10;

/// What became of the plain message that a packet is.
enum class Taken : std::uint8_t {
  nothing,  // It stays, or it is none.
  ours,
  posted,  // It was for a receive that has been posted, which is done.
};

/// Of a message within the node.
enum class HandOver : std::uint8_t {
  done,
  must_copy,  // Into the receive that matched; the receiver is pinned for it.
  no_room,    // Nothing happened, the message must wait at its sender.
};

/// Of a part of the memory of a peer's process.
enum class ReadState : std::uint8_t { read, impossible, lost };

/// Relaxed and not exact: several threads may count at once.
struct SharedCount {
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  std::atomic<std::uint64_t> value{0};
  void add(std::uint64_t by = 1) noexcept { value.store(value.load(kRelaxed) + by, kRelaxed); }
  [[nodiscard]] std::uint64_t read() const noexcept { return value.load(kRelaxed); }
};
// An eager message is cut into frames of whole payload: each must fit the pieces of a packet.
inline constexpr std::uint32_t kEagerExtentsMax = kPacketPiecesMax - 2;

struct Counters {
  SharedCount local, eager, rendezvous, forwarded, malformed, dropped, held, direct_bytes,
      data_bytes, heads, dropped_heads, handed, invited;
};

/// Of messages between nodes, and of notes to ranks.
struct CoreHandler {
  NodeHandler node = nullptr;
  RankHandler rank = nullptr;
  void* node_context = nullptr;
  void* rank_context = nullptr;
};

/// A copy between nodes that is expected.
struct LandingState {
  Landing* landing;
  std::uint32_t from_node;
  std::vector<Extent> extents;
  std::uint64_t total_bytes;
};

}  // namespace sterna::net
