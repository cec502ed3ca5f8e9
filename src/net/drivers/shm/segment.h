// What lies in the shared memory of one node: its inbox, its bulk chunks and the flags around them.
//
// All nodes of a host map the same memfd; the segment of local node i begins at i * segment bytes.
// A segment of zeros is a valid empty one, so peers may write before its owner has opened it. No
// pointer lies here, and whoever reads an index or a size checks it before use: a peer that goes
// wrong may spoil the job, but not the memory of this process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "base/prefetch.h"
#include "base/result.h"
#include "net/invitation_board.h"

namespace sterna::net::shm {

/// What the launcher gives each node (HostShare::segment_bytes); touched lazily.
inline constexpr std::uint64_t kSegmentBytes = 5U << 20;

inline constexpr std::uint32_t kCellCount = 256;
// Cells from one ticket to the next: so far apart that no prefetcher of the processor goes on with
// the step. What it fetches ahead for a sender are lines at which the receiver looks already, and
// each goes to and fro once more: a third of a message. Odd, so that all cells are used.
inline constexpr std::uint32_t kCellStep = 101;
static_assert(kCellStep % 2 == 1 && (kCellCount & (kCellCount - 1)) == 0);
inline constexpr std::uint32_t kInlineBytesMax = 376;
inline constexpr std::uint32_t kLocalNodesMax = 2048;  // Bits of the room-waiters map.
inline constexpr std::uint32_t kChunkCountMax = 128;

/// One packet on its way. The header says all in one word, stored last: bits 0-31 the turn (ticket
/// + 1), bits 32-47 the local index of the sender, bits 48-63 the inline bytes, or kBulk.
/// Six cache lines, of which a packet touches what it needs; one of 56 bytes the first only.
struct alignas(2 * kCacheLineBytes) Cell {
  std::atomic<std::uint64_t> header;
  std::array<std::byte, kInlineBytesMax> payload;
};
static_assert(sizeof(Cell) == 384 && std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::uint32_t kBulk = 0xffff;

/// Of its cell that a packet needs: `kind` is the number of inline bytes, or kBulk.
[[nodiscard]] constexpr std::uint32_t lines_of(std::uint32_t kind) noexcept {
  return 1 + (kind <= kInlineBytesMax ? kind + sizeof(Cell::header) - 1 : 0) / kCacheLineBytes;
}

/// The payload of a kBulk cell: where the bytes are.
struct BulkReference {
  std::uint32_t chunk;  // In the segment of the sender; with kOfReceiver, of the receiver.
  std::uint32_t bytes;
};
inline constexpr std::uint32_t kOfReceiver = std::uint32_t{1} << 31;
inline constexpr std::uint32_t kComesBack = std::uint32_t{1}
                                            << 30;  // The receiver wrote there last.

/// In front of the bytes of a chunk, in the cache line in which they begin. `idle`: 0 while the
/// chunk is its owner's or has a packet in it; else who has read it, and who may take it to fill it
/// again, by exchanging it for 0. See bulk_pool.h.
struct alignas(16) ChunkHead {
  std::atomic<std::uint16_t> idle;
};
static_assert(sizeof(ChunkHead) == 16 && std::atomic<std::uint16_t>::is_always_lock_free);

/// ChunkHead::idle of a chunk that was sent to local node `holder` and is read, there...
[[nodiscard]] constexpr std::uint16_t idle_at(std::uint32_t holder) noexcept {
  return static_cast<std::uint16_t>(holder + 1);
}
/// ...or by its owner, to whom that node had sent it back, with something else in it.
[[nodiscard]] constexpr std::uint16_t idle_at_home(std::uint32_t holder) noexcept {
  return static_cast<std::uint16_t>(0x8000U | (holder + 1));
}

inline constexpr std::uint64_t kClaimed = std::uint64_t{1} << 32;

// Bits of Segment::state.
inline constexpr std::uint32_t kAsleep = 1;  // Set by the owner; who clears it rings the bell.
inline constexpr std::uint32_t kClosed = 2;  // Set by the owner: takes no more packets.
inline constexpr std::uint32_t kFence = 4;   // Somebody has no membarrier: see doorbell.h.

struct Segment {
  // From there on: chunk_count chunks, each a head and chunk_bytes bytes.
  static const std::uint64_t kChunksBegin;

  // Written once by the owner when it opens; `ready` last.
  std::atomic<std::uint32_t> ready;
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> chunk_count;
  std::atomic<std::uint32_t> chunk_bytes;
  // Where in the owner's process the cookie is, for who copies directly (DirectAddress).
  std::atomic<std::uint64_t> cookie_address;
  std::atomic<std::uint64_t> cookie;

  alignas(kCacheLineBytes) std::atomic<std::uint32_t> state;
  // When its bell was last rung (monotonic clock); 0: not since it prepared to sleep. A hint.
  std::atomic<std::uint64_t> rung_ns;
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> absence;         // See AbsenceFlag.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> is_room_wanted;  // 1: see room_waiters.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> tail;   // Next ticket; taken by senders.
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> taken;  // Tickets done; written by the owner.
  // Bit i: local node i sleeps until there is room here. Set by senders, cleared by the owner.
  alignas(kCacheLineBytes) std::array<std::atomic<std::uint64_t>, kLocalNodesMax / 64> room_waiters;
  // By receiver: kClaimed and the ticket of its inbox that the owner of this segment is about to
  // take, or has taken and not filled yet; else 0. Written by the owner's sender to that receiver,
  // read by the receiver: see inbox.h, C.
  alignas(kCacheLineBytes) std::array<std::atomic<std::uint64_t>, kLocalNodesMax> claims;
  // Receives of the owner that peers may write into.
  InvitationBoard invitations;
  alignas(4096) std::array<Cell, kCellCount> cells;

  [[nodiscard]] Cell& cell(std::uint32_t ticket) noexcept {
    return cells[ticket * kCellStep % kCellCount];
  }
  [[nodiscard]] ChunkHead& chunk(std::uint32_t index, std::uint32_t bytes) noexcept {
    return *reinterpret_cast<ChunkHead*>(reinterpret_cast<std::byte*>(this) + kChunksBegin +
                                         index * chunk_stride(bytes));
  }
  [[nodiscard]] static std::byte* bytes_of(ChunkHead& chunk) noexcept {
    return reinterpret_cast<std::byte*>(&chunk + 1);
  }
  /// Has the pages of `count` chunks of `bytes` bytes made now. A hint.
  static void populate(ChunkHead& first, std::uint32_t count, std::uint32_t bytes) noexcept;
  /// From one chunk to the next.
  [[nodiscard]] static constexpr std::uint64_t chunk_stride(std::uint32_t bytes) noexcept {
    return (sizeof(ChunkHead) + std::uint64_t{bytes} + kCacheLineBytes - 1) / kCacheLineBytes *
           kCacheLineBytes;
  }
};
static_assert(sizeof(Segment) % 4096 == 0);
// In the middle of a page: the memory of large messages begins near the beginning of one. A
// processor that compares only the last 12 bits of two addresses takes loads close in front of what
// it has just stored for loads of that, and waits; that hits copies into chunks, or out of them.
inline constexpr std::uint64_t Segment::kChunksBegin = sizeof(Segment) + 2048;

/// A mapping of the segment of one local node. Maps on map(), unmaps with the object.
class SegmentMapping {
 public:
  SegmentMapping() noexcept = default;
  SegmentMapping(SegmentMapping&& other) noexcept;
  SegmentMapping& operator=(SegmentMapping&& other) noexcept;
  ~SegmentMapping();

  /// Fails with system, or malformed when the memfd is too small for this node.
  static Result<SegmentMapping> map(int fd, std::uint32_t local_index,
                                    std::uint64_t segment_bytes) noexcept;

  /// Has the pages of the inbox made now, rather than one by one by the first messages. A hint.
  void populate() const noexcept;

  [[nodiscard]] Segment& operator*() const noexcept { return *segment_; }
  [[nodiscard]] Segment* operator->() const noexcept { return segment_; }

 private:
  Segment* segment_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace sterna::net::shm
