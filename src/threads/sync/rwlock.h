// Many readers or one writer, user threads and kernel threads alike.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/sync/wait_list.h"

namespace sterna::threads {

/// Who goes first when both wait.
enum class RwPreference : std::uint8_t {
  fair,     // In turns: waiting readers after each writer, a waiting writer before new readers.
  readers,  // New readers pass waiting writers, who may starve.
  writers,  // Writers pass waiting readers, who may starve.
  none,     // Of one that is retired.
};

/// Not recursive. The holder may change its worker between lock and unlock. Waits are cancellation
/// points.
class RwLock {
 public:
  constexpr explicit RwLock(RwPreference preference = RwPreference::fair) noexcept
      : preference_{preference} {}
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;

  /// False: the deadline came first. Switches.
  bool lock_shared(std::uint64_t deadline_ns = kNever) noexcept;
  bool lock(std::uint64_t deadline_ns = kNever) noexcept;
  [[nodiscard]] bool try_lock_shared() noexcept;
  [[nodiscard]] bool try_lock() noexcept;
  /// False: nobody holds it in that way. Does not switch.
  bool unlock_shared() noexcept;
  bool unlock() noexcept;

  /// A hint: somebody holds it or waits.
  [[nodiscard]] bool is_used() noexcept;
  /// Whether it was not retired. For calls from programs.
  [[nodiscard]] bool is_fit() const noexcept {
    return preference_.load(std::memory_order_relaxed) != RwPreference::none;
  }
  /// Nobody uses it any more.
  void retire() noexcept { preference_.store(RwPreference::none, std::memory_order_relaxed); }

 private:
  [[nodiscard]] bool prefers(RwPreference who) const noexcept {
    return preference_.load(std::memory_order_relaxed) == who;
  }
  [[nodiscard]] bool may_read() const noexcept;
  /// Under lock_: hands the free lock to those who are next; returns the chain to signal.
  WaitNode* hand_over(bool after_writer) noexcept;

  SpinLock lock_;  // Guard of all below.
  std::atomic<RwPreference> preference_;  // Constant until it is retired. Relaxed.
  bool has_writer_ = false;
  std::uint32_t reader_count_ = 0;  // Who hold it.
  WaitList readers_;
  WaitList writers_;
};

}  // namespace sterna::threads
