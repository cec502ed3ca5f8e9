// Packs with the setting pack_checks: what stands in a block before each piece. Behind it lie the
// bytes of a short piece; those of a long one come as the next part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>

#include "runtime/capi/messages/message_data.h"
#include "runtime/capi/messages/pack.h"

namespace sterna::runtime::capi {

struct PieceHead {
  std::uint64_t bytes = 0;
  sterna_pack_mode mode = STERNA_PACK_SAFER;
  sterna_unpack_mode other = STERNA_UNPACK_EXPRESS;

  friend bool operator==(const PieceHead&, const PieceHead&) = default;
};

/// A word in the byte order of the job: 48 bits of length, then the modes, a byte each. `bytes` is
/// at most kMessageBytesMax.
inline void encode(const PieceHead& head, std::byte* place) noexcept {
  const std::uint64_t word = head.bytes | static_cast<std::uint64_t>(head.mode) << 48 |
                             static_cast<std::uint64_t>(head.other) << 56;
  static_assert(sizeof word == kPieceHeadBytes && kMessageBytesMax < (std::uint64_t{1} << 48));
  std::memcpy(place, &word, sizeof word);
}

/// Of the piece at `position` of a block. False: none stands there, or its bytes go beyond the end.
[[nodiscard]] inline bool decode(std::span<const std::byte> block, std::size_t position,
                                 PieceHead& head) noexcept {
  if (position > block.size() || block.size() - position < kPieceHeadBytes) {
    return false;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, block.data() + position, sizeof word);
  const PieceHead read{.bytes = word & ((std::uint64_t{1} << 48) - 1),
                       .mode = static_cast<sterna_pack_mode>(word >> 48 & 0xff),
                       .other = static_cast<sterna_unpack_mode>(word >> 56)};
  if (read.bytes > kMessageBytesMax || !are_pack_modes(read.mode, read.other) ||
      (is_short_piece(read.bytes, read.other) &&
       read.bytes > block.size() - position - kPieceHeadBytes)) {
    return false;
  }
  head = read;
  return true;
}

/// "8 bytes, SAFER, EXPRESS"
[[nodiscard]] inline std::string words_for(const PieceHead& head) {
  const char* const mode = head.mode == STERNA_PACK_SAFER   ? "SAFER"
                           : head.mode == STERNA_PACK_LATER ? "LATER"
                                                            : "CHEAPER";
  return fmt::format("{} bytes, {}, {}", head.bytes, mode,
                     head.other == STERNA_UNPACK_EXPRESS ? "EXPRESS" : "CHEAPER");
}

}  // namespace sterna::runtime::capi
