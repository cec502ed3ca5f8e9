// How fast a rail moves what is lent by it (Channel::try_lend), and how much it still has to:
// learnt from loans that have ended, as RailRate does from packets. A profile may be many times
// off, and nothing that a rail is lent would be seen to wait for it: then one rail gets all.
//
// Between two ends of a rail that was busy its bytes have passed, and nothing else. A loan by an
// idle rail takes the turns of both sides as well, of which a round trip is known: it says that the
// rail is no slower than that. A rail that is never chosen is not measured: it is taken to be a
// little faster each time that so many loans have gone by others, until it is tried.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/driver.h"

namespace sterna::net {

/// Not thread-safe: under the lock of the link.
class LentPace {
 public:
  /// `profile`: what is expected before anything was measured.
  [[nodiscard]] std::uint64_t ps_per_byte(std::uint64_t profile) const noexcept {
    return ps_per_byte_ != 0 ? ps_per_byte_ : std::min(profile, idle_ps_per_byte_);
  }
  [[nodiscard]] std::uint64_t bytes_under_way() const noexcept { return under_way_; }

  [[nodiscard]] LentStamp begin(std::uint64_t bytes, std::uint64_t now_ns) noexcept {
    const bool was_idle = under_way_ == 0;
    if (was_idle) {
      from_ns_ = now_ns;
      is_burst_ = true;
    }
    under_way_ += bytes;
    passed_over_ = 0;
    return {bytes, ended_bytes_, from_ns_, was_idle, is_burst_};
  }

  /// `is_whole`: the peer has its bytes; else it is no measure.
  void end(const LentStamp& stamp, bool is_whole, std::uint64_t round_trip_ns,
           std::uint64_t now_ns) noexcept {
    under_way_ -= std::min(stamp.bytes, under_way_);
    if (!is_whole) {
      return;
    }
    ended_bytes_ += stamp.bytes;
    from_ns_ = now_ns;
    is_burst_ = false;
    const std::uint64_t bytes = ended_bytes_ - stamp.ended_bytes;
    std::uint64_t ns = now_ns - std::min(now_ns, stamp.from_ns);
    if (stamp.is_of_burst) {
      ns -= std::min(round_trip_ns, ns / 4 * 3);
    }
    if (ns == 0 || bytes < kBytesMin) {
      return;  // The clock is what one would measure.
    }
    learn(std::max<std::uint64_t>(ns * 1000 / bytes, 1), stamp.was_idle);
  }

  /// Another rail has got a loan that this one might have had.
  void pass_over() noexcept {
    if (++passed_over_ == kForgotten) {
      passed_over_ = 0;
      ps_per_byte_ -= ps_per_byte_ / 4;
    }
  }

 private:
  static constexpr std::uint64_t kBytesMin = 16 << 10;
  static constexpr std::uint32_t kForgotten = 64;

  void learn(std::uint64_t measured, bool is_at_most) noexcept {
    if (is_at_most) {
      idle_ps_per_byte_ = measured;
      ps_per_byte_ = std::min(ps_per_byte_, measured);
    } else if (ps_per_byte_ == 0) {
      ps_per_byte_ = measured;
    } else {  // One that was held up must not look like a slow network.
      ps_per_byte_ = (3 * ps_per_byte_ + std::min(measured, 4 * ps_per_byte_)) / 4;
    }
  }

  std::uint64_t ps_per_byte_ = 0;  // 0: not measured while it was busy.
  std::uint64_t idle_ps_per_byte_ = UINT64_MAX;  // Of the last loan by the idle rail.
  std::uint64_t under_way_ = 0;
  std::uint64_t ended_bytes_ = 0;
  std::uint64_t from_ns_ = 0;  // When one ended last, or since the rail was idle the first began.
  std::uint32_t passed_over_ = 0;
  bool is_burst_ = false;
};

}  // namespace sterna::net
