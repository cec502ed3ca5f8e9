// The lists of messages that their sender keeps.
#include "net/matching/held.h"

#include <new>

#include "base/check.h"
#include "memory/heap.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kLanesKept = 256;  // Of Endpoint::kept, when it is empty.

/// The messages that an endpoint keeps, matched as those that wait at their receiver.
Endpoint* make_kept(Endpoint& from) noexcept {
  if (from.kept == nullptr) {
    from.kept = create_endpoint(*from.heap, from.rank);
  }
  return from.kept;
}

/// The next message to be announced, if one may be; it counts as announced. Null: none.
HeldSend* tell_next(Hold& hold) noexcept {
  HeldSend* const held = hold.to_tell;
  if (held == nullptr || hold.told - hold.taken >= kToldMax) {
    return nullptr;
  }
  hold.to_tell = held->next;
  held->is_told = true;
  ++hold.told;
  return held;
}

/// What to answer to the question of the peer, which is over unless `must_wait`; null: nothing.
HeldSend* answer_of(const Endpoint& from, Hold& hold, bool& must_wait) noexcept {
  Message* found = nullptr;
  if (hold.count != 0) {
    found = hold.question_mask == kWholeTag
                ? find_message(*from.kept, hold.question)
                : find_message(*from.kept, MaskedPattern{hold.question, hold.question_mask});
  }
  auto* const held = static_cast<HeldSend*>(found);
  must_wait = held != nullptr && !held->is_told;
  hold.has_question = must_wait;
  return must_wait ? nullptr : held;
}

void announce(FrameHeader& header, const HeldSend& held) noexcept {
  header.kind = FrameKind::rendezvous;
  header.flags |= kFrameHeld;
  header.context = held.envelope.context;
  header.tag = held.envelope.tag;
  header.total_bytes = held.envelope.bytes;
  header.cookie = held.send_id;
}

/// False: there is nothing to be said to the peer, now.
bool tell(const Endpoint& from, Hold& hold, FrameHeader& header) noexcept {
  if (hold.has_grant) {
    hold.has_grant = false;
    header.kind = FrameKind::nothing;
    header.cookie = hold.count == 0 ? 1 : 0;
    return true;
  }
  bool must_wait = !hold.has_question;
  HeldSend* const answer = must_wait ? nullptr : answer_of(from, hold, must_wait);
  if (!must_wait) {
    header.kind = FrameKind::nothing;
    header.cookie = hold.count == 0 ? 1 : 0;
    if (answer != nullptr) {
      announce(header, *answer);
      header.flags |= kFrameSought;
    }
    return true;
  }
  const HeldSend* const next = tell_next(hold);
  if (next != nullptr) {
    announce(header, *next);
  }
  return next != nullptr;
}

/// The next peer that is told something; null: none.
Peer* next_told(Endpoint& from, FrameHeader& header) noexcept {
  while (from.to_tell_first != nullptr) {
    Peer& peer = *from.to_tell_first;
    if (tell(from, *peer.hold, header)) {
      return &peer;  // Perhaps there is more: it stays.
    }
    from.to_tell_first = peer.hold->next_to_tell;
    peer.hold->is_to_tell = false;
  }
  return nullptr;
}

}  // namespace

Hold* make_hold(Endpoint& endpoint, Peer& peer) noexcept {
  if (peer.hold == nullptr) {
    peer.hold = static_cast<Hold*>(endpoint.heap->allocate_zeroed(sizeof(Hold)));
  }
  return peer.hold;
}

bool keep(Endpoint& from, Peer& peer, SendRequest& request) noexcept {
  Hold* const hold = make_hold(from, peer);
  Endpoint* const kept = make_kept(from);
  void* const memory =
      hold != nullptr && kept != nullptr ? from.heap->allocate(sizeof(HeldSend)) : nullptr;
  if (memory == nullptr) {
    return false;
  }
  auto* const held = ::new (memory) HeldSend;
  held->envelope = {peer.rank, request.target.context, request.target.tag, request.data.bytes};
  held->send_id = request.id;
  held->request = &request;
  if (!add_message(*kept, *held)) {
    from.heap->deallocate(held);
    return false;
  }
  held->previous = hold->last;
  (hold->last != nullptr ? hold->last->next : hold->first) = held;
  hold->last = held;
  hold->to_tell = hold->to_tell != nullptr ? hold->to_tell : held;
  ++hold->count;
  peer.bar = kBar;
  request.is_kept = true;
  request.held = held;
  return true;
}

void let_go(Endpoint& from, SendRequest& request) noexcept {
  if (!request.is_kept) {
    return;
  }
  HeldSend* const held = request.held;
  Peer* const peer = find_peer(from, held->envelope.source);
  check(peer != nullptr && peer->hold != nullptr, "a message is kept for a peer");
  Hold& hold = *peer->hold;
  remove_message(*from.kept, *held);
  (held->previous != nullptr ? held->previous->next : hold.first) = held->next;
  (held->next != nullptr ? held->next->previous : hold.last) = held->previous;
  hold.to_tell = hold.to_tell == held ? held->next : hold.to_tell;
  if (--hold.count == 0) {
    peer->bar = 0;
  }
  request.is_kept = false;
  request.head_bytes = 0;
  from.heap->deallocate(held);
  if (from.kept->message_count == 0 && from.kept->lane_count > kLanesKept) {
    destroy_endpoint(from.kept);
    from.kept = nullptr;
  }
}

void tell_again(Hold& hold) noexcept {
  hold.to_tell = hold.first;
  for (HeldSend* held = hold.first; held != nullptr; held = held->next) {
    held->is_told = false;
  }
}

void want_to_tell(Endpoint& from, Peer& peer) noexcept {
  Hold& hold = *peer.hold;
  if (!hold.is_to_tell) {
    hold.is_to_tell = true;
    hold.next_to_tell = from.to_tell_first;
    from.to_tell_first = &peer;
  }
}

bool take_told(Endpoint& from, Peer& peer, std::uint32_t taken) noexcept {
  Hold* const hold = peer.hold;
  if (hold == nullptr || taken - hold->taken > hold->told - hold->taken) {
    return false;
  }
  hold->taken = taken;
  want_to_tell(from, peer);
  return true;
}

bool next_kept_frame(Endpoint& at, FrameHeader& header) noexcept {
  Peer* peer = next_asked(at, header);
  peer = peer != nullptr ? peer : next_told(at, header);
  if (peer == nullptr) {
    return false;
  }
  header.source = at.rank;
  header.destination = peer->rank;
  header.sequence = peer->send_sequence++;
  tell_credit(*peer, header);
  return true;
}

}  // namespace sterna::net
