// Messages that their sender keeps: those for which its receiver's window has no room, neither for
// their bytes nor for what describes them. So what a receiver must keep is bounded, whatever is
// sent to it; what is kept lies where its program asked to send it.
//
// Once a sender keeps a message for a peer it keeps all later ones for that peer too, so they are
// in order. It announces each (kFrameHeld), a few at a time, and the receiver forgets at once what
// no receive fits. So an announcement costs no memory there, and says two things: whoever waits for
// this message may have it, and whoever comes later must ask (`seek`). The sender answers with the
// first message it keeps that fits, or with `nothing`; it keeps no account of who asked, and the
// message stays where it is until a receive has it (`claim`). Why that is right:
//
// - A receive that is posted while the peer keeps messages asks it, all of them one after the
//   other, in the order of posting. Until its answer has come it is not given what is announced,
//   because an earlier one may fit. A receive that was answered `nothing`, or was posted before the
//   first message was kept, is `clear` of that peer: no message fits it of which it will not be
//   told. Receives before the first that is not clear are clear.
// - An announced message goes to the oldest receive that fits, if that is clear. If it is not,
//   no clear one fits, and the answer to its question, which was asked later than the message was
//   kept, has regard to it.
// - Only messages that were announced are offered as answers: so no clear receive wants them. The
//   question waits at the sender until those before have been announced.
// - `claim` and `seek` are taken in order: what was claimed before the question is not offered.
// What
//   was claimed while a question was under way (by a clear receive) might be offered: then the
//   question is asked again. Each repetition follows a message that was received: there are
//   finitely many.
// - Frames that are not kept come in order with all these: they were sent before anything was kept,
//   or after all that was kept has been claimed, so any receive may have them.
// - A withdrawal leaves a message that was announced to the receiver: after it nobody is offered
// the
//   message, and the receiver says when it has read so. What is not claimed by then never will be.
//
// Probes that wait are told of the answer, and of each announcement that fits: after the answer
// `nothing` there is nothing to ask for before one comes. What a probe has sighted a receive claims
// at once.
//
// Once half of the window is free its receiver says so (kFrameRoom), and the sender sends from the
// front of what it keeps, in order, as if it were sent now, until the window is full (released.cc).
// That is asked like a question, when no other is under way, and answered with `nothing`. Why that
// is right:
//
// - What is released is earlier than all that is kept: any receive may have it, as of frames that
//   are not kept.
// - Claims that were sent before are taken before. Until the answer has come nothing is claimed,
//   since it may be on its way. Where a receive would have had what was announced meanwhile, the
//   sender is told of room once more, and announces all that it keeps again behind its answer.
//
// A probe asks once all receives that fit the peer are clear, and what it has sighted is true until
// a message of the peer is claimed or withdrawn, and while all receives are clear.
//
// All of it under the lock of the rank's RankEntry, but TransportCore's part (kept.cc, seek.cc).
#pragma once

#include "net/endpoint.h"
#include "net/matching/matching.h"
#include "net/peer.h"

namespace sterna::net {

inline constexpr std::uint32_t kWholeTag = 0xffff'ffff;  // The mask of who has none.
inline constexpr std::uint32_t kBar = 0x8000'0000;       // More than any window.
// Announcements of kept messages that a peer has not been heard to have taken.
inline constexpr std::uint32_t kToldMax = 64;
inline constexpr std::uint32_t kToldAnswer = 16;  // It says so each time it has taken so many.

/// A message at its sender; as the source of its envelope the receiver, so that the matching of
/// Endpoint::kept finds the first of one peer that fits.
struct HeldSend : Message {
  SendRequest* request = nullptr;
  HeldSend* next = nullptr;  // For the same peer.
  HeldSend* previous = nullptr;
  bool is_told = false;  // It was announced.
};

struct Hold {
  // At the sender.
  HeldSend* first;
  HeldSend* last;
  HeldSend* to_tell;  // The first that was not announced; null: none.
  std::uint32_t count;
  std::uint32_t told;   // Announcements, mod 2^32.
  std::uint32_t taken;  // Of them, by the peer.
  bool is_to_tell;      // Among Endpoint::to_tell_first ...
  bool has_question;    // Of the peer; it has not been answered.
  bool has_grant;       // The same: it has room.
  Pattern question;
  std::uint32_t question_mask;
  Peer* next_to_tell;
  // At the receiver.
  bool is_holder;
  bool is_to_ask;  // Among Endpoint::to_ask_first ...
  bool is_void;    // Something was claimed while the question was under way.
  enum class Asked : std::uint8_t { nothing, by_receive, by_probe, for_room } asked;
  bool has_room;    // Half of the window is free: the peer is to be told.
  bool has_missed;  // While it was, something was announced that a receive may have wanted.
  bool is_again;    // It announces everything once more when it has answered.
  std::uint32_t received;       // Announcements, mod 2^32.
  std::uint32_t received_told;  // Of them, said so.
  RecvRequest* asker;           // Null too: it has a message, or was taken back.
  RecvRequest* next_asker;      // Of the seekers that fit the peer; those before it have asked.
  Peer* next_holder;
  Peer* next_to_ask;
  enum class Sight : std::uint8_t { nothing, wanted, asked, seen } sight;
  std::uint8_t times_passed;  // By probes for something else.
  Pattern sought;
  std::uint32_t sought_mask;
  Envelope seen;
  std::uint64_t seen_id;
  std::uint32_t seen_sequence;
};

/// Null: no memory.
[[nodiscard]] Hold* make_hold(Endpoint& endpoint, Peer& peer) noexcept;
[[nodiscard]] inline bool keeps(const Peer& peer) noexcept {
  return peer.bar != 0;
}

// --- At the sender ---------------------------------------------------------------------------
/// The request is pending; its message waits here. False: no memory, nothing happened.
[[nodiscard]] bool keep(Endpoint& from, Peer& peer, SendRequest& request) noexcept;
/// The request has ended, or was claimed, or is taken back: its message is kept no longer.
void let_go(Endpoint& from, SendRequest& request) noexcept;
/// Everything that is kept for the peer will be announced once more.
void tell_again(Hold& hold) noexcept;
/// There may be something to announce to the peer, or to answer.
void want_to_tell(Endpoint& from, Peer& peer) noexcept;
/// The peer has taken so many announcements, ever. Old news and nonsense change nothing, and say
/// false.
bool take_told(Endpoint& from, Peer& peer, std::uint32_t taken) noexcept;

// --- At the receiver -------------------------------------------------------------------------
void become_holder(Endpoint& at, Peer& peer) noexcept;
/// Something of it was consumed, or claimed: whether it is told that its window has room.
void note_room(Endpoint& at, Peer& peer, std::uint32_t window) noexcept;
/// It keeps nothing more.
void end_holder(Endpoint& at, Peer& peer) noexcept;
/// The receive was posted: it asks those peers that keep something and fit.
void seek(Endpoint& at, RecvRequest& request, std::uint32_t source) noexcept;
/// It is posted no longer.
void end_seeking(Endpoint& at, RecvRequest& request) noexcept;
/// The oldest receive that fits, in no list any more, if it is clear of the peer; else null.
[[nodiscard]] RecvRequest* take_clear(Endpoint& at, const Hold& hold,
                                      const Pattern& exact) noexcept;
/// Something of the peer has been claimed.
inline void note_claim(Hold& hold) noexcept {
  hold.is_void = hold.asked != Hold::Asked::nothing;
  hold.sight = hold.sight == Hold::Sight::seen ? Hold::Sight::nothing : hold.sight;
}
/// The peer has something to be asked, if nothing is under way.
void want_to_ask(Endpoint& at, Peer& peer) noexcept;
/// What a probe for this finds at a peer; null: nothing yet. It is asked for then.
[[nodiscard]] Hold* sight(Endpoint& at, const MaskedPattern& wanted) noexcept;
/// What a probe has found there already, and is the first that fits this.
[[nodiscard]] Hold* find_sighted(Endpoint& at, const MaskedPattern& wanted) noexcept;
/// A matched probe, or a receive, takes what was sighted. Null: no memory.
[[nodiscard]] Message* claim_seen(Endpoint& at, Hold& hold, FrameHeader& claim) noexcept;
/// Whether a probe for this, which found nothing yet, hears of an answer from each peer that may
/// have something: of others that is known which another probe has asked for.
[[nodiscard]] bool are_all_asked(const Endpoint& at, const MaskedPattern& wanted) noexcept;

// --- At both ---------------------------------------------------------------------------------
/// Whether next_kept_frame() might find something.
[[nodiscard]] inline bool has_kept_frames(const Endpoint& at) noexcept {
  return at.to_ask_first != nullptr || at.to_tell_first != nullptr;
}
/// The next peer that is asked; null: none.
[[nodiscard]] Peer* next_asked(Endpoint& at, FrameHeader& header) noexcept;
/// The next question, announcement or answer, which counts as sent; false: none.
[[nodiscard]] bool next_kept_frame(Endpoint& at, FrameHeader& header) noexcept;

}  // namespace sterna::net
