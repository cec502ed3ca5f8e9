// How a message that goes eagerly is cut into frames.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sterna::net {

/// Frames are as long as they may be, but the first where a packet is copied twice, by one side
/// while the other copies the next one (`begins_short`): until it is there the receiver has nothing
/// to copy.
class EagerCut {
 public:
  static constexpr std::uint32_t kFirstBytes = 12 << 10;

  EagerCut(std::uint64_t bytes, std::uint32_t frame_bytes_max, bool begins_short) noexcept
      : bytes_{bytes},
        most_{frame_bytes_max},
        first_{begins_short && bytes > frame_bytes_max ? std::min(kFirstBytes, most_) : most_} {}

  /// Else no frame is longer than the first one.
  [[nodiscard]] bool begins_short() const noexcept { return first_ != most_; }

  /// At least one.
  [[nodiscard]] std::uint32_t frame_count() const noexcept {
    return bytes_ <= first_ ? 1
                            : static_cast<std::uint32_t>(1 + (bytes_ - first_ + most_ - 1) / most_);
  }

  /// Of the frame that begins at `offset`.
  [[nodiscard]] std::uint32_t bytes_at(std::uint64_t offset) const noexcept {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(bytes_ - offset, offset == 0 ? first_ : most_));
  }

 private:
  const std::uint64_t bytes_;
  const std::uint32_t most_;
  const std::uint32_t first_;
};

}  // namespace sterna::net
