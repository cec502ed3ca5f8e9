// How a message that goes eagerly is cut into frames.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sterna::net {

/// Frames are as long as they may be, but where a packet is copied twice, by one side while the
/// other copies the next one (`begins_short`). There a message that does not fit one frame begins
/// with a short one, until which its receiver has nothing to copy; and the others are not so long
/// that one side waits long for the other.
///
/// `led`: by a frame of a few bytes, with which its receive is found: what follows, in one frame,
/// can then be received where it belongs (PacketSink::place).
class EagerCut {
 public:
  static constexpr std::uint32_t kFirstBytes = 12 << 10;
  static constexpr std::uint32_t kNextBytes = 26 << 10;
  static constexpr std::uint32_t kLeadBytes = 64;

  EagerCut(std::uint64_t bytes, std::uint32_t frame_bytes_max, bool begins_short) noexcept
      : bytes_{bytes},
        begins_short_{begins_short && bytes > frame_bytes_max && frame_bytes_max > kFirstBytes},
        first_{begins_short_ ? kFirstBytes : frame_bytes_max},
        next_{begins_short_ ? std::min(kNextBytes, frame_bytes_max) : frame_bytes_max} {}

  [[nodiscard]] static EagerCut led(std::uint64_t bytes, std::uint32_t frame_bytes_max) noexcept {
    EagerCut cut{bytes, frame_bytes_max, false};
    cut.begins_short_ = bytes > kLeadBytes && frame_bytes_max > kLeadBytes;
    cut.first_ = cut.begins_short_ ? kLeadBytes : frame_bytes_max;
    return cut;
  }

  /// Else no frame is longer than the first one.
  [[nodiscard]] bool begins_short() const noexcept { return begins_short_; }

  /// At least one.
  [[nodiscard]] std::uint32_t frame_count() const noexcept {
    return bytes_ <= first_ ? 1
                            : static_cast<std::uint32_t>(1 + (bytes_ - first_ + next_ - 1) / next_);
  }

  /// Of the frame that begins at `offset`.
  [[nodiscard]] std::uint32_t bytes_at(std::uint64_t offset) const noexcept {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(bytes_ - offset, offset == 0 ? first_ : next_));
  }

 private:
  std::uint64_t bytes_;
  bool begins_short_;
  std::uint32_t first_;
  std::uint32_t next_;  // Each that follows.
};

}  // namespace sterna::net
