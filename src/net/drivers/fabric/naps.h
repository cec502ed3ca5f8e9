// How long who waits sleeps where nothing can wake it: a provider without a wait descriptor says
// of nothing that it has come, so each sleep ends by itself and is followed by a look.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace sterna::net::fabric {

/// Not thread-safe: its owner has a lock for it.
class Naps {
 public:
  /// What comes soon is found soon...
  static constexpr std::uint64_t kShortestNs = 10'000;
  /// ...and what does not come is looked for so often that this costs a few per cent of a core.
  static constexpr std::uint64_t kLongestNs = 1'000'000;

  void begin(std::uint64_t now) noexcept { end_ns_ = now + length_ns_; }
  /// It is over. Only one that lasted was in vain: who was woken, or asked only whether it could
  /// sleep (a tick), has not waited.
  void end(std::uint64_t now) noexcept {
    if (now >= end_ns_) {
      length_ns_ = std::min(2 * length_ns_, kLongestNs);
    }
    end_ns_ = kNever;
  }
  /// Something came, or went and may be answered: more is near.
  void shorten() noexcept { length_ns_ = kShortestNs; }
  /// When the present one is over; kNever: there is none.
  [[nodiscard]] std::uint64_t end_ns() const noexcept { return end_ns_; }

 private:
  std::uint64_t length_ns_ = kShortestNs;
  std::uint64_t end_ns_ = kNever;
};

}  // namespace sterna::net::fabric
