// The bulk chunks of a node: fixed pieces of its segment for packets too large for a cell.
//
// The owner copies a packet into a chunk and sends a reference; the receiver reads it in place and
// clears the chunk's busy flag; the owner finds it free again at its next look. No chunk is freed
// through a queue: a receiver that dies or lies costs chunks, never memory. One receiver holds at
// most half of the chunks, so that a slow one does not stop the way to the others.
//
// Which chunk is taken is a matter of caches. A chunk that was just read lies in those of its
// reader: for a short packet the few lines of one that both have at hand are the best. To write a
// long one there takes the lines away from the reader, each of them a way between two processors;
// so long packets go through all chunks in turn, more than a second-level cache holds: 16 KB take
// half of the time between neighbours, two thirds between far-apart processors. That is why chunks
// come back at the end of a queue: short packets take from there, long ones from its front.
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
      free_[i] = static_cast<std::uint8_t>(i);
    }
    free_count_ = chunk_count;
  }

  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::uint32_t chunk_count() const noexcept { return chunk_count_; }
  [[nodiscard]] std::byte* bytes(std::uint32_t chunk) const noexcept {
    return segment_->chunk(chunk, chunk_bytes_);
  }

  /// A chunk for `bytes` bytes to local node `receiver`, marked busy, or kNone. Any thread.
  [[nodiscard]] std::uint32_t try_acquire(std::uint32_t receiver, std::size_t bytes) noexcept {
    const SpinGuard guard{lock_};
    Held& held = held_by_[receiver];
    // Packets are mostly taken in the order sent: the first that is still busy ends the look.
    while (held.count != 0 && !is_busy(held.oldest)) {
      take_back(held.oldest);
    }
    if (free_count_ == 0 || held.count >= limit()) [[unlikely]] {
      collect();
      if (free_count_ == 0 || held.count >= limit()) {
        return kNone;
      }
    }
    const std::uint32_t chunk = bytes < kLongBytes ? take_newest() : take_oldest();
    give(chunk, receiver);
    // Relaxed: published together with the reference (A in inbox.h).
    segment_->chunk_is_busy[chunk].store(1, std::memory_order_relaxed);
    return chunk;
  }

  /// Gives back a chunk that was not sent.
  void release_unsent(std::uint32_t chunk) noexcept {
    segment_->chunk_is_busy[chunk].store(0, std::memory_order_relaxed);
    const SpinGuard guard{lock_};
    collect();
  }

  /// Takes back what a dead receiver holds.
  void reclaim(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    for (std::uint32_t chunk = 0; chunk < chunk_count_; ++chunk) {
      if (holder_[chunk] == receiver) {
        segment_->chunk_is_busy[chunk].store(0, std::memory_order_relaxed);
      }
    }
    collect();
  }

  /// Whether try_acquire() for `receiver` would succeed.
  [[nodiscard]] bool has_room(std::uint32_t receiver) noexcept {
    const SpinGuard guard{lock_};
    collect();
    return free_count_ > 0 && held_by_[receiver].count < limit();
  }

 private:
  static constexpr std::size_t kLongBytes = 3 << 10;  // From here a packet is long.
  static constexpr std::uint16_t kNobody = 0xffff;
  static_assert(kChunkCountMax <= 256, "the number of a chunk fits a byte");

  /// What a receiver has: a list, in the order of sending.
  struct Held {
    std::uint16_t count;
    std::uint8_t oldest;  // If there are any...
    std::uint8_t newest;
  };
  struct Neighbours {
    std::uint8_t older;  // ...and of each but for the ends of its list.
    std::uint8_t newer;
  };

  [[nodiscard]] std::uint32_t limit() const noexcept { return (chunk_count_ + 1) / 2; }

  [[nodiscard]] bool is_busy(std::uint32_t chunk) const noexcept {
    // Acquire: pairs with the receiver's release, which ends its reads of the chunk.
    return segment_->chunk_is_busy[chunk].load(std::memory_order_acquire) != 0;
  }

  // The queue of free chunks; there are some.
  [[nodiscard]] std::uint32_t take_newest() noexcept STERNA_REQUIRES(lock_) {
    return free_[(free_first_ + --free_count_) % kChunkCountMax];
  }
  [[nodiscard]] std::uint32_t take_oldest() noexcept STERNA_REQUIRES(lock_) {
    --free_count_;
    return free_[free_first_++ % kChunkCountMax];
  }

  void give(std::uint32_t chunk, std::uint32_t receiver) noexcept STERNA_REQUIRES(lock_) {
    Held& held = held_by_[receiver];
    const auto number = static_cast<std::uint8_t>(chunk);
    if (held.count++ == 0) {
      held.oldest = number;
    } else {
      beside_[held.newest].newer = number;
      beside_[chunk].older = held.newest;
    }
    held.newest = number;
    holder_[chunk] = static_cast<std::uint16_t>(receiver);
  }

  void take_back(std::uint32_t chunk) noexcept STERNA_REQUIRES(lock_) {
    Held& held = held_by_[holder_[chunk]];
    const Neighbours beside = beside_[chunk];
    if (chunk == held.oldest) {
      held.oldest = beside.newer;
    } else {
      beside_[beside.older].newer = beside.newer;
    }
    if (chunk == held.newest) {
      held.newest = beside.older;
    } else {
      beside_[beside.newer].older = beside.older;
    }
    --held.count;
    holder_[chunk] = kNobody;
    free_[(free_first_ + free_count_++) % kChunkCountMax] = static_cast<std::uint8_t>(chunk);
  }

  void collect() noexcept STERNA_REQUIRES(lock_) {
    for (std::uint32_t chunk = 0; chunk < chunk_count_; ++chunk) {
      if (holder_[chunk] != kNobody && !is_busy(chunk)) {
        take_back(chunk);
      }
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
  SpinLock lock_;
  // A chunk is either among the free_count_ of free_ from free_first_ on, or has a holder.
  std::array<std::uint8_t, kChunkCountMax> free_ STERNA_GUARDED_BY(lock_) = {};
  std::uint32_t free_first_ STERNA_GUARDED_BY(lock_) = 0;  // Modulo 2^32.
  std::uint32_t free_count_ STERNA_GUARDED_BY(lock_) = 0;
  std::array<std::uint16_t, kChunkCountMax> holder_ STERNA_GUARDED_BY(lock_) = all_free();
  std::array<Held, kLocalNodesMax> held_by_ STERNA_GUARDED_BY(lock_) = {};
  std::array<Neighbours, kChunkCountMax> beside_ STERNA_GUARDED_BY(lock_) = {};
};

}  // namespace sterna::net::shm
