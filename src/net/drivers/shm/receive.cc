// Packets that have come: handed over by poll(), or looked at in place (Driver::sight).
#include <algorithm>
#include <cstring>

#include "base/cpu.h"
#include "net/drivers/shm/doorbell.h"
#include "net/drivers/shm/driver.h"

namespace sterna::net::shm {
namespace {

constexpr std::uint32_t kAheadBytes = 1024;
constexpr std::uint32_t kLooksAtOnce = 32;
constexpr std::uint32_t kRoomEvery = 16;  // Packets between two tellings of room.

/// In a wait that ends soon: no load begins before those before it have ended.
inline void wait_for_loads() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#else
  cpu_pause();
#endif
}

}  // namespace

std::uint32_t ShmDriver::poll(PacketSink& sink, std::uint32_t packets_max) noexcept {
  std::uint32_t count = 0;
  InboxReceiver::Head head;
  while (count < packets_max && inbox_.peek(head)) {
    if (const std::uint32_t cells = read_ahead_.cells(count); cells != 0) {
      inbox_.fetch_ahead(cells, head.kind);
    }
    if (head.sender == familiar_.local && head.kind - 1 < kInlineBytesMax) [[likely]] {
      sink.on_packet(familiar_.node, {head.payload, head.kind});
    } else {
      hand_over(sink, head);
    }
    inbox_.pop();
    if (++count % kRoomEvery == 0) {
      publish_room();
    }
    if (sink.is_enough()) [[unlikely]] {
      break;
    }
  }
  if (count % kRoomEvery != 0) {
    publish_room();
  }
  if (--polls_until_look_ == 0) [[unlikely]] {
    look_for_ends();
  }
  if (!ends_.empty()) [[unlikely]] {
    report_ends(sink);
  }
  return count;
}

void ShmDriver::hand_over(PacketSink& sink, const InboxReceiver::Head& head) noexcept {
  ShmChannel* from = nullptr;
  if (head.sender < channels_.size() && head.sender != self_.local_index) [[likely]] {
    from = channels_[head.sender].load(std::memory_order_acquire);  // Pairs with D.
    if (from == nullptr) {
      auto made = channel_to(head.sender);
      from = made ? made.value() : nullptr;
    }
  }
  if (from != nullptr && !from->is_direct_tried()) [[unlikely]] {
    // It was opened before its peer was, or without an address. The peer has sent, so it is open.
    const Segment& theirs = from->segment();
    open_direct(*from, {.pid = theirs.pid.load(std::memory_order_relaxed),
                        .version = kAddressVersion,
                        .cookie_address = theirs.cookie_address.load(std::memory_order_relaxed),
                        .cookie = theirs.cookie.load(std::memory_order_relaxed)});
    if (from->are_copies_refused()) {
      sink.on_copies_refused(from->peer().node);
    }
  }
  if (from == nullptr) [[unlikely]] {
    complain("a packet of an unknown node");
    return;
  }
  familiar_ = {.local = head.sender, .node = from->peer().node};
  Chunk chunk{};
  if (const Packet packet = packet_of(*from, head, chunk); !packet.empty()) [[likely]] {
    sink.on_packet(from->peer().node, packet);
  } else {
    complain("a packet of an impossible size, or outside the sender's memory");
  }
  end_reading(*from, chunk);
}

/// The chunk of a reference, which may come from a stranger. Its head is null if there is no such.
ShmDriver::Chunk ShmDriver::chunk_of(ShmChannel& from, const BulkReference& reference) noexcept {
  const std::uint32_t index = reference.chunk & ~(kOfReceiver | kComesBack);
  const std::uint16_t peer = static_cast<std::uint16_t>(from.peer().local_index);
  const RecentChunks::Entry entry{.chunk = static_cast<std::uint16_t>(index),
                                  .is_theirs = (reference.chunk & kOfReceiver) == 0,
                                  .comes_back = (reference.chunk & kComesBack) != 0};
  if (!entry.is_theirs) {
    // What a lost node had of ours was taken back, though it may live and send.
    const bool is_one =
        index < pool_.chunk_count() && reference.bytes <= pool_.chunk_bytes() && !from.is_lost();
    return is_one ? Chunk{&pool_.head(index), idle_at_home(peer), true, entry} : Chunk{};
  }
  Segment& theirs = from.segment();
  // Read once, checked, and used from here: the peer could change them in between.
  const std::uint32_t chunk_bytes = theirs.chunk_bytes.load(std::memory_order_relaxed);
  const std::uint32_t chunk_count = theirs.chunk_count.load(std::memory_order_relaxed);
  const std::uint64_t room = bootstrap_.host().segment_bytes - Segment::kChunksBegin;
  if (chunk_count > kChunkCountMax || index >= chunk_count || reference.bytes > chunk_bytes ||
      chunk_count * Segment::chunk_stride(chunk_bytes) > room) {
    return {};
  }
  return {.head = &theirs.chunk(index, chunk_bytes),
          .idle = idle_at(self_.local_index),
          .may_return = chunk_bytes == pool_.chunk_bytes(),
          .entry = entry};
}

inline void ShmDriver::end_reading(ShmChannel& from, const Chunk& chunk) noexcept {
  if (chunk.head != nullptr) {
    // Release: our reads of the chunk are done; who takes it acquires.
    chunk.head->idle.store(chunk.idle, std::memory_order_release);
    if (chunk.may_return) {
      from.note_read(chunk.entry);
    }
  }
}

/// Where the bytes of a packet are, and in which chunk, if in one. Empty: the packet is none.
Packet ShmDriver::packet_of(ShmChannel& from, const InboxReceiver::Head& head,
                            Chunk& chunk) noexcept {
  if (head.kind <= kInlineBytesMax) [[likely]] {
    return {head.payload, head.kind};
  }
  if (head.kind != kBulk) {
    return {};
  }
  BulkReference reference;
  std::memcpy(&reference, head.payload, sizeof reference);
  chunk = reference.bytes != 0 ? chunk_of(from, reference) : Chunk{};
  if (chunk.head == nullptr) {
    return {};
  }
  from.note_coming(chunk.entry);
  const std::byte* bytes = Segment::bytes_of(*chunk.head);
  // The lines lie in the cache of the sender: all are on their way while the first is waited for.
  // Later ones are the business of the processor's own prefetcher.
  const std::uint32_t ahead = std::min(reference.bytes, kAheadBytes);
  // They begin within a line, behind the head.
  for (std::uint32_t at = 0; at < ahead + sizeof(ChunkHead); at += kCacheLineBytes) {
    fetch_for_reading(bytes + at);
  }
  return {bytes, reference.bytes};
}

bool ShmDriver::sight(std::uint32_t looks, Sight& seen) noexcept {
  InboxReceiver::Head head;
  std::uint32_t left = looks;
  for (; !inbox_.peek(head); --left) {
    if (left == 0) {
      return false;
    }
    // Soon it has come: each look begins when the one before has ended, no load is on its way in
    // vain when the line changes. Later the core is left to its other half, who may be who sends.
    looks - left < kLooksAtOnce ? wait_for_loads() : cpu_pause();
  }
  self_.is_behind.store(left == looks, std::memory_order_relaxed);
  if (head.sender == familiar_.local && head.kind - 1 < kInlineBytesMax) [[likely]] {
    seen_.chunk.head = nullptr;
    seen.from_node = familiar_.node;
    seen.packet = {head.payload, head.kind};
    return true;
  }
  return sight_unfamiliar(head, seen);
}

bool ShmDriver::sight_unfamiliar(const InboxReceiver::Head& head, Sight& seen) noexcept {
  ShmChannel* const from = head.sender < channels_.size()
                               ? channels_[head.sender].load(std::memory_order_acquire)  // D.
                               : nullptr;
  if (from == nullptr || !from->is_direct_tried()) [[unlikely]] {
    seen = {};
    return true;
  }
  familiar_ = {.local = head.sender, .node = from->peer().node};
  seen_.from = from;
  seen_.chunk.head = nullptr;
  seen = {.from_node = from->peer().node, .packet = packet_of(*from, head, seen_.chunk)};
  return true;
}

void ShmDriver::pass_sight() noexcept {
  if (seen_.chunk.head != nullptr) {
    end_reading(*seen_.from, seen_.chunk);
  }
  inbox_.pop();
  publish_room();
}

}  // namespace sterna::net::shm
