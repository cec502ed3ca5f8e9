// Messages in pieces (pack.h of the program), as both sides cut them.
//
// Short pieces are copied one after the other into blocks, long ones go alone, from where they lie
// to where they shall be. The first block is the head: it says by which number the other parts
// (further blocks, long pieces) come, and how many. Parts come in the order in which the pieces
// were packed, so both sides know from the sizes and modes alone which piece is where. What is
// where is not said, but with the setting pack_checks of the sender: piece_head.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sterna/pack.h>

#include "net/message.h"
#include "runtime/capi/messages/session.h"

namespace sterna::runtime::capi {

/// What the head begins with, in the byte order of the job.
struct PackHeader {
  std::uint32_t number = 0;  // Tag of the parts; of one sender, no two at a time are equal.
  std::uint32_t parts = 0;   // Besides the head; kPackChecked: its pieces have heads.
};
inline constexpr std::uint32_t kPackChecked = std::uint32_t{1} << 31;

inline constexpr std::size_t kPackBlockBytes = 8192;
// A piece that is wanted soon is worth a copy, where it saves a message.
inline constexpr std::size_t kPackShortBytes = 512;
inline constexpr std::size_t kPackShortExpressBytes = 4096;
inline constexpr std::size_t kPieceHeadBytes = 8;

[[nodiscard]] constexpr bool is_short_piece(std::size_t bytes, sterna_unpack_mode mode) noexcept {
  return bytes <= (mode == STERNA_UNPACK_EXPRESS ? kPackShortExpressBytes : kPackShortBytes);
}
static_assert(kPackShortExpressBytes + sizeof(PackHeader) + kPieceHeadBytes <= kPackBlockBytes);

[[nodiscard]] constexpr bool are_pack_modes(sterna_pack_mode mode,
                                            sterna_unpack_mode other) noexcept {
  return mode >= STERNA_PACK_SAFER && mode <= STERNA_PACK_CHEAPER &&
         other >= STERNA_UNPACK_EXPRESS && other <= STERNA_UNPACK_CHEAPER;
}

}  // namespace sterna::runtime::capi
