// How fast packets are taken one after the other: whether it pays to call the lines of those behind
// the next one here ahead.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace sterna::net::shm {

/// Where the caches of both sides are near each other, the receiver of a stream is the slower side:
/// what it calls has been written, and to wait for each line would cost it a third of its time.
/// Where they are far apart the sender is: what is called has not been written, and goes to and fro
/// once more. So the pace is measured, without calls, now and then. The poller's.
class Pace {
 public:
  using Now = std::uint64_t (*)() noexcept;
  explicit Pace(Now now = now_ns) noexcept : now_{now} {}

  /// Of the packet behind `count` others of one poll: whether to call a line ahead.
  [[nodiscard]] bool is_fast(std::uint32_t count) noexcept {
    if (left_ == 0) [[unlikely]] {
      measure(count);
      return false;
    }
    --left_;
    return is_fast_ && count >= kInRow;
  }

 private:
  static constexpr std::uint32_t kInRow = 2;
  static constexpr std::uint32_t kFrom = 8;
  static constexpr std::uint32_t kMeasured = 16;
  static constexpr std::uint64_t kFastNs = 45;
  static constexpr std::uint32_t kPackets = 512;  // For so many it is taken to stay as it is.

  [[gnu::noinline]] void measure(std::uint32_t count) noexcept {
    if (count == kFrom) {
      begin_ns_ = now_();
    } else if (count == kFrom + kMeasured && begin_ns_ != 0) {
      is_fast_ = now_() - begin_ns_ < kMeasured * kFastNs;
      begin_ns_ = 0;
      left_ = kPackets;
    }
  }

  const Now now_;
  std::uint64_t begin_ns_ = 0;  // 0: no measurement is under way.
  std::uint32_t left_ = 0;      // Packets until the next one.
  bool is_fast_ = false;
};

}  // namespace sterna::net::shm
