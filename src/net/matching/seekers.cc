// Receives that ask for messages which their senders keep: held.h says what it means.
#include <utility>

#include "net/matching/held.h"

namespace sterna::net {
namespace {

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
         (hold.has_room || hold.next_asker != nullptr || hold.sight == Hold::Sight::wanted);
}

/// From now on the question is under way.
void ask(Peer& peer, FrameHeader& header) noexcept {
  Hold& hold = *peer.hold;
  if (hold.has_room) {
    hold.has_room = false;
    hold.asked = Hold::Asked::for_room;
    hold.asker = nullptr;
    // It may be sent by then.
    hold.sight = hold.sight == Hold::Sight::seen ? Hold::Sight::nothing : hold.sight;
    hold.is_again = std::exchange(hold.has_missed, false);
    header.kind = FrameKind::seek;
    header.flags |= kFrameRoom;
    header.total_bytes = hold.is_again ? 1 : 0;
    return;
  }
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

}  // namespace

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
  hold.is_holder = hold.has_room = hold.has_missed = hold.is_again = false;
  hold.asked = Hold::Asked::nothing;
  hold.asker = hold.next_asker = nullptr;
  hold.sight = Hold::Sight::nothing;
  if (--at.holder_count == 0) {
    while (at.seekers_first != nullptr) {
      end_seeking(at, *at.seekers_first);
    }
  }
}

void note_room(Endpoint& at, Peer& peer, std::uint32_t window) noexcept {
  Hold& hold = *peer.hold;
  if (hold.is_holder && !hold.has_room && peer.eager_received - peer.consumed <= window / 2) {
    hold.has_room = true;
    want_to_ask(at, peer);
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

}  // namespace sterna::net
