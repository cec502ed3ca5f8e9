// How a message that goes eagerly is cut into frames.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sterna::net {

/// Frames are as long as they may be, but where a packet is copied twice, by one side while the
/// other copies the next one (`grows`). Until the first one is there the receiver has nothing to
/// copy, so that is a short one; it copies more slowly than the sender fills, so each may be longer
/// than the one before. On an EPYC 24 KB take 16 % less so between near processors, 5 % between far
/// ones, 64 KB 5 %.
class EagerCut {
 public:
  static constexpr std::uint32_t kFirstBytes = 8 << 10;
  static constexpr std::uint32_t kSecondBytes = 14 << 10;

  EagerCut(std::uint64_t bytes, std::uint32_t frame_bytes_max, bool grows) noexcept
      : bytes_{bytes}, most_{frame_bytes_max}, grows_{grows && bytes > frame_bytes_max} {}

  /// Else the first frame is the longest one.
  [[nodiscard]] bool grows() const noexcept { return grows_; }

  /// At least one.
  [[nodiscard]] std::uint32_t frame_count() const noexcept {
    if (!grows_) {
      return bytes_ == 0 ? 1 : static_cast<std::uint32_t>((bytes_ + most_ - 1) / most_);
    }
    std::uint32_t count = 0;
    for (std::uint64_t offset = 0; offset < bytes_; offset += bytes_at(offset)) {
      ++count;
    }
    return count;
  }

  /// Of the frame that begins at `offset`.
  [[nodiscard]] std::uint32_t bytes_at(std::uint64_t offset) const noexcept {
    const std::uint64_t left = bytes_ - offset;
    if (!grows_) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, most_));
    }
    if (offset == 0) {
      return std::min(kFirstBytes, most_);
    }
    if (left <= most_) {
      return static_cast<std::uint32_t>(left);
    }
    if (offset == kFirstBytes) {
      return std::min(kSecondBytes, most_);
    }
    // All alike, rather than a rest that costs as much as a whole one.
    const std::uint64_t parts = (left + most_ - 1) / most_;
    return static_cast<std::uint32_t>((left + parts - 1) / parts);
  }

 private:
  const std::uint64_t bytes_;
  const std::uint32_t most_;
  const bool grows_;
};

}  // namespace sterna::net
