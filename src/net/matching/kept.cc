// Frames of messages that their sender keeps, at both ends: held.h says what they mean.
#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/matching/receiving.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

void begin(FrameHeader& header, FrameKind kind, const Endpoint& from, Peer& to) noexcept {
  header.kind = kind;
  header.source = from.rank;
  header.destination = to.rank;
  header.sequence = to.send_sequence++;
  tell_credit(to, header);
}

void begin_claim(FrameHeader& header, const Endpoint& at, Peer& of, std::uint64_t id) noexcept {
  begin(header, FrameKind::claim, at, of);
  header.cookie = id;
}

/// It has come to a receiver that looked for it; what a stranger answers may be anything.
bool fits_asker(const RecvRequest& asker, const FrameHeader& header) noexcept {
  const Pattern wanted = asker.lane != nullptr
                             ? asker.lane->key
                             : Pattern{0, asker.envelope.context, asker.envelope.tag};
  const auto mask =
      asker.lane != nullptr ? kWholeTag : static_cast<std::uint32_t>(asker.message_bytes);
  return wanted.context == header.context &&
         (wanted.tag == kAnyTag ||
          ((static_cast<std::uint32_t>(wanted.tag) ^ static_cast<std::uint32_t>(header.tag)) &
           mask) == 0);
}

/// A receive waits that such a message fits, or perhaps does.
bool may_be_wanted(Endpoint& at, const Pattern& exact) noexcept {
  return at.parked != nullptr || find_receive(at, exact) != nullptr;
}

/// The receive that has asked for this message; null: it was a probe, or the answer comes too late.
RecvRequest* take_answered(Endpoint& at, Peer& peer, const FrameHeader& header) noexcept {
  Hold& hold = *peer.hold;
  const Hold::Asked asked = hold.asked;
  RecvRequest* const asker = hold.asker;
  hold.asked = Hold::Asked::nothing;
  hold.asker = nullptr;
  bool is_taken = false;
  if (asked == Hold::Asked::by_probe) {
    const bool is_seen = !hold.is_void && header.context == hold.sought.context;
    hold.sight = is_seen ? Hold::Sight::seen : Hold::Sight::nothing;
    hold.times_passed = 0;
    hold.seen = {header.source, header.context, header.tag, header.total_bytes};
    hold.seen_id = header.cookie;
    hold.seen_sequence = header.sequence;
    tell_watches(at, nullptr);
  } else if (asker != nullptr && hold.is_void) {
    hold.next_asker = asker;
  } else if (asker != nullptr && fits_asker(*asker, header)) {
    unpost_receive(at, *asker);
    is_taken = true;
  }
  want_to_ask(at, peer);
  return is_taken ? asker : nullptr;
}

}  // namespace

// --- At the sender ---------------------------------------------------------------------------

/// The message has no room at its receiver, or others are kept already. False: no memory.
bool TransportCore::keep_back(Endpoint& from, Peer& peer, SendRequest& request) noexcept {
  if (!keep(from, peer, request)) {
    remove_pending(from, request.id);
    request.id = kNoId;
    return false;
  }
  want_to_tell(from, peer);
  return true;
}

/// The message waits here, unless it has ended already.
void TransportCore::announce_kept(Endpoint& from, std::uint64_t id,
                                  std::uint32_t to_rank) noexcept {
  counters_.rendezvous.add();
  advance_kept(from.rank);
  // After it was kept: lose_node() either saw it, or has marked the gate before we look.
  if (gates_[ranks_.node_of(to_rank)].is_lost()) [[unlikely]] {
    end_pending_send(from, id, to_rank, Fault::peer_lost);
  }
}

/// Sends what the rank has to announce, to answer and to ask. A rank that has left meanwhile goes
/// on where it is installed.
void TransportCore::advance_kept(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  for (;;) {
    FrameHeader header;
    while (release_next(rank)) {
    }
    {
      const threads::OwnedGuard guard{entry.lock};
      if (entry.state != RankState::here || !next_kept_frame(*entry.endpoint, header)) {
        return;
      }
    }
    transmit_later(header);
  }
}

/// As transmit(); but to ranks here from the next poll, since their answers cause the next frame.
void TransportCore::transmit_later(const FrameHeader& header) noexcept {
  const std::uint32_t route = ranks_[header.destination].route.load(std::memory_order_relaxed);
  if (route != RankEntry::kNoRoute && route != node_) {
    (void)transmit(header, Buffer{});
    return;
  }
  const Piece piece = std::as_bytes(std::span{&header, 1});
  on_stale(this, pool_.copy({&piece, 1}));
}

void TransportCore::accept_seek(Endpoint& at, Peer& peer, const FrameHeader& header,
                                Outcome& outcome) noexcept {
  if (Hold* const hold = peer.hold; hold != nullptr) {
    if ((header.flags & kFrameRoom) != 0) {
      hold->has_grant = true;
      if (header.total_bytes != 0) {
        tell_again(*hold);
      }
    } else {
      hold->has_question = true;
      hold->question = {peer.rank, header.context, header.tag};
      hold->question_mask = static_cast<std::uint32_t>(header.total_bytes);
    }
    want_to_tell(at, peer);
    outcome.has_kept = true;
    return;
  }
  Outcome::Answer& answer = outcome.add();
  begin(answer.header, FrameKind::nothing, at, peer);
  answer.header.cookie = 1;
}

void TransportCore::accept_claim(Endpoint& at, Peer& peer, const FrameHeader& header,
                                 Outcome& outcome) noexcept {
  auto* const send = static_cast<SendRequest*>(
      find_pending(at, header.cookie, PendingEntry::Kind::send, peer.rank));
  if (send == nullptr) {
    return;  // Its answer was faster.
  }
  if ((header.flags & kFrameWithdrawn) == 0) {
    let_go(at, *send);
    send->is_withdrawn = false;
  } else if (send->is_withdrawn) {
    send->is_withdrawn = false;
    remove_pending(at, header.cookie);
    send->fault = Fault::cancelled;
    send->done.complete();
  }
  outcome.has_kept = has_kept_frames(at);
}

/// A message that may be kept here is taken back. False: it is none of those.
bool TransportCore::withdraw_kept(Endpoint& from, SendRequest& request, std::uint64_t id,
                                  FrameHeader& header) noexcept {
  if (!request.is_kept) {
    return false;
  }
  Peer& peer = *find_peer(from, request.target.rank);
  const bool is_told = request.held->is_told;
  let_go(from, request);
  if (!is_told) {
    remove_pending(from, id);
    request.fault = Fault::cancelled;
    request.done.complete();
    if (peer.hold->has_question) {
      want_to_tell(from, peer);  // It waited for this message, perhaps.
    }
    return true;
  }
  request.is_withdrawn = true;
  begin(header, FrameKind::rendezvous, from, peer);
  header.flags |= kFrameHeld | kFrameWithdrawn;
  header.cookie = id;
  return true;
}

void TransportCore::accept_announced(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                                     Outcome& outcome) noexcept {
  const bool is_kept = (frame.header.flags & kFrameHeld) != 0;
  bool is_taken = true;
  if ((frame.header.flags & kFrameWithdrawn) != 0) [[unlikely]] {
    is_kept ? accept_kept_withdrawal(at, peer, frame.header, outcome)
            : withdraw(at, frame.header, outcome);
  } else if (is_kept) [[unlikely]] {
    is_taken = accept_kept(entry, at, peer, frame, outcome);
  } else {
    is_taken = accept_rendezvous(entry, at, &peer, frame, outcome) == Announced::taken;
  }
  if (!is_taken) {
    outcome.lost = Outcome::Lost::no_memory;
  }
}

// --- At the receiver -------------------------------------------------------------------------

/// False: no memory for what is known of the peer.
bool TransportCore::accept_kept(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                                Outcome& outcome) noexcept {
  const FrameHeader& header = frame.header;
  Hold* const hold = make_hold(at, peer);
  if (hold == nullptr) {
    return false;
  }
  if (!hold->is_holder) {
    become_holder(at, peer);
    note_room(at, peer, options_.eager_window_bytes);
  }
  const Pattern exact{header.source, header.context, header.tag};
  RecvRequest* request = nullptr;
  if ((header.flags & kFrameSought) != 0) {
    request = take_answered(at, peer, header);
  } else {
    if (hold->asked == Hold::Asked::for_room) {
      hold->has_missed = hold->has_missed || (!hold->is_again && may_be_wanted(at, exact));
    } else {
      request = take_clear(at, *hold, exact);
    }
    if (++hold->received - hold->received_told >= kToldAnswer) {
      hold->received_told = hold->received;
      Outcome::Answer& answer = outcome.add();
      answer.header.kind = FrameKind::credit;
      answer.header.source = at.rank;
      answer.header.destination = peer.rank;
      answer.header.cookie = hold->received;
      tell_credit(peer, answer.header);
      answer.header.flags |= kFrameHeld;
    }
  }
  if (request != nullptr && request->may_be_written &&
      !end_invitation(at, *request, exact, header.sequence + 1)) {
    leave_to_writer(entry, at, *request, exact);
    request = nullptr;
  }
  if (request == nullptr) {
    const Envelope known{header.source, header.context, header.tag, header.total_bytes};
    tell_watches(at, &known);
  } else {
    note_claim(*hold);
    begin_claim(outcome.add().header, at, peer, header.cookie);
    const Envelope envelope{header.source, header.context, header.tag, header.total_bytes};
    Message announced;
    announced.envelope = envelope;
    announced.send_id = header.cookie;
    announced.sequence = header.sequence;
    start_receive(at, *request, envelope);
    start_rendezvous(entry, at, *request, announced, is_waited_for(), outcome);
  }
  outcome.has_kept = has_kept_frames(at);
  return true;
}

void TransportCore::accept_nothing(Endpoint& at, Peer& peer, const FrameHeader& header,
                                   Outcome& outcome) noexcept {
  Hold* const hold = peer.hold;
  if (hold == nullptr || hold->asked == Hold::Asked::nothing) {
    refuse(header, "nothing was asked");
    return;
  }
  hold->sight = hold->asked == Hold::Asked::by_probe ? Hold::Sight::nothing : hold->sight;
  hold->has_room = hold->has_room || hold->has_missed;
  hold->is_again = false;
  hold->asked = Hold::Asked::nothing;
  hold->asker = nullptr;
  if (header.cookie != 0) {
    end_holder(at, peer);
  } else {
    want_to_ask(at, peer);
  }
  outcome.has_kept = has_kept_frames(at);
}

void TransportCore::accept_kept_withdrawal(Endpoint& at, Peer& peer, const FrameHeader& header,
                                           Outcome& outcome) noexcept {
  Hold* const hold = peer.hold;
  if (hold != nullptr && hold->sight == Hold::Sight::seen && hold->seen_id == header.cookie) {
    hold->sight = Hold::Sight::nothing;
  }
  FrameHeader& answer = outcome.add().header;
  begin_claim(answer, at, peer, header.cookie);
  answer.flags |= kFrameWithdrawn;
}

/// A probe that has found nothing here. Null: nothing is known to be elsewhere, so far.
template <typename Wanted>
Hold* TransportCore::look_elsewhere(Endpoint& at, const Wanted& wanted) noexcept {
  return sight(at, masked(wanted));
}
template Hold* TransportCore::look_elsewhere(Endpoint&, const Pattern&) noexcept;
template Hold* TransportCore::look_elsewhere(Endpoint&, const MaskedPattern&) noexcept;

Message* claim_seen(Endpoint& at, Hold& hold, FrameHeader& claim) noexcept {
  Message* const message = create_message(at, 0);
  if (message == nullptr) {
    return nullptr;
  }
  message->envelope = hold.seen;
  message->is_rendezvous = message->is_claimed = true;
  message->send_id = hold.seen_id;
  message->sequence = hold.seen_sequence;
  note_claim(hold);
  Peer& peer = *find_peer(at, hold.seen.source);
  begin_claim(claim, at, peer, hold.seen_id);
  // Who has probed for one will probe for the next: the answer may be here by then.
  hold.sight = Hold::Sight::wanted;
  want_to_ask(at, peer);
  return message;
}

}  // namespace sterna::net
