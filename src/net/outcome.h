// What a frame or a call makes necessary, gathered under the lock of a rank and done after it.
#pragma once

#include <array>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "net/message.h"
#include "net/packets/packet.h"

namespace sterna::net {

/// Answers to be sent, and a transfer to be started, once the lock of the rank is free.
struct Outcome {
  struct Answer {
    FrameHeader header;
    std::array<std::byte, sizeof(ClearPayload) + kClearExtentsMax * sizeof(RemotePiece)> payload;
  };
  Outcome() noexcept {}

  union {  // Begin with add(): most frames need none, and are many.
    std::array<Answer, 4> answers;
  };
  std::uint32_t answer_count = 0;
  SendRequest* cleared = nullptr;  // This send of the rank may start; the rank is pinned for it.
  std::uint32_t cleared_by = 0;    // The receiver.
  bool is_invited = false;         // It does not look.
  bool is_away = false;            // It says that it will not.
  ClearPayload clear;
  RemoteExtents extents;
  struct {
    RecvRequest* request = nullptr;  // This receive matched a message that can be read; the rank is
    std::uint64_t address = 0;       // pinned for it.
    std::uint64_t send_id = 0;
    bool is_for_wait = false;  // Not at once: who has posted it is about to start something else.
  } read;
  enum class Lost : std::uint8_t { nothing, no_memory, too_many_early };
  Lost lost = Lost::nothing;  // A frame, by the rank: see report_lost().
  bool is_note = false;       // A note for the rank, which is pinned for it.
  bool has_kept = false;      // There is something to ask or to announce: advance_kept().
  bool has_early = false;     // The next frame of the same peer is there already.

  Answer& add() noexcept {
    check(answer_count < answers.size(), "a frame causes no more than four answers");
    return *::new (&answers[answer_count++]) Answer;
  }
};

}  // namespace sterna::net
