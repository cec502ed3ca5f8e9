// The bulk chunks of a node: fixed pieces of its segment for packets too large for a cell.
//
// The owner copies a packet into a chunk and sends a reference; the receiver reads it in place. No
// chunk is freed through a queue: a receiver that dies or lies costs chunks, never memory. One
// receiver holds at most half of the chunks, so that a slow one does not stop the way to the
// others.
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

#include <array>
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

  /// `segment` is the owner's; its chunk_count and chunk_bytes are these.
  BulkPool(Segment& segment, std::uint32_t chunk_count, std::uint32_t chunk_bytes) noexcept
      : segment_{&segment}, chunk_count_{chunk_count}, chunk_bytes_{chunk_bytes} {
    for (std::uint32_t i = 0; i < chunk_count; ++i) {
      free_[i] = static_cast<std::uint8_t>(chunk_count - 1 - i);
    }
    free_count_ = chunk_count;
  }

  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::uint32_t chunk_count() const noexcept { return chunk_count_; }
  [[nodiscard]] ChunkHead& head(std::uint32_t chunk) const noexcept {
    return segment_->chunk(chunk, chunk_bytes_);
  }

  /// A chunk for local node `receiver`, or kNone. Any thread.
  [[nodiscard]] std::uint32_t try_acquire(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    std::uint16_t& held = held_by_[receiver];
    if (free_count_ == 0 || held >= limit()) [[unlikely]] {
      collect();
      if (free_count_ == 0 || held >= limit()) {
        return kNone;
      }
    }
    const std::uint32_t chunk = free_[--free_count_];
    ++held;
    holder_[chunk] = static_cast<std::uint16_t>(receiver);
    return chunk;
  }

  /// Gives back a chunk of which somebody has had nothing yet: it was not sent.
  void release_unsent(std::uint32_t chunk) noexcept {
    const SpinGuard guard{lock_};
    free_again(chunk);
  }

  /// Takes back what a dead receiver holds. Nobody fills a chunk for it, or will.
  void reclaim(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    for (std::uint32_t chunk = 0; chunk < chunk_count_; ++chunk) {
      if (holder_[chunk] == receiver) {
        head(chunk).idle.store(0, std::memory_order_relaxed);
        free_again(chunk);
      }
    }
  }

  /// Whether try_acquire(receiver) would succeed.
  [[nodiscard]] bool has_room(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    collect();
    return free_count_ > 0 && held_by_[receiver] < limit();
  }

 private:
  static constexpr std::uint16_t kNobody = 0xffff;

  [[nodiscard]] std::uint32_t limit() const noexcept { return (chunk_count_ + 1) / 2; }

  void collect() noexcept STERNA_REQUIRES(lock_) {
    // The heads lie in other caches: all are on their way while the first is waited for.
    for (std::uint32_t chunk = 0; chunk < chunk_count_; ++chunk) {
      if (holder_[chunk] != kNobody) {
        fetch_for_writing(&head(chunk));
      }
    }
    for (std::uint32_t chunk = 0; chunk < chunk_count_; ++chunk) {
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
    free_[free_count_++] = static_cast<std::uint8_t>(chunk);
  }

  static constexpr std::array<std::uint16_t, kChunkCountMax> all_free() noexcept {
    std::array<std::uint16_t, kChunkCountMax> holders{};
    holders.fill(kNobody);
    return holders;
  }

  Segment* const segment_;
  const std::uint32_t chunk_count_;
  const std::uint32_t chunk_bytes_;
  SpinLock lock_;
  // A chunk is either in free_[0, free_count_) or has a holder.
  std::array<std::uint8_t, kChunkCountMax> free_ STERNA_GUARDED_BY(lock_) = {};
  std::uint32_t free_count_ STERNA_GUARDED_BY(lock_) = 0;
  std::array<std::uint16_t, kChunkCountMax> holder_ STERNA_GUARDED_BY(lock_) = all_free();
  std::array<std::uint16_t, kLocalNodesMax> held_by_ STERNA_GUARDED_BY(lock_) = {};
};

}  // namespace sterna::net::shm
