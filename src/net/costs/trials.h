// Which announced messages go the way that the cost model did not choose, so that it goes on to
// learn what that one costs: the processors of a virtual machine are moved, near each other and
// far, and what was the faster way need not be so now. The one that is chosen is measured all the
// time; of the other nothing would be known any more.
//
// A trial is some messages, one behind the other, until the way has been measured some times:
// single ones between those that go the other way would not say what a stream takes. The first
// megabytes in packets do not count: nobody has had their memory in a cache for long. It ends
// earlier when it only finds what was known.
//
// What trials cost is bounded: between two as many bytes go the chosen way as make the time lost
// with the last one a hundredth, by the figures as they are then. One that taught nothing (the
// receiver was behind all the time, say) says nothing of that, and is repeated after twice as many
// bytes each time. The first of direct copies comes soon: what is known before it was measured in
// other memory, or on another day, and nothing is cold there.
//
// All depends on messages and figures alone. Not thread-safe: who holds the cost model asks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "net/costs/cost.h"

namespace sterna::net {

class Trials {
 public:
  static constexpr std::uint64_t kBytes = 1 << 20;      // Of a trial, at least...
  static constexpr std::uint64_t kBytesMax = 64 << 20;  // ...and, but for one message, at most.
  static constexpr std::uint64_t kEvery = 64;           // At most one of so many bytes...
  static constexpr double kLossMax = 0.01;              // ...and of the time that messages take.
  static constexpr std::uint64_t kFirstTimes = 16;      // The first, of direct copies, is sooner.

  /// Whether the next message, of so many bytes, goes the other way. Until as many bytes as until()
  /// says have gone this need not be asked again.
  [[nodiscard]] bool is_next(const CostModel& cost, std::uint64_t bytes) noexcept {
    if (is_under_way_ && has_ended(cost, bytes)) {
      is_under_way_ = false;
      last_bytes_ = gone_;
      gone_ = 0;
    }
    if (!is_under_way_) {
      gone_ += std::exchange(until_, 0);
      if (const std::uint64_t needed = bytes_between(cost, bytes); gone_ < needed) {
        until_ = needed - gone_;
        return false;
      }
      begin(cost, bytes);
    }
    gone_ += bytes;
    return true;
  }
  [[nodiscard]] std::uint64_t until() const noexcept { return until_; }

  /// Packets of so many bytes have gone, of which some were measured: whether that says what a
  /// stream takes.
  [[nodiscard]] bool is_warm(std::uint64_t bytes) noexcept {
    const bool was_cold = cold_bytes_ != 0;
    cold_bytes_ -= std::min(bytes, cold_bytes_);
    return !was_cold;
  }

  /// So many bytes go the chosen way between two trials.
  [[nodiscard]] std::uint64_t bytes_between(const CostModel& cost,
                                            std::uint64_t bytes) const noexcept {
    const CostModel::Other other = cost.other(bytes);
    const double times = std::max(other.excess / kLossMax, static_cast<double>(kEvery));
    const bool is_soon = !has_begun_ && !cost.is_copied_directly(bytes);
    const auto last = static_cast<double>(is_soon ? last_bytes_ / kFirstTimes : last_bytes_);
    return static_cast<std::uint64_t>(
        last * (has_taught(other) ? times : std::min(times, static_cast<double>(blind_))));
  }

  /// A part of a sentence.
  [[nodiscard]] std::string explain(const CostModel& cost, std::uint64_t bytes) const {
    const CostModel::Other other = cost.other(bytes);
    return fmt::format(
        "; the other way would take {:.2f} times as long by {} measures, and is tried each {} MiB",
        1 + other.excess, other.measures, bytes_between(cost, bytes) >> 20);
  }

 private:
  static constexpr std::uint32_t kMeasures = 16;  // Of a trial...
  static constexpr std::uint32_t kFewMeasures = 4;  // ...that is as slow as it was taken to be.
  static constexpr std::uint64_t kBlindMax = 1 << 20;
  static constexpr std::uint64_t kColdBytes = 3 << 20;

  [[nodiscard]] bool has_taught(const CostModel::Other& other) const noexcept {
    return other.measures != measures_;
  }
  [[nodiscard]] bool has_ended(const CostModel& cost, std::uint64_t bytes) const noexcept {
    const bool is_chosen = cost.is_copied_directly(bytes) == is_direct_;
    const CostModel::Other other = cost.other(bytes);
    const bool is_as_before = other.excess >= excess_ * 3 / 4;
    return is_chosen || gone_ >= kBytesMax ||
           (gone_ >= kBytes &&
            other.measures - measures_ >= (is_as_before ? kFewMeasures : kMeasures));
  }
  void begin(const CostModel& cost, std::uint64_t bytes) noexcept {
    const CostModel::Other other = cost.other(bytes);
    blind_ = has_taught(other) ? kEvery : std::min(2 * blind_, kBlindMax);
    measures_ = other.measures;
    is_direct_ = !cost.is_copied_directly(bytes);
    excess_ = other.excess;
    cold_bytes_ = is_direct_ ? 0 : kColdBytes;
    is_under_way_ = has_begun_ = true;
    gone_ = 0;
  }

  std::uint64_t until_ = kBytes;
  std::uint64_t gone_ = 0;             // In the trial under way, or since the last one.
  std::uint64_t last_bytes_ = kBytes;  // In the last one.
  std::uint32_t measures_ = 0;         // Of the other way, when the last trial began.
  std::uint64_t blind_ = kEvery;       // As kEvery, after some that taught nothing.
  std::uint64_t cold_bytes_ = 0;       // Measures of those are still to be dropped.
  double excess_ = 0;                  // When the last trial began.
  bool is_under_way_ = false;
  bool has_begun_ = false;  // One, ever.
  bool is_direct_ = false;  // It tries direct copies.
};

}  // namespace sterna::net
