// How long the program of a peer stays away from the beginning of a direct copy on, by the last
// ones: who copies looks after each part whether the peer is back, so as to go on in packets, and
// each part is a call of the kernel, which takes two to three microseconds whatever its length. So
// one part goes as far as the peer has stayed away before.
//
// Not thread-safe: the poller's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sterna::net {

class StayHabit {
 public:
  static constexpr std::uint64_t kForever = ~std::uint64_t{0};

  /// It was back so long after the beginning; kForever: all was copied before that.
  void stayed(std::uint64_t ns) noexcept {
    expected_ns_ = last_ns_ == 0 ? 0 : std::min(ns, last_ns_);
    last_ns_ = std::max<std::uint64_t>(ns, 1);
  }

  /// How much is copied until the next look: in `elapsed_ns` it was `copied` bytes.
  [[nodiscard]] std::uint64_t part_bytes(std::uint64_t copied, std::uint64_t elapsed_ns,
                                         std::uint64_t least, std::uint64_t most) const noexcept {
    if (copied == 0 || expected_ns_ <= elapsed_ns) {
      return least;
    }
    const double times = static_cast<double>(expected_ns_ - elapsed_ns) /
                         static_cast<double>(std::max<std::uint64_t>(elapsed_ns, 1));
    const double bytes = static_cast<double>(copied) * times;
    return bytes >= static_cast<double>(most)
               ? most
               : std::max(static_cast<std::uint64_t>(bytes), least);
  }

 private:
  std::uint64_t expected_ns_ = 0;  // The shorter one of the last two; 0: not known.
  std::uint64_t last_ns_ = 0;      // 0: none.
};

}  // namespace sterna::net
