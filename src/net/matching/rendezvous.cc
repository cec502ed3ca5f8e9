// Announced messages at their receiver: read, or cleared to be sent, or written by their sender.
#include <algorithm>
#include <cstring>

#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/matching.h"
#include "net/matching/receiving.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// A receive has matched this message and is pending: the byte from which its sender shall go on
/// (transfer/head.cc).
std::uint64_t expect_head(Peer* peer, const RecvRequest& request,
                          const Message& announced) noexcept {
  const std::uint64_t begin = std::min(announced.head_bytes, request.envelope.bytes);
  if (begin == 0 || peer == nullptr || peer->receive_sequence != announced.head_sequence) {
    return 0;
  }
  peer->head_receive = request.id;
  return begin;
}

}  // namespace

/// Null: it comes from a rank of this node, and counts against the window of those. Of no_room and
/// no_memory nothing has happened.
TransportCore::Announced TransportCore::accept_rendezvous(RankEntry& entry, Endpoint& at,
                                                          Peer* peer, const Frame& frame,
                                                          Outcome& outcome) noexcept {
  const FrameHeader& header = frame.header;
  const Envelope envelope{header.source, header.context, header.tag, header.total_bytes};
  Message announced;
  announced.envelope = envelope;
  announced.send_id = header.cookie;
  announced.sequence = header.sequence;
  if ((header.flags & kFrameReadable) != 0) {
    std::memcpy(&announced.address, frame.payload.data(), sizeof announced.address);
  } else if ((header.flags & kFrameHeaded) != 0) {
    std::memcpy(&announced.head_bytes, frame.payload.data(), sizeof announced.head_bytes);
    announced.head_sequence = header.sequence + 1;
  }
  const std::uint32_t credit = credit_of(announced.head_bytes);
  if (peer != nullptr) {
    peer->eager_received += credit;
    if (announced.head_bytes > options_.eager_window_bytes ||
        peer->eager_received - peer->consumed > options_.eager_window_bytes) {
      refuse(header, "it goes beyond the credit of its sender");
      peer->eager_received -= credit;
      return Announced::taken;
    }
  }
  const Pattern exact{header.source, header.context, header.tag};
  RecvRequest* request = take_receive(at, exact);
  if (request != nullptr) {
    if (peer != nullptr) {
      consume(at, *peer, announced.head_bytes, outcome);
    }
    start_receive(at, *request, envelope);
    if (request->may_be_written && !end_invitation(at, *request, exact, header.sequence + 1)) {
      ++entry.pins;  // Until `finish`: its sender writes it.
      return Announced::taken;
    }
    const std::uint32_t before = outcome.answer_count;
    start_rendezvous(entry, at, *request, announced, is_waited_for(), outcome);
    const bool is_free = job_count_.load(std::memory_order_relaxed) == 0;  // A hint.
    if (outcome.answer_count != before && header.hops == 0 && is_free) {
      FrameHeader& answer = outcome.answers[before].header;
      answer.flags |= answer.kind == FrameKind::clear ? kFramePosted : 0;
    }
    return Announced::taken;
  }
  if (peer == nullptr && at.local_bytes + credit > options_.local_window_bytes) {
    return Announced::no_room;
  }
  Message* message = create_message(at, 0);
  if (message == nullptr) {
    return Announced::no_memory;
  }
  message->envelope = envelope;
  message->is_rendezvous = true;
  message->is_local = peer == nullptr;
  message->send_id = announced.send_id;
  message->sequence = announced.sequence;
  message->address = announced.address;
  message->head_bytes = announced.head_bytes;
  message->head_sequence = announced.head_sequence;
  if (!add_message(at, *message)) {
    free_message(at, message);
    return Announced::no_memory;
  }
  at.local_bytes += peer == nullptr ? credit : 0;
  return Announced::taken;
}

/// The receive has matched an announced message: reads it, or has it sent.
void TransportCore::start_rendezvous(RankEntry& entry, Endpoint& at, RecvRequest& request,
                                     const Message& message, bool is_waited,
                                     Outcome& outcome) noexcept {
  const std::uint32_t route =
      ranks_[request.envelope.source].route.load(std::memory_order_relaxed);
  if (route != RankEntry::kNoRoute && gates_[route].is_direct() &&
      request.envelope.bytes >= BothWays::kBytesMin) {
    gates_[route].receives_long(at.pending_sends != 0 ||
                                sending_jobs_.load(std::memory_order_relaxed) != 0);
  }
  if (message.address != 0 &&
      (request.data.extents == nullptr || request.data.layout() != nullptr)) {
    if (leave_to_who_waits(entry, at, request, message, is_waited)) {
      return;
    }
    ++entry.pins;
    // Who posts a receive beside sends may have a peer that waits for those: it had better read
    // when it has announced them, both at a time.
    const bool is_for_wait =
        is_serial_ && !is_waited &&
        (request.is_beside_sends || (request.may_be_written && habits_.finds_announced()));
    outcome.read = {&request, message.address, message.send_id, is_for_wait};
    return;
  }
  clear_to_send(entry, at, request, message, is_waited, outcome);
}

/// Tells the sender where its bytes go; of one of which part has been read only where the rest
/// begins, for that goes in data frames. From here to the last byte the rank stays here.
void TransportCore::clear_to_send(RankEntry& entry, Endpoint& at, RecvRequest& request,
                                  const Message& announced, bool is_waited,
                                  Outcome& outcome) noexcept {
  const std::uint32_t source = request.envelope.source;
  request.id = add_pending(at, PendingEntry::Kind::receive, &request, source);
  if (request.id == kNoId) {
    request.fault = Fault::no_memory;
    complete(request);
    return;
  }
  ++entry.pins;
  Outcome::Answer& answer = outcome.add();
  answer.header.kind = FrameKind::clear;
  answer.header.source = at.rank;
  answer.header.destination = source;
  answer.header.cookie = announced.send_id;
  const std::uint32_t route = ranks_[source].route.load(std::memory_order_relaxed);
  answer.header.total_bytes = route != RankEntry::kNoRoute ? gates_[route].own_reading_ps() : 0;
  const bool is_away = request.may_be_written && at.rank == invitations_.rank() && !is_waited &&
                       are_reads_left_;
  answer.header.flags |= is_away ? kFrameAway : 0;
  Peer* const peer = find_peer(at, source);
  if (peer != nullptr) {
    tell_credit(*peer, answer.header);
  }
  const bool has_part = request.received_bytes != 0;
  ClearPayload clear{
      .receive_id = request.id,
      .bytes_max = request.envelope.bytes,
      .begin = has_part ? request.received_bytes : expect_head(peer, request, announced),
      .node = node_};
  RemotePiece extents[kClearExtentsMax];
  bool is_short = !has_part;
  const std::uint64_t placed_bytes = has_part ? 0 : clear.bytes_max;
  for_each_part(request.data, 0, placed_bytes, [&](std::byte* address, std::uint64_t bytes) {
    if (clear.extent_count == kClearExtentsMax) {
      is_short = false;
      return false;
    }
    extents[clear.extent_count++] = {reinterpret_cast<std::uintptr_t>(address), bytes};
    return true;
  });
  clear.extent_count = is_short ? clear.extent_count : 0;
  const std::size_t extents_bytes = clear.extent_count * sizeof(RemotePiece);
  answer.header.payload_bytes = static_cast<std::uint32_t>(sizeof clear + extents_bytes);
  std::memcpy(answer.payload.data(), &clear, sizeof clear);
  std::memcpy(answer.payload.data() + sizeof clear, extents, extents_bytes);
}

/// So many bytes of a cleared message have come to their place.
void TransportCore::take_data(RankEntry& entry, Endpoint& at, RecvRequest& request,
                              std::uint64_t bytes) noexcept {
  request.received_bytes += bytes;
  if (request.received_bytes >= request.envelope.bytes) {
    finish_receive(entry, at, request, Fault::none);
  }
}

/// All bytes of a cleared message are there, or no more will come.
void TransportCore::finish_receive(RankEntry& entry, Endpoint& at, RecvRequest& request,
                                   Fault fault) noexcept {
  if (request.held_parts != 0) {
    request.is_to_end = true;
    request.fault = fault != Fault::none ? fault : request.fault;
    return;  // end_held() comes back here.
  }
  request.is_to_end = false;
  if (bond_ != nullptr) {
    bond_->lent_parts().forget({at.rank, request.id});
  }
  remove_pending(at, request.id);
  if (request.may_be_written) {
    invitations_.end(request);
  }
  --entry.pins;
  if (fault != Fault::none) {
    request.fault = fault;
  }
  complete(request);
}

/// A receive that matched a message of a node that is lost.
void TransportCore::fail_cleared(std::uint32_t rank, const Outcome::Answer& answer) noexcept {
  ClearPayload clear;
  std::memcpy(&clear, answer.payload.data(), sizeof clear);
  RankEntry& entry = ranks_[rank];
  const threads::OwnedGuard guard{entry.lock};
  // lose_node() may have found it first: then nothing has kept the rank here since.
  void* found = entry.state == RankState::here
                    ? find_pending(*entry.endpoint, clear.receive_id,
                                   PendingEntry::Kind::receive, answer.header.destination)
                    : nullptr;
  if (found != nullptr) {
    finish_receive(entry, *entry.endpoint, *static_cast<RecvRequest*>(found), Fault::peer_lost);
  }
}

}  // namespace sterna::net
