// Between one node and another: the chunks that the first has read last, which it fills with least
// cost for the second.
//
// Entries are hints. Whether a chunk is still to be had says its head alone (bulk_pool.h); so an
// entry that was overwritten or is there twice does no harm.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "net/drivers/shm/segment.h"

namespace sterna::net::shm {

class RecentChunks {
 public:
  struct Entry {
    std::uint16_t chunk;
    bool is_theirs;  // Of the other node's segment; else of this one's.
  };

  /// By the poller, after the chunk's head says that it was read.
  void push(Entry entry) noexcept {
    const std::uint32_t at = pushed_.load(std::memory_order_relaxed);
    const auto value = static_cast<std::uint16_t>(entry.chunk | (entry.is_theirs ? kTheirs : 0U));
    entries_[at % kCount].store(value, std::memory_order_relaxed);
    pushed_.store(at + 1, std::memory_order_release);  // A: the entry is there.
  }

  /// By the sender: the one that was read last of those not taken yet; false: there is none.
  [[nodiscard]] bool pop(Entry& entry) noexcept {
    const std::uint32_t pushed = pushed_.load(std::memory_order_acquire);  // Pairs with A.
    if (pushed - seen_ > kCount) {
      seen_ = pushed - kCount;  // The older ones are overwritten.
    }
    for (; seen_ != pushed; ++seen_) {
      stack_[top_++ % kCount] = entries_[seen_ % kCount].load(std::memory_order_relaxed);
      depth_ += depth_ < kCount ? 1 : 0;
    }
    if (depth_ == 0) {
      return false;
    }
    --depth_;
    const std::uint16_t value = stack_[--top_ % kCount];
    entry = {.chunk = static_cast<std::uint16_t>(value & ~kTheirs),
             .is_theirs = (value & kTheirs) != 0};
    return true;
  }

 private:
  static constexpr std::uint16_t kTheirs = 0x8000;
  static constexpr std::uint32_t kCount = kChunkCountMax / 2;  // As many as one node holds.

  std::array<std::atomic<std::uint16_t>, kCount> entries_{};  // Written by the poller.
  std::atomic<std::uint32_t> pushed_{0};                      // By the poller.
  // The sender's: a stack that forgets what is deepest.
  std::array<std::uint16_t, kCount> stack_{};
  std::uint32_t seen_ = 0;
  std::uint32_t top_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace sterna::net::shm
