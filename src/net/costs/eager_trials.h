// What long eager messages teach of a way whose messages may be copied directly: what their packets
// take to fill, and, by some that are announced all the same, what the other way takes. Nothing
// would be known of either otherwise where all messages are like that.
//
// Any thread; all relaxed: two that ask at once may count as one.
#pragma once

#include <atomic>
#include <cstdint>

#include "net/costs/cost.h"
#include "net/costs/round_trip.h"

namespace sterna::net {

class EagerTrials {
 public:
  static constexpr std::uint32_t kFilledEvery = 8;
  static constexpr std::uint32_t kAnnouncedEvery = 64;

  /// See CostModel::tried_from_bytes().
  void begin_from(std::uint64_t bytes) noexcept {
    from_bytes_.store(bytes, std::memory_order_relaxed);
  }
  /// Whether an eager message of so many bytes is announced all the same, and copied directly.
  [[nodiscard]] bool is_announced(std::uint64_t bytes) noexcept {
    return bytes >= from_bytes_.load(std::memory_order_relaxed) && announced_.is_next();
  }
  /// Whether it is measured what filling its packets takes: one of kFilledEvery.
  [[nodiscard]] bool is_measured(std::uint64_t bytes) noexcept {
    return bytes >= from_bytes_.load(std::memory_order_relaxed) && filled_.is_next();
  }

 private:
  std::atomic<std::uint64_t> from_bytes_{CostModel::kNever};
  OneOf announced_{kAnnouncedEvery};
  OneOf filled_{kFilledEvery};
};

}  // namespace sterna::net
