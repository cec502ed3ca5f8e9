// Peers and pending requests of an Endpoint.
#include "net/peer.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "memory/heap.h"
#include "net/buffer.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kPeerBucketsMin = 16;
constexpr std::uint32_t kPendingMin = 32;
constexpr std::uint32_t kPendingMax = 1 << 24;
constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};

// Ranks are dense numbers: their low bits are the best hash.
bool grow_peers(Endpoint& endpoint) noexcept {
  const std::uint32_t count = std::max(kPeerBucketsMin, endpoint.peer_bucket_count * 2);
  auto** buckets = static_cast<Peer**>(endpoint.heap->allocate_zeroed(count * sizeof(Peer*)));
  if (buckets == nullptr) {
    return false;
  }
  for (std::uint32_t i = 0; i < endpoint.peer_bucket_count; ++i) {
    while (endpoint.peers[i] != nullptr) {
      Peer* peer = endpoint.peers[i];
      endpoint.peers[i] = peer->next_in_bucket;
      Peer*& bucket = buckets[peer->rank & (count - 1)];
      peer->next_in_bucket = bucket;
      bucket = peer;
    }
  }
  endpoint.heap->deallocate(endpoint.peers);
  endpoint.peers = buckets;
  endpoint.peer_bucket_count = count;
  return true;
}

bool grow_pending(Endpoint& endpoint) noexcept {
  const std::uint32_t old_count = endpoint.pending_capacity;
  const std::uint32_t count = std::max(kPendingMin, old_count * 2);
  if (count > kPendingMax) {
    return false;
  }
  auto* entries = static_cast<PendingEntry*>(
      endpoint.heap->reallocate(endpoint.pending, count * sizeof(PendingEntry)));
  if (entries == nullptr) {
    return false;
  }
  for (std::uint32_t i = old_count; i < count; ++i) {
    const std::uint32_t next = i + 1 < count ? i + 1 : kNoIndex;
    entries[i] = {PendingEntry::Kind::free, 1, next, 0, nullptr};
  }
  endpoint.pending = entries;
  endpoint.pending_capacity = count;
  endpoint.pending_free = old_count;
  return true;
}

}  // namespace

Peer* add_peer(Endpoint& endpoint, std::uint32_t rank) noexcept {
  if (endpoint.peer_count >= endpoint.peer_bucket_count && !grow_peers(endpoint)) {
    return nullptr;
  }
  auto* peer = static_cast<Peer*>(endpoint.heap->allocate_zeroed(sizeof(Peer)));
  if (peer == nullptr) {
    return nullptr;
  }
  Peer*& bucket = endpoint.peers[rank & (endpoint.peer_bucket_count - 1)];
  peer->rank = rank;
  peer->next_in_bucket = bucket;
  bucket = peer;
  // Relaxed: senders read it without the lock, to learn that their own thread made no peer yet.
  std::atomic_ref<std::uint32_t>{endpoint.peer_count}.store(endpoint.peer_count + 1,
                                                            std::memory_order_relaxed);
  return peer;
}

Kept keep_early(Endpoint& endpoint, Peer& peer, const Frame& frame) noexcept {
  if (peer.early_count >= kEarlyFramesMax) {
    return Kept::too_many;
  }
  const std::uint32_t sequence = frame.header.sequence;
  // Most come in order behind the gap: try the end first.
  EarlyFrame** place = &peer.early;
  if (peer.early_last != nullptr &&
      static_cast<std::int32_t>(sequence - peer.early_last->sequence) > 0) {
    place = &peer.early_last->next;
  }
  while (*place != nullptr && static_cast<std::int32_t>(sequence - (*place)->sequence) > 0) {
    place = &(*place)->next;
  }
  if (*place != nullptr && (*place)->sequence == sequence) {
    return Kept::twice;
  }
  const std::size_t bytes = kHeaderBytes + frame.payload.size();
  auto* early = static_cast<EarlyFrame*>(endpoint.heap->allocate(sizeof(EarlyFrame) + bytes));
  if (early == nullptr) {
    return Kept::no_memory;
  }
  *early = {*place, sequence, static_cast<std::uint32_t>(bytes)};
  auto* to = reinterpret_cast<std::byte*>(early + 1);
  std::memcpy(to, &frame.header, kHeaderBytes);
  if (!frame.payload.empty()) {
    copy_long(to + kHeaderBytes, frame.payload.data(), frame.payload.size());
  }
  if (early->next == nullptr) {
    peer.early_last = early;
  }
  *place = early;
  ++peer.early_count;
  ++endpoint.early_count;
  return Kept::kept;
}

Peer* find_early(const Endpoint& endpoint) noexcept {
  for (std::uint32_t i = 0; endpoint.early_count != 0 && i < endpoint.peer_bucket_count; ++i) {
    for (Peer* peer = endpoint.peers[i]; peer != nullptr; peer = peer->next_in_bucket) {
      if (peer->early != nullptr && peer->early->sequence == peer->receive_sequence) {
        return peer;
      }
    }
  }
  return nullptr;
}

EarlyFrame* next_early(Peer& peer) noexcept {
  EarlyFrame* early = peer.early;
  if (early == nullptr || early->sequence != peer.receive_sequence) {
    return nullptr;
  }
  peer.early = early->next;
  if (peer.early == nullptr) {
    peer.early_last = nullptr;
  }
  --peer.early_count;
  return early;
}

void free_early(Endpoint& endpoint, EarlyFrame* early) noexcept {
  --endpoint.early_count;
  endpoint.heap->deallocate(early);
}

Frame frame_of(const EarlyFrame& early) noexcept {
  Frame frame;
  const auto* from = reinterpret_cast<const std::byte*>(&early + 1);
  std::memcpy(&frame.header, from, kHeaderBytes);
  frame.payload = {from + kHeaderBytes, early.bytes - kHeaderBytes};
  return frame;
}

std::uint64_t add_pending(Endpoint& endpoint, PendingEntry::Kind kind, void* request,
                          std::uint32_t peer) noexcept {
  if ((endpoint.pending == nullptr || endpoint.pending_free == kNoIndex) &&
      !grow_pending(endpoint)) {
    return kNoId;
  }
  const std::uint32_t index = endpoint.pending_free;
  PendingEntry& entry = endpoint.pending[index];
  endpoint.pending_free = entry.next_free;
  entry.kind = kind;
  entry.request = request;
  entry.peer = peer;
  ++endpoint.pending_count;
  endpoint.pending_sends += kind == PendingEntry::Kind::send ? 1 : 0;
  return (std::uint64_t{entry.generation} << 32) | index;
}

void* find_pending(const Endpoint& endpoint, std::uint64_t id, PendingEntry::Kind kind,
                   std::uint32_t peer) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= endpoint.pending_capacity) {
    return nullptr;
  }
  const PendingEntry& entry = endpoint.pending[index];
  const bool is_it = entry.kind == kind && entry.peer == peer && entry.generation == (id >> 32);
  return is_it ? entry.request : nullptr;
}

void remove_pending(Endpoint& endpoint, std::uint64_t id) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  check(
      index < endpoint.pending_capacity && endpoint.pending[index].kind != PendingEntry::Kind::free,
      "a request that is removed from the pending ones is among them");
  PendingEntry& entry = endpoint.pending[index];
  endpoint.pending_sends -= entry.kind == PendingEntry::Kind::send ? 1 : 0;
  entry.kind = PendingEntry::Kind::free;
  entry.request = nullptr;
  entry.generation = entry.generation == ~std::uint32_t{0} ? 1 : entry.generation + 1;
  entry.next_free = endpoint.pending_free;
  endpoint.pending_free = index;
  --endpoint.pending_count;
}

void clear_peers(Endpoint& endpoint) noexcept {
  for (std::uint32_t i = 0; i < endpoint.peer_bucket_count; ++i) {
    while (endpoint.peers[i] != nullptr) {
      Peer* peer = endpoint.peers[i];
      endpoint.peers[i] = peer->next_in_bucket;
      while (peer->early != nullptr) {
        EarlyFrame* early = peer->early;
        peer->early = early->next;
        endpoint.heap->deallocate(early);
      }
      if (peer->partial_message != nullptr && peer->partial_message->receiver != nullptr) {
        endpoint.heap->deallocate(peer->partial_message);  // The others are in a lane.
      }
      endpoint.heap->deallocate(peer->hold);
      endpoint.heap->deallocate(peer);
    }
  }
  endpoint.heap->deallocate(endpoint.peers);
  endpoint.heap->deallocate(endpoint.pending);
  endpoint.peers = nullptr;
  endpoint.pending = nullptr;
  endpoint.peer_bucket_count = endpoint.peer_count = endpoint.pending_capacity = 0;
}

}  // namespace sterna::net
