// How far ahead of the packet that it takes the receiver of a stream calls lines here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/clock.h"

namespace sterna::net::shm {

/// Where packets have been written before they are taken, to wait for the line of each costs the
/// receiver up to half of its time: it calls those of later ones while it takes this one. Where the
/// sender is behind, what is called has not been written, and goes to and fro once more. How far
/// ahead is best, the distance of the two caches says. So all are tried, now and then, in turn, and
/// that under which packets were taken fastest is kept. The poller's.
class ReadAhead {
 public:
  using Now = std::uint64_t (*)() noexcept;
  explicit ReadAhead(Now now = now_ns) noexcept : now_{now} { least_.fill(kNever); }

  /// Of the packet behind `count` others of one poll: which one behind it to call; 0: none.
  [[nodiscard]] std::uint32_t cells(std::uint32_t count) noexcept {
    if (left_ == 0) [[unlikely]] {
      measure(count);
    } else {
      --left_;
    }
    return count >= kInRow ? kCells[chosen_] : 0;
  }

 private:
  static constexpr std::array<std::uint32_t, 3> kCells{0, 4, 8};
  static constexpr std::uint32_t kInRow = 2;
  static constexpr std::uint32_t kFrom = 8;
  static constexpr std::uint32_t kMeasured = 16;
  static constexpr std::uint32_t kTimes = 4;      // Each, of which the least counts.
  static constexpr std::uint32_t kPackets = 8192;  // For so many it is taken to stay as it is.
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  [[gnu::noinline]] void measure(std::uint32_t count) noexcept {
    if (count == kFrom) {
      begin_ns_ = now_();
    } else if (count == kFrom + kMeasured && begin_ns_ != 0) {
      least_[chosen_] = std::min(least_[chosen_], now_() - begin_ns_);
      begin_ns_ = 0;
      chosen_ = (chosen_ + 1) % kCells.size();
      if (++measures_ == kTimes * kCells.size()) {
        choose();
      }
    }
  }
  /// One that is faster by little may be so by chance; then it is called less.
  void choose() noexcept {
    chosen_ = 0;
    for (std::size_t i = 1; i < kCells.size(); ++i) {
      chosen_ = least_[i] < least_[chosen_] - least_[chosen_] / 16 ? i : chosen_;
    }
    least_.fill(kNever);
    measures_ = 0;
    left_ = kPackets;
  }

  const Now now_;
  std::uint64_t begin_ns_ = 0;  // 0: no measurement is under way.
  std::array<std::uint64_t, kCells.size()> least_;
  std::uint32_t left_ = 0;  // Packets until the next ones.
  std::uint32_t measures_ = 0;
  std::size_t chosen_ = 0;  // Or the one that is tried.
};

}  // namespace sterna::net::shm
