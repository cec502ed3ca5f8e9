// A board of invitations that a peer overwrites: what its owner asks of it ends and stays within
// the board, and what a peer takes is something that it said it would.
#include <cstring>
#include <memory>

#include "base/check.h"
#include "net/invitation_board.h"

namespace {

using sterna::check;
using sterna::net::Invitation;
using sterna::net::InvitationBoard;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  // The board between two words that nobody may touch.
  struct Fenced {
    std::uint64_t before = 42;
    InvitationBoard board{};
    std::uint64_t behind = 42;
  };
  const auto fenced = std::make_unique<Fenced>();
  InvitationBoard& board = fenced->board;
  std::uint32_t opened = 0;  // By slot, as the owner knows it.
  bool is_spoilt = false;    // Since the owner opened the last one.
  Invitation last{};
  std::size_t at = 0;
  const auto next = [&] { return at < bytes ? data[at++] : std::uint8_t{0}; };
  while (at < bytes) {
    const std::uint8_t what = next();
    const std::uint32_t slot = next() % InvitationBoard::kSlots;
    switch (what % 4) {
      case 0:
        if ((opened >> slot & 1) == 0) {
          last = {.receiver = 1, .sender = what, .tag = 7, .sequence = slot, .receive_id = at};
          board.open(slot, last);
          opened |= 1U << slot;
          is_spoilt = false;
        }
        break;
      case 1:
        if ((opened >> slot & 1) != 0) {
          (void)board.close(slot);
          opened &= ~(1U << slot);
        }
        break;
      case 2: {
        std::uint32_t looks = 0;
        Invitation taken{};
        const bool is_taken = board.take(
            [&](const Invitation& it) {
              ++looks;
              return it.sender == what && it.receive_id == last.receive_id;
            },
            taken);
        check(looks <= 32, "a look at a board ends");
        check(!is_taken || (taken.sender == what && taken.receive_id == last.receive_id),
              "what is taken is what fitted");
        check(is_spoilt || !is_taken || taken.sequence == last.sequence,
              "what nobody has overwritten is what its owner wrote");
        break;
      }
      default: {
        std::uint64_t garbage = 0;
        for (int i = 0; i < 8; ++i) {
          garbage = garbage << 8 | next();
        }
        const std::size_t place =
            (std::size_t{next()} << 8 | next()) * 8 % (sizeof(InvitationBoard) - 7);
        std::memcpy(reinterpret_cast<std::byte*>(&board) + place / 8 * 8, &garbage, sizeof garbage);
        is_spoilt = true;
      }
    }
  }
  check(fenced->before == 42 && fenced->behind == 42, "nothing is written outside of the board");
  return 0;
}
