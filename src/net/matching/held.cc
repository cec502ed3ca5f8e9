// The lists of messages that their sender keeps, and of receives that ask for them.
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

std::uint32_t source_of(const RecvRequest& posted) noexcept {
  return posted.lane != nullptr ? posted.lane->key.source : posted.envelope.source;
}

bool fits(const RecvRequest& posted, const Peer& peer) noexcept {
  const std::uint32_t source = source_of(posted);
  return source == kAnySource || source == peer.rank;
}

// The list of seekers lies in fields that say nothing while a receive is posted: a request is as
// large as programs have been told.
RecvRequest* after(const RecvRequest& seeker) noexcept {
  return reinterpret_cast<RecvRequest*>(static_cast<std::uintptr_t>(seeker.received_bytes));
}
RecvRequest* before(const RecvRequest& seeker) noexcept {
  return reinterpret_cast<RecvRequest*>(static_cast<std::uintptr_t>(seeker.envelope.bytes));
}
void set_after(RecvRequest& seeker, RecvRequest* other) noexcept {
  seeker.received_bytes = reinterpret_cast<std::uintptr_t>(other);
}
void set_before(RecvRequest& seeker, RecvRequest* other) noexcept {
  seeker.envelope.bytes = reinterpret_cast<std::uintptr_t>(other);
}

/// From this one on the first that fits the peer.
RecvRequest* next_that_fits(RecvRequest* request, const Peer& peer) noexcept {
  while (request != nullptr && !fits(*request, peer)) {
    request = after(*request);
  }
  return request;
}

bool has_to_ask(const Hold& hold) noexcept {
  return hold.is_holder && hold.asked == Hold::Asked::nothing &&
         (hold.next_asker != nullptr || hold.sight == Hold::Sight::wanted);
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

/// From now on the question is under way.
void ask(Peer& peer, FrameHeader& header) noexcept {
  Hold& hold = *peer.hold;
  Pattern pattern = hold.sought;
  std::uint32_t mask = hold.sought_mask;
  hold.is_void = false;
  if (RecvRequest* const asker = hold.next_asker; asker != nullptr) {
    hold.asked = Hold::Asked::by_receive;
    hold.asker = asker;
    hold.next_asker = next_that_fits(after(*asker), peer);
    mask = asker->lane != nullptr ? kWholeTag : static_cast<std::uint32_t>(asker->message_bytes);
    pattern = asker->lane != nullptr ? asker->lane->key
                                     : Pattern{0, asker->envelope.context, asker->envelope.tag};
  } else {
    hold.asked = Hold::Asked::by_probe;
    hold.sight = Hold::Sight::asked;
  }
  header.kind = FrameKind::seek;
  header.context = pattern.context;
  header.tag = pattern.tag;
  header.total_bytes = mask;
}

/// The next peer that is asked; null: none.
Peer* next_asked(Endpoint& at, FrameHeader& header) noexcept {
  while (at.to_ask_first != nullptr) {
    Peer& peer = *at.to_ask_first;
    at.to_ask_first = peer.hold->next_to_ask;
    at.to_ask_last = at.to_ask_first != nullptr ? at.to_ask_last : nullptr;
    peer.hold->is_to_ask = false;
    if (has_to_ask(*peer.hold)) {
      ask(peer, header);
      return &peer;
    }
  }
  return nullptr;
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

void become_holder(Endpoint& at, Peer& peer) noexcept {
  Hold& hold = *peer.hold;
  if (!hold.is_holder) {
    hold.is_holder = true;
    hold.next_holder = at.holders;
    at.holders = &peer;
    ++at.holder_count;
    tell_watches(at, nullptr);
  }
}

void end_holder(Endpoint& at, Peer& peer) noexcept {
  Hold& hold = *peer.hold;
  if (!hold.is_holder) {
    return;
  }
  Peer** place = &at.holders;
  while (*place != &peer) {
    place = &(*place)->hold->next_holder;
  }
  *place = hold.next_holder;
  hold.is_holder = false;
  hold.asked = Hold::Asked::nothing;
  hold.asker = hold.next_asker = nullptr;
  hold.sight = Hold::Sight::nothing;
  if (--at.holder_count == 0) {
    while (at.seekers_first != nullptr) {
      end_seeking(at, *at.seekers_first);
    }
  }
}

void seek(Endpoint& at, RecvRequest& request, std::uint32_t source) noexcept {
  bool is_any = false;
  const auto ask = [&](Peer& peer) {
    Hold& hold = *peer.hold;
    hold.next_asker = hold.next_asker != nullptr ? hold.next_asker : &request;
    want_to_ask(at, peer);
    is_any = true;
  };
  if (source != kAnySource) {
    Peer* const peer = find_peer(at, source);
    if (peer != nullptr && peer->hold != nullptr && peer->hold->is_holder) {
      ask(*peer);
    }
  } else {
    for (Peer* peer = at.holders; peer != nullptr; peer = peer->hold->next_holder) {
      ask(*peer);
    }
  }
  if (!is_any) {
    return;
  }
  request.is_seeking = true;
  set_after(request, nullptr);
  set_before(request, at.seekers_last);
  if (at.seekers_last != nullptr) {
    set_after(*at.seekers_last, &request);
  } else {
    at.seekers_first = &request;
  }
  at.seekers_last = &request;
  ++at.seeker_count;
}

void end_seeking(Endpoint& at, RecvRequest& request) noexcept {
  RecvRequest* const next = after(request);
  RecvRequest* const previous = before(request);
  for (Peer* peer = at.holders; peer != nullptr; peer = peer->hold->next_holder) {
    Hold& hold = *peer->hold;
    hold.asker = hold.asker == &request ? nullptr : hold.asker;
    if (hold.next_asker == &request) {
      hold.next_asker = next_that_fits(next, *peer);
    }
  }
  if (previous != nullptr) {
    set_after(*previous, next);
  } else {
    at.seekers_first = next;
  }
  if (next != nullptr) {
    set_before(*next, previous);
  } else {
    at.seekers_last = previous;
  }
  set_after(request, nullptr);
  set_before(request, nullptr);
  request.is_seeking = false;
  --at.seeker_count;
}

RecvRequest* take_clear(Endpoint& at, const Hold& hold, const Pattern& exact) noexcept {
  const RecvRequest* const first = hold.asker != nullptr ? hold.asker : hold.next_asker;
  return take_receive_before(at, exact, first != nullptr ? first->order : ~std::uint64_t{0});
}

void want_to_ask(Endpoint& at, Peer& peer) noexcept {
  Hold& hold = *peer.hold;
  if (!has_to_ask(hold) || hold.is_to_ask) {
    return;
  }
  hold.is_to_ask = true;
  hold.next_to_ask = nullptr;
  (at.to_ask_last != nullptr ? at.to_ask_last->hold->next_to_ask : at.to_ask_first) = &peer;
  at.to_ask_last = &peer;
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
