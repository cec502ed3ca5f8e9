// What long eager messages teach of a way whose messages may be copied directly: what their packets
// take to fill, and, by some that are announced all the same, what the other way takes. Nothing
// would be known of either otherwise where all messages are like that.
//
// Some in a row are announced: the memory of one between packets is in no cache of its reader, and
// takes twice as long as where all are read, if what is sent is not new each time.
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
  static constexpr std::uint32_t kAnnouncedEvery = 64;  // In the mean,
  static constexpr std::uint32_t kInARow = 4;           // and so many in a row.

  /// See CostModel::tried_from_bytes().
  void begin_from(std::uint64_t bytes) noexcept {
    from_bytes_.store(bytes, std::memory_order_relaxed);
  }
  /// Whether an eager message of so many bytes is announced all the same, and copied directly.
  [[nodiscard]] bool is_announced(std::uint64_t bytes) noexcept {
    if (bytes < from_bytes_.load(std::memory_order_relaxed)) {
      return false;
    }
    const std::uint32_t count = announced_.load(std::memory_order_relaxed);
    announced_.store(count + 1, std::memory_order_relaxed);
    // More at first: what is known then is of memory that was written just before.
    const std::uint32_t place = count % (kAnnouncedEvery * kInARow);
    return ends_group(place, kAnnouncedEvery) ||
           (count < kAnnouncedEvery && (ends_group(place, 16) || ends_group(place, 32)));
  }
  /// Whether it is measured what filling its packets takes: one of kFilledEvery.
  [[nodiscard]] bool is_measured(std::uint64_t bytes) noexcept {
    return bytes >= from_bytes_.load(std::memory_order_relaxed) && filled_.is_next();
  }

 private:
  /// `place` is one of the last of so many.
  [[nodiscard]] static constexpr bool ends_group(std::uint32_t place,
                                                 std::uint32_t count) noexcept {
    return place < count && place >= count - kInARow;
  }

  std::atomic<std::uint64_t> from_bytes_{CostModel::kNever};
  std::atomic<std::uint32_t> announced_{0};  // Those that were asked for.
  OneOf filled_{kFilledEvery};
};

}  // namespace sterna::net
