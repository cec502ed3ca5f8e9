// For each rank that an Endpoint talks to over the network: order of both directions, credit, and
// the frames that came before their turn; and the table of requests that wait for an answer.
//
// All of it under the lock of the rank's RankEntry.
#pragma once

#include "net/endpoint.h"
#include "net/packets/packet.h"

namespace sterna::net {

// What a message takes of its receiver's heap at most, beside its bytes: a Message with room for a
// short one, and two lanes of its own with their share of a table that has just grown. Its bytes
// take a quarter more than they are, since the sizes of the heap are so far apart.
inline constexpr std::uint32_t kMessageOverheadBytes = 640;
inline constexpr std::uint32_t kEarlyFramesMax = 1 << 16;  // Of one peer.
inline constexpr std::uint64_t kNoId = 0;

[[nodiscard]] inline Peer* find_peer(const Endpoint& endpoint, std::uint32_t rank) noexcept {
  if (endpoint.peers == nullptr) {
    return nullptr;
  }
  Peer* peer = endpoint.peers[rank & (endpoint.peer_bucket_count - 1)];
  while (peer != nullptr && peer->rank != rank) {
    peer = peer->next_in_bucket;
  }
  return peer;
}
/// Null: no memory.
[[nodiscard]] Peer* add_peer(Endpoint& endpoint, std::uint32_t rank) noexcept;
[[nodiscard]] inline Peer* make_peer(Endpoint& endpoint, std::uint32_t rank) noexcept {
  Peer* peer = find_peer(endpoint, rank);
  return peer != nullptr ? peer : add_peer(endpoint, rank);
}

/// What an eager message of so many bytes takes off the window, and one that is announced with a
/// head of so many.
[[nodiscard]] constexpr std::uint32_t credit_of(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>(bytes + bytes / 4) + kMessageOverheadBytes;
}

/// Bytes sent to the peer and not known to be consumed.
[[nodiscard]] inline std::uint32_t outstanding_bytes(const Peer& peer) noexcept {
  return peer.eager_sent - peer.eager_returned;
}

/// Whether the window has room for so much more.
[[nodiscard]] inline bool has_credit(const Peer& peer, std::uint32_t credit,
                                     std::uint32_t window) noexcept {
  return outstanding_bytes(peer) + std::uint64_t{credit} + peer.bar <= window;
}

/// The peer says how much it has consumed, ever. Old news and nonsense change nothing.
inline void take_credit(Peer& peer, std::uint32_t consumed) noexcept {
  const std::uint32_t returned = consumed - peer.eager_returned;
  if (returned <= outstanding_bytes(peer)) {
    peer.eager_returned = consumed;
  }
}

/// Puts what we have consumed from the peer into a header that goes to it.
inline void tell_credit(Peer& peer, FrameHeader& header) noexcept {
  header.credit = peer.consumed_told = peer.consumed;
  header.flags |= kFrameHasCredit;
}

/// How the turn of a frame stands.
enum class Turn : std::uint8_t {
  now,
  later,  // Frames before it are still on their way.
  past,   // A frame of this number was taken already.
};
[[nodiscard]] inline Turn turn_of(const Peer& peer, std::uint32_t sequence) noexcept {
  const auto ahead = static_cast<std::int32_t>(sequence - peer.receive_sequence);
  return ahead == 0 ? Turn::now : ahead > 0 ? Turn::later : Turn::past;
}

enum class Kept : std::uint8_t {
  kept,
  twice,      // It is there already.
  too_many,   // kEarlyFramesMax wait: something before them is lost.
  no_memory,  // In the rank's system heap.
};
/// Keeps a copy of the frame until its turn.
[[nodiscard]] Kept keep_early(Endpoint& endpoint, Peer& peer, const Frame& frame) noexcept;
/// A peer with a kept frame whose turn it is; null: there is none.
[[nodiscard]] Peer* find_early(const Endpoint& endpoint) noexcept;
/// The kept frame whose turn it is, taken off the list; null: none. The caller frees it.
[[nodiscard]] EarlyFrame* next_early(Peer& peer) noexcept;
void free_early(Endpoint& endpoint, EarlyFrame* early) noexcept;
[[nodiscard]] Frame frame_of(const EarlyFrame& early) noexcept;

/// An id for the request, which waits for `peer`; kNoId: no memory.
[[nodiscard]] std::uint64_t add_pending(Endpoint& endpoint, PendingEntry::Kind kind, void* request,
                                        std::uint32_t peer) noexcept;
/// The request of this id if it is of this kind and waits for this peer; null otherwise.
[[nodiscard]] void* find_pending(const Endpoint& endpoint, std::uint64_t id,
                                 PendingEntry::Kind kind, std::uint32_t peer) noexcept;
/// The receive that has matched a message whose head is the next frame; null: none.
[[nodiscard]] inline RecvRequest* find_head_receive(const Endpoint& at, const Peer& peer) noexcept {
  return peer.head_receive == kNoId
             ? nullptr
             : static_cast<RecvRequest*>(
                   find_pending(at, peer.head_receive, PendingEntry::Kind::receive, peer.rank));
}
/// `id` is valid.
void remove_pending(Endpoint& endpoint, std::uint64_t id) noexcept;

void clear_peers(Endpoint& endpoint) noexcept;

}  // namespace sterna::net
