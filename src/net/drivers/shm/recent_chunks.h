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
    bool is_theirs;   // Of the other node's segment; else of this one's.
    bool comes_back;  // To the other node, which wrote there last.
  };

  /// By the poller, after the chunk's head says that it was read.
  void push(Entry entry) noexcept {
    const std::uint32_t at = pushed_.load(std::memory_order_relaxed);
    const auto value = static_cast<std::uint16_t>(entry.chunk | (entry.is_theirs ? kTheirs : 0U));
    entries_[at % kCount].store(value, std::memory_order_relaxed);
    pushed_.store(at + 1, std::memory_order_release);  // A: the entry is there.
  }

  /// By the sender: one of those that were read last, and not taken yet; false: there is none. Of
  /// the chunks of one message the first comes first: a message that answers it is often as long,
  /// and fills each chunk as far as it was filled.
  [[nodiscard]] bool pop(Entry& entry) noexcept {
    const std::uint32_t pushed = pushed_.load(std::memory_order_acquire);  // Pairs with A.
    if (pushed != seen_) {
      gather(pushed);
    }
    if (depth_ == 0) {
      return false;
    }
    --depth_;
    const std::uint16_t value = stack_[--top_ % kCount];
    entry = {.chunk = static_cast<std::uint16_t>(value & ~kTheirs),
             .is_theirs = (value & kTheirs) != 0,
             .comes_back = true};
    return true;
  }

 private:
  static constexpr std::uint16_t kTheirs = 0x8000;
  static constexpr std::uint32_t kCount = 64;  // About as much as stays in caches.
  static constexpr std::uint32_t kOfMessage = 16;  // Taken for those of one; more may be stale.

  void gather(std::uint32_t pushed) noexcept {
    seen_ = pushed - seen_ > kCount ? pushed - kCount : seen_;  // Older ones are overwritten.
    for (; pushed - seen_ > kOfMessage; ++seen_) {
      put(seen_);
    }
    for (std::uint32_t at = pushed; at != seen_;) {
      put(--at);
    }
    seen_ = pushed;
  }
  void put(std::uint32_t at) noexcept {
    stack_[top_++ % kCount] = entries_[at % kCount].load(std::memory_order_relaxed);
    depth_ += depth_ < kCount ? 1 : 0;
  }

  std::array<std::atomic<std::uint16_t>, kCount> entries_{};  // Written by the poller.
  std::atomic<std::uint32_t> pushed_{0};                      // By the poller.
  // The sender's: a stack that forgets what is deepest.
  std::array<std::uint16_t, kCount> stack_{};
  std::uint32_t seen_ = 0;
  std::uint32_t top_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace sterna::net::shm
