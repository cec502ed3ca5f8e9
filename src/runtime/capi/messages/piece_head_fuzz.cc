// Any block of a pack with checks: no piece lies beyond its end, and what decodes encodes to the
// same bytes.
#include <algorithm>

#include "base/check.h"
#include "runtime/capi/messages/piece_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  using namespace sterna::runtime::capi;
  const std::span<const std::byte> block{reinterpret_cast<const std::byte*>(data), bytes};
  PieceHead head;
  std::size_t position = 0;
  while (decode(block, position, head)) {
    std::byte again[kPieceHeadBytes];
    encode(head, again);
    check(std::ranges::equal(again, block.subspan(position, kPieceHeadBytes)),
          "a piece is described in one way");
    position += kPieceHeadBytes + (is_short_piece(head.bytes, head.other) ? head.bytes : 0);
    check(position <= bytes, "a piece lies in its block");
    check(words_for(head).size() < 60, "there is room for what is said of it");
  }
  return 0;
}
