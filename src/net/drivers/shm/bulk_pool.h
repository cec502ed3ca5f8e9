// The bulk chunks of a node: fixed pieces of its segment for packets too large for a cell.
//
// The owner copies a packet into a chunk and sends a reference; the receiver reads it in place. No
// chunk is freed through a queue; a receiver that dies or lies costs chunks, never memory. One
// receiver holds at most three quarters of the chunks in use, so that a slow one does not stop the
// way to the others.
//
// Which chunk is taken is a matter of caches. To write where the receiver has just read takes each
// line away from its second-level cache, one by one, which costs three times what it costs to fill
// lines that this cache has given up. So a stream of long packets goes through more chunks than
// that holds, the one that was free longest first; but not through many more, which would put what
// programs have in the third level out of it. Those are the chunks [0, stream_count); of long
// packets one receiver holds no more than three quarters of so many. Short ones take the one that
// was free last.
// To begin with no chunk is in use, then some, and a stream adds more each time it has been through
// them: who sends little, or to and fro, touches no more memory than it needs. Chunks behind
// stream_count are for many short packets at once, and for several receivers.
//
// Who has read a chunk has its lines in his cache, and writes there at once what would cost the
// owner a transfer of every line: a line that always goes the same way takes four times as long as
// one that comes back. So a receiver answers in the chunk that it read, if the owner has not taken
// it back, and the owner sends to the same node again in what came home (RecentChunks). To the
// owner's accounts such a chunk is held by that node all the time.
//
// Invariants. At any time one of these has a chunk: its owner's pool (free_), a sender that fills
// it, a packet on its way, a receiver that reads it, or nobody (ChunkHead::idle is not 0). Out of
// the last state it comes by one compare-exchange of `idle` with 0: by the owner's collect(), or
// by the sender that `idle` names, to the holder or at it. So whoever wins it is alone with it,
// however old the entry in its RecentChunks is; and holder_ is the node that `idle` names.
// All interleavings: chunk_model_test.cc.
// Memory order: a reader stores `idle` with release after its last read; who takes the chunk does
// so with acquire. Its bytes are published with the reference (A in inbox.h).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "net/drivers/shm/segment.h"

namespace sterna::net::shm {

class BulkPool {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  /// `segment` is the owner's; its chunk_count and chunk_bytes are these. `stream_count`: of them a
  /// stream goes through so many.
  BulkPool(Segment& segment, std::uint32_t chunk_count, std::uint32_t chunk_bytes,
           std::uint32_t stream_count) noexcept
      : segment_{&segment},
        chunk_count_{chunk_count},
        chunk_bytes_{chunk_bytes},
        stream_count_{std::min(stream_count, chunk_count)} {}

  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::uint32_t chunk_count() const noexcept { return chunk_count_; }
  /// Of which senders take; relaxed: a hint.
  [[nodiscard]] std::uint32_t in_use() const noexcept {
    return in_use_told_.load(std::memory_order_relaxed);
  }
  /// Receivers are behind: of the chunks that they were sent few have come back. What is filled now
  /// they have just read, which is slow. Relaxed: a hint.
  [[nodiscard]] bool is_crowded() const noexcept {
    return is_crowded_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] ChunkHead& head(std::uint32_t chunk) const noexcept {
    return segment_->chunk(chunk, chunk_bytes_);
  }

  /// A chunk for `bytes` bytes to local node `receiver`, or kNone. Any thread.
  [[nodiscard]] std::uint32_t try_acquire(std::uint32_t receiver, std::size_t bytes) noexcept {
    {
      const SpinGuard guard{lock_};
      if (is_free_for(receiver, bytes)) [[likely]] {
        return take_for(receiver, bytes);
      }
      collect();
      is_crowded_.store(free_count() < in_use_ / 2, std::memory_order_relaxed);
      const bool is_free = is_free_for(receiver, bytes);
      const bool is_enough = is_free && (bytes < kLongBytes || in_use_ >= stream_count_);
      if (is_enough || in_use_ == chunk_count_ || !has_share(receiver, bytes)) {
        return is_free ? take_for(receiver, bytes) : kNone;
      }
    }
    widen();
    const SpinGuard guard{lock_};
    return is_free_for(receiver, bytes) ? take_for(receiver, bytes) : kNone;
  }

  /// Gives back a chunk of which somebody has had nothing yet: it was not sent.
  void release_unsent(std::uint32_t chunk) noexcept {
    const SpinGuard guard{lock_};
    free_again(chunk);
  }

  /// Takes back what a dead receiver holds. Nobody fills a chunk for it, or will.
  void reclaim(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    for (std::uint32_t chunk = 0; chunk < in_use_; ++chunk) {
      if (holder_[chunk] == receiver) {
        head(chunk).idle.store(0, std::memory_order_relaxed);
        free_again(chunk);
      }
    }
  }

  /// Whether try_acquire(receiver) would succeed, however long the packet.
  [[nodiscard]] bool has_room(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    collect();
    return has_share(receiver, kLongBytes) &&
           (in_use_ < chunk_count_ || is_free_for(receiver, kLongBytes));
  }

 private:
  static constexpr std::size_t kLongBytes = 4 << 10;  // From here a packet is long.
  static constexpr std::uint32_t kFirstCount = 8;     // Then four times as many, each time.
  static constexpr std::uint16_t kNobody = 0xffff;

  /// Three quarters, but at least one is for others.
  [[nodiscard]] static std::uint32_t share_of(std::uint32_t count) noexcept {
    return count - std::max(count / 4, 1U);
  }
  [[nodiscard]] std::uint32_t free_count() const noexcept STERNA_REQUIRES(lock_) {
    return ring_count_ + spare_count_;
  }
  [[nodiscard]] bool has_share(std::uint32_t receiver, std::size_t bytes) const noexcept
      STERNA_REQUIRES(lock_) {
    return bytes < kLongBytes || held_by_[receiver] < share_of(stream_count_);
  }
  [[nodiscard]] bool is_free_for(std::uint32_t receiver, std::size_t bytes) const noexcept
      STERNA_REQUIRES(lock_) {
    return free_count() > 0 && held_by_[receiver] < share_of(in_use_) && has_share(receiver, bytes);
  }

  [[nodiscard]] std::uint32_t take_free(std::size_t bytes) noexcept STERNA_REQUIRES(lock_) {
    if (ring_count_ == 0) {
      return spare_[--spare_count_];
    }
    const std::uint32_t at = bytes >= kLongBytes ? first_free_++ : first_free_ + ring_count_ - 1;
    --ring_count_;
    return free_[at % free_.size()];
  }

  [[nodiscard]] std::uint32_t take_for(std::uint32_t receiver, std::size_t bytes) noexcept
      STERNA_REQUIRES(lock_) {
    const std::uint32_t chunk = take_free(bytes);
    ++held_by_[receiver];
    holder_[chunk] = static_cast<std::uint16_t>(receiver);
    return chunk;
  }

  /// More chunks, which the next long packets take. Their pages are made at once, without the lock:
  /// one by one they would slow down the packets that come first, and the cost model with them.
  [[gnu::noinline]] void widen() noexcept {
    std::uint32_t begin;
    {
      const SpinGuard guard{lock_};
      begin = in_use_;
    }
    const std::uint32_t end = std::min(std::max(4 * begin, kFirstCount),
                                       begin < stream_count_ ? stream_count_ : chunk_count_);
    Segment::populate(head(begin), end - begin, chunk_bytes_);
    const SpinGuard guard{lock_};
    if (in_use_ != begin) {
      return;  // Somebody else has done it.
    }
    for (std::uint32_t chunk = end; chunk > begin; --chunk) {
      if (begin < stream_count_) {
        free_[--first_free_ % free_.size()] = static_cast<std::uint8_t>(chunk - 1);
        ++ring_count_;
      } else {
        spare_[spare_count_++] = static_cast<std::uint8_t>(chunk - 1);
      }
    }
    in_use_ = end;
    in_use_told_.store(end, std::memory_order_relaxed);
  }

  void collect() noexcept STERNA_REQUIRES(lock_) {
    // The heads lie in other caches: all are on their way while the first is waited for.
    for (std::uint32_t chunk = 0; chunk < in_use_; ++chunk) {
      if (holder_[chunk] != kNobody) {
        fetch_for_writing(&head(chunk));
      }
    }
    for (std::uint32_t chunk = 0; chunk < in_use_; ++chunk) {
      if (holder_[chunk] != kNobody && take(head(chunk))) {
        free_again(chunk);
      }
    }
  }

  /// Whoever has read it.
  static bool take(ChunkHead& head) noexcept {
    std::uint16_t idle = head.idle.load(std::memory_order_relaxed);
    return idle != 0 && head.idle.compare_exchange_strong(idle, 0, std::memory_order_acquire,
                                                          std::memory_order_relaxed);
  }

  void free_again(std::uint32_t chunk) noexcept STERNA_REQUIRES(lock_) {
    --held_by_[holder_[chunk]];
    holder_[chunk] = kNobody;
    if (chunk < stream_count_) {
      free_[(first_free_ + ring_count_++) % free_.size()] = static_cast<std::uint8_t>(chunk);
    } else {
      spare_[spare_count_++] = static_cast<std::uint8_t>(chunk);
    }
  }

  static constexpr std::array<std::uint16_t, kChunkCountMax> all_free() noexcept {
    std::array<std::uint16_t, kChunkCountMax> holders{};
    holders.fill(kNobody);
    return holders;
  }

  Segment* const segment_;
  const std::uint32_t chunk_count_;
  const std::uint32_t chunk_bytes_;
  const std::uint32_t stream_count_;
  SpinLock lock_;
  // Of the chunks [0, in_use_) each either has a holder or is free: those below stream_count_ among
  // the ring_count_ in free_, a ring, from first_free_ on, the others among the first in spare_.
  std::uint32_t in_use_ STERNA_GUARDED_BY(lock_) = 0;
  std::atomic<std::uint32_t> in_use_told_{0};  // The same, without the lock.
  std::atomic<bool> is_crowded_{false};
  std::array<std::uint8_t, kChunkCountMax> free_ STERNA_GUARDED_BY(lock_) = {};
  std::uint32_t first_free_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint32_t ring_count_ STERNA_GUARDED_BY(lock_) = 0;
  std::array<std::uint8_t, kChunkCountMax> spare_ STERNA_GUARDED_BY(lock_) = {};
  std::uint32_t spare_count_ STERNA_GUARDED_BY(lock_) = 0;
  std::array<std::uint16_t, kChunkCountMax> holder_ STERNA_GUARDED_BY(lock_) = all_free();
  std::array<std::uint16_t, kLocalNodesMax> held_by_ STERNA_GUARDED_BY(lock_) = {};
};

}  // namespace sterna::net::shm
