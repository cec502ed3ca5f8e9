// Messages at their receiver: matched with receives, stored, acknowledged.
#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/matching/posted.h"
#include "net/matching/receiving.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// Stores the part of a message that starts at received_bytes, as far as there is room.
void store(RecvRequest& request, std::span<const std::byte> part) noexcept {
  const std::uint64_t room = request.envelope.bytes;
  if (request.received_bytes < room) {
    copy_in(request.data, request.received_bytes, part.data(),
            std::min<std::uint64_t>(part.size(), room - request.received_bytes));
  }
  request.received_bytes += part.size();
}

/// A whole message that came before its receive. Now and then what that takes is measured, for the
/// way to where its sender is now.
void store_early(RecvRequest& request, const Message& message, RankTable& ranks, Gate* gates,
                 Clock& clock) noexcept {
  const std::span<const std::byte> all{message.payload, message.envelope.bytes};
  std::uint32_t route = RankEntry::kNoRoute;
  if (all.size() >= kMeasuredPacketBytes) {
    route = ranks[message.envelope.source].route.load(std::memory_order_relaxed);  // Any will do.
  }
  if (route == RankEntry::kNoRoute || !gates[route].is_copy_to_be_measured()) [[likely]] {
    store(request, all);
    return;
  }
  const std::uint64_t start_ns = clock.now_ns();
  store(request, all);
  gates[route].measured_copy(std::min<std::uint64_t>(all.size(), request.envelope.bytes),
                             clock.now_ns() - start_ns);
}

/// How many carry the message of which this is the first.
std::uint32_t frames_of(const FrameHeader& header) noexcept {
  if ((header.flags & kFrameSynchronous) == 0 && header.cookie != 0) {
    return static_cast<std::uint32_t>(header.cookie);
  }
  const std::uint64_t each = std::max<std::uint32_t>(header.payload_bytes, 1);
  const std::uint64_t count = (header.total_bytes + each - 1) / each;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(count, 1));
}

void prepare(RecvRequest& request, const Buffer& data) noexcept {
  check(request.state == RecvRequest::State::idle, "a receive request is used once at a time");
  request.done.reset();
  request.fault = Fault::none;
  request.data = data;
  request.id = kNoId;
}

/// False: no memory.
bool post(Endpoint& at, RecvRequest& request, const Pattern& pattern) noexcept {
  return post_receive(at, request, pattern);
}
bool post(Endpoint& at, RecvRequest& request, const MaskedPattern& pattern) noexcept {
  post_masked(at, request, pattern);
  return true;
}

/// What a probe has seen of those that fit. Null: nothing, or no memory.
Message* claim_sighted(Endpoint& at, const MaskedPattern& wanted, FrameHeader& claim) noexcept {
  Hold* const hold = find_sighted(at, wanted);
  return hold != nullptr ? claim_seen(at, *hold, claim) : nullptr;
}

}  // namespace

/// The receive takes a message that waits; if there is none, it is posted.
template <typename Wanted>
void TransportCore::match_or_post(Endpoint& at, RecvRequest& request,
                                  const Wanted& wanted) noexcept {
  RankEntry& entry = ranks_[at.rank];
  Outcome outcome;
  {
    const threads::OwnedGuard guard{entry.lock};
    Message* message = take_message(at, wanted);
    if (message == nullptr && at.holder_count != 0) {
      FrameHeader claim;
      message = claim_sighted(at, masked(wanted), claim);
      if (message != nullptr) {
        outcome.add().header = claim;
        outcome.has_kept = has_kept_frames(at);
      }
    }
    if (message != nullptr) {
      match(entry, at, request, *message, outcome);
    } else if (!post(at, request, wanted)) {
      request.fault = Fault::no_memory;
      complete(request);
    } else {
      if (at.holder_count != 0) {
        seek(at, request, plain(wanted).source);
        outcome.has_kept = has_kept_frames(at);
      }
      if (request.may_be_written && may_be_invited(at, request)) {
        invitations_.invite(at, request);
      }
    }
  }
  act(at.rank, outcome);
}

template <typename Wanted>
void TransportCore::receive(Endpoint& at, RecvRequest& request, const Wanted& wanted,
                            const Buffer& data) noexcept {
  prepare(request, data);
  RankEntry& entry = ranks_[at.rank];
  bool is_posted = false;
  {
    const threads::OwnedGuard guard{entry.lock};
    is_posted = !has_waiting(at) && post(at, request, wanted);
    if (is_posted && request.may_be_written && may_be_invited(at, request)) {
      invitations_.invite(at, request);
    }
  }
  if (!is_posted) {
    match_or_post(at, request, wanted);
  }
  // After posting: lose_node() either saw the receive, or has set the flag before we look.
  if (is_any_lost_.load(std::memory_order_seq_cst)) [[unlikely]] {
    end_if_lost(at, request, plain(wanted));
  }
}

void TransportCore::end_if_lost(Endpoint& at, RecvRequest& request,
                                const Pattern& pattern) noexcept {
  if (pattern.source == kAnySource || !gates_[ranks_.node_of(pattern.source)].is_lost()) {
    return;
  }
  const threads::OwnedGuard guard{ranks_[at.rank].lock};
  if (request.state == RecvRequest::State::posted) {
    unpost_receive(at, request);
    invitations_.drop(at, request);
    request.fault = Fault::peer_lost;
    complete(request);
  }
}

template void TransportCore::receive(Endpoint&, RecvRequest&, const Pattern&,
                                     const Buffer&) noexcept;
template void TransportCore::receive(Endpoint&, RecvRequest&, const MaskedPattern&,
                                     const Buffer&) noexcept;

void TransportCore::receive_matched(Endpoint& at, RecvRequest& request, Message& message,
                                    const Buffer& data) noexcept {
  prepare(request, data);
  RankEntry& entry = ranks_[at.rank];
  Outcome outcome;
  {
    const threads::OwnedGuard guard{entry.lock};
    match(entry, at, request, message, outcome);
  }
  act(at.rank, outcome);
}

/// The message is in no list; it is freed, or filled up first when parts are still to come.
void TransportCore::match(RankEntry& entry, Endpoint& at, RecvRequest& request, Message& message,
                          Outcome& outcome) noexcept {
  start_receive(at, request, message.envelope);
  if (message.is_rendezvous) {
    release(at, message, outcome);
    start_rendezvous(entry, at, request, message, false, outcome);
    free_message(at, &message);
    return;
  }
  if (message.is_synchronous) {
    answer_matched(at, message.envelope.source, message.send_id, outcome);
  }
  if (message.fault != Fault::none) [[unlikely]] {
    fail_matched(at, request, message, outcome);
    return;
  }
  if (message.arrived_bytes < message.envelope.bytes) {
    message.receiver = &request;
    return;
  }
  store_early(request, message, ranks_, gates_.get(), clock_);
  release(at, message, outcome);
  free_message(at, &message);
  complete(request);
}

/// What the message has taken of a window is free again.
void TransportCore::release(Endpoint& at, const Message& message, Outcome& outcome) noexcept {
  const std::uint64_t bytes = message.is_rendezvous ? message.head_bytes : message.envelope.bytes;
  if (message.is_local) {
    at.local_bytes -= credit_of(bytes);
  } else if (!message.is_claimed) {
    Peer* peer = find_peer(at, message.envelope.source);
    check(peer != nullptr, "a message over the network comes from a peer");
    consume(at, *peer, bytes, outcome);
  }
}

/// What is left of the message is its envelope.
void TransportCore::fail_matched(Endpoint& at, RecvRequest& request, Message& found,
                                 Outcome& outcome) noexcept {
  request.fault = found.fault;
  request.envelope.bytes = 0;
  if (Peer* peer = find_peer(at, found.envelope.source); peer != nullptr) {
    consume(at, *peer, found.envelope.bytes, outcome);
  }
  free_message(at, &found);
  complete(request);
}

void TransportCore::accept_eager(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                                 Outcome& outcome) noexcept {
  const FrameHeader& header = frame.header;
  const Envelope envelope{header.source, header.context, header.tag, header.total_bytes};
  if (peer.partial_left != 0) {
    refuse(header, "the message before it has not come whole");
    return;
  }
  peer.eager_received += credit_of(header.total_bytes);
  if (header.total_bytes > options_.eager_window_bytes ||
      peer.eager_received - peer.consumed > options_.eager_window_bytes) {
    refuse(header, "it goes beyond the credit of its sender");
    peer.eager_received -= credit_of(header.total_bytes);
    return;
  }
  const bool is_synchronous = (header.flags & kFrameSynchronous) != 0;
  peer.partial_left = header.total_bytes - header.payload_bytes;
  at.partial_count += peer.partial_left != 0 ? 1 : 0;
  peer.partial_message = nullptr;
  peer.partial_receive = take_posted(entry, at, {header.source, header.context, header.tag},
                                     header.sequence + frames_of(header));
  if (RecvRequest* request = peer.partial_receive; request != nullptr) {
    start_receive(at, *request, envelope);
    store(*request, frame.payload);
    if (is_synchronous) {
      answer_matched(at, header.source, header.cookie, outcome);
    }
    if (peer.partial_left == 0) {
      consume(at, peer, header.total_bytes, outcome);
      request->state = RecvRequest::State::idle;
      peer.partial_receive = nullptr;
      is_serial_ ? request->done.complete_alone() : request->done.complete();
    }
    return;
  }
  Message* message = create_message(at, header.total_bytes);
  const bool has_room = message != nullptr;
  if (!has_room) {
    // The sender is done with it, and counts on us: its receive shall know that the bytes are lost.
    message = create_message(at, 0);
    if (message == nullptr) {
      outcome.lost = Outcome::Lost::no_memory;
      return;
    }
    message->fault = Fault::no_memory;
  }
  message->envelope = envelope;
  message->is_synchronous = is_synchronous;
  message->send_id = header.cookie;
  message->arrived_bytes = header.payload_bytes;
  if (header.payload_bytes != 0 && has_room) {
    copy_long(message->payload, frame.payload.data(), header.payload_bytes);
  }
  if (!add_message(at, *message)) {
    free_message(at, message);
    outcome.lost = Outcome::Lost::no_memory;
    return;
  }
  if (peer.partial_left != 0 && has_room) {
    peer.partial_message = message;
  }
}

/// A frame without payload: its bytes were placed.
void TransportCore::accept_more(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                                Outcome& outcome) noexcept {
  const std::uint32_t bytes = frame.header.payload_bytes;
  if (bytes == 0 || bytes > peer.partial_left) {
    refuse(frame.header, "its message is complete");
    return;
  }
  entry.pins -= peer.is_partial_placed ? 1 : 0;
  peer.is_partial_placed = false;
  peer.partial_left -= bytes;
  at.partial_count -= peer.partial_left == 0 ? 1 : 0;
  RecvRequest* request = peer.partial_receive;
  if (Message* message = peer.partial_message; message != nullptr) {
    if (!frame.payload.empty()) {
      copy_long(message->payload + message->arrived_bytes, frame.payload.data(), bytes);
    }
    message->arrived_bytes += bytes;
    if (peer.partial_left != 0) {
      return;
    }
    peer.partial_message = nullptr;
    request = message->receiver;
    if (request == nullptr) {
      return;  // It waits, whole, as any other.
    }
    store_early(*request, *message, ranks_, gates_.get(), clock_);
    free_message(at, message);
  } else if (request != nullptr && !frame.payload.empty()) {
    store(*request, frame.payload);
  } else if (request != nullptr) {
    request->received_bytes += bytes;
  }
  if (peer.partial_left == 0 && request != nullptr) {
    consume(at, peer, request->message_bytes, outcome);
    complete(*request);
    peer.partial_receive = nullptr;
  }
}

/// What came over the network has left our memory: once half of the window has, say so.
void TransportCore::consume(Endpoint& at, Peer& peer, std::uint64_t bytes,
                            Outcome& outcome) noexcept {
  peer.consumed += credit_of(bytes);
  if (peer.hold != nullptr) [[unlikely]] {
    note_room(at, peer, options_.eager_window_bytes);
    outcome.has_kept = outcome.has_kept || has_kept_frames(at);
  }
  if (peer.consumed - peer.consumed_told >= options_.eager_window_bytes / 2) {
    Outcome::Answer& answer = outcome.add();
    answer.header.kind = FrameKind::credit;
    answer.header.source = at.rank;
    answer.header.destination = peer.rank;
    tell_credit(peer, answer.header);
  }
}

void TransportCore::answer_matched(Endpoint& at, std::uint32_t source, std::uint64_t send_id,
                                   Outcome& outcome, std::uint64_t read_ns) noexcept {
  Outcome::Answer& answer = outcome.add();
  answer.header.kind = FrameKind::matched;
  answer.header.total_bytes = read_ns;
  const std::uint32_t route = ranks_[source].route.load(std::memory_order_relaxed);
  if (read_ns != 0 && route != RankEntry::kNoRoute) {
    answer.header.context = static_cast<std::uint32_t>(gates_[route].own_reading_ps());
  }
  answer.header.source = at.rank;
  answer.header.destination = source;
  answer.header.cookie = send_id;
  if (Peer* peer = find_peer(at, source); peer != nullptr) {
    tell_credit(*peer, answer.header);
  }
}

}  // namespace sterna::net
