// Frames between ranks: routed to where the rank is, taken in turn, acted upon.
#include <cstring>
#include <utility>

#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/held.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

Piece header_piece(const FrameHeader& header) noexcept {
  return std::as_bytes(std::span{&header, 1});
}

}  // namespace

bool TransportCore::transmit(const FrameHeader& header, const Buffer& payload, std::uint64_t offset,
                             Sender sender) noexcept {
  const std::atomic<std::uint32_t>& route_of_rank = ranks_[header.destination].route;
  std::uint32_t route = route_of_rank.load(std::memory_order_relaxed);
  while (route != RankEntry::kNoRoute && route != node_) [[likely]] {
    // The version first: who retires the routes of a gate writes new routes, then the version.
    const std::uint32_t version = gates_[route].route_version();
    const std::uint32_t again = route_of_rank.load(std::memory_order_relaxed);
    if (again == route) [[likely]] {
      const Gate::SendResult result = send_frame(route, header, payload, offset, version, sender);
      if (result != Gate::SendResult::stale) [[likely]] {
        return result != Gate::SendResult::lost;
      }
    }
    route = route_of_rank.load(std::memory_order_relaxed);
  }
  // Here, or held here: rare (order or a move asks for it), so a copy makes it simple.
  std::array<Piece, kPacketPiecesMax> pieces;
  pieces[0] = header_piece(header);
  std::uint64_t taken = 0;
  const std::uint32_t count =
      pieces_of(payload, offset, header.payload_bytes, std::span{pieces}.subspan(1), taken);
  check(taken == header.payload_bytes, "the payload of a frame fits the pieces of a packet");
  HeldPacket* packet = pool_.copy({pieces.data(), count + 1});
  Frame frame{header, packet->packet().subspan(kHeaderBytes)};
  deliver(node_, frame);
  pool_.release(packet);
  return true;
}

Gate::SendResult TransportCore::send_frame(std::uint32_t node, const FrameHeader& header,
                                           const Buffer& payload, std::uint64_t offset,
                                           std::uint32_t route_version, Sender sender) noexcept {
  Gate& gate = gates_[node];
  if (!gate.is_open()) [[unlikely]] {
    return Gate::SendResult::lost;
  }
  Gate::SendResult result;
  if (payload.extents == nullptr) [[likely]] {
    const Piece pieces[2] = {header_piece(header),
                             {payload.address + offset, header.payload_bytes}};
    result = gate.send({pieces, header.payload_bytes != 0 ? 2U : 1U}, route_version, sender);
  } else {
    std::array<Piece, kPacketPiecesMax> pieces;
    pieces[0] = header_piece(header);
    std::uint64_t taken = 0;
    const std::uint32_t count =
        pieces_of(payload, offset, header.payload_bytes, std::span{pieces}.subspan(1), taken);
    check(taken == header.payload_bytes, "the payload of a frame fits the pieces of a packet");
    result = gate.send({pieces.data(), count + 1}, route_version, sender);
  }
  if (result == Gate::SendResult::handed) {
    counters_.handed.add();
  }
  return result;
}

bool TransportCore::send_to_node(std::uint32_t node, const FrameHeader& header,
                                 const Buffer& payload, Sender sender) noexcept {
  return send_frame(node, header, payload, 0, kAnyRoute, sender) != Gate::SendResult::lost;
}

void TransportCore::on_bad_choice(void* core, const char* rule) noexcept {
  auto& self = *static_cast<TransportCore*>(core);
  if (!self.is_choice_told_.exchange(true, std::memory_order_relaxed)) {
    self.log_.error(
        "the network strategy breaks a rule of sterna/strategy.hpp ({}); frames go alone instead",
        rule);
  }
}

/// A frame that waited for a gate while its rank was found to have left that node: it goes on from
/// the poll, as the thread that has it owns that gate.
void TransportCore::on_stale(void* core, HeldPacket* packet) noexcept {
  auto& self = *static_cast<TransportCore*>(core);
  self.stale_count_.fetch_add(1, std::memory_order_acq_rel);
  self.stale_frames_.push(*packet);
  self.wake();
}

std::uint32_t TransportCore::send_stale() noexcept {
  std::uint32_t count = 0;
  while (HeldPacket* packet = stale_frames_.pop()) {
    FrameHeader header;
    std::memcpy(&header, packet->data(), kHeaderBytes);
    const std::span<const std::byte> payload = packet->packet().subspan(kHeaderBytes);
    (void)transmit(header, Buffer::of(payload.data(), payload.size()));
    pool_.release(packet);
    stale_sent_.fetch_add(1, std::memory_order_acq_rel);
    ++count;
  }
  return count;
}

void TransportCore::hold(RankEntry& entry, std::uint32_t from_node, const Frame& frame) noexcept {
  const Piece pieces[2] = {header_piece(frame.header), frame.payload};
  HeldPacket* packet = pool_.copy(pieces);
  packet->from_node = from_node;
  (entry.held_last != nullptr ? entry.held_last->next : entry.held_first) = packet;
  entry.held_last = packet;
  counters_.held.add();
}

void TransportCore::deliver_held(HeldPacket* first) noexcept {
  while (first != nullptr) {
    HeldPacket* packet = first;
    first = packet->next;
    Frame frame;
    std::memcpy(&frame.header, packet->data(), kHeaderBytes);
    frame.payload = packet->packet().subspan(kHeaderBytes);
    deliver(packet->from_node, frame);
    pool_.release(packet);
  }
}

void TransportCore::deliver(std::uint32_t from_node, const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  RankEntry& entry = ranks_[header.destination];
  Outcome outcome;
  std::uint32_t forward_to = node_;
  std::uint32_t epoch = 0;
  {
    const threads::OwnedGuard guard{entry.lock};
    switch (entry.state) {
      case RankState::here:
        accept(entry, *entry.endpoint, frame, outcome);
        break;
      case RankState::expected:
      case RankState::leaving:
        hold(entry, from_node, frame);
        return;
      case RankState::elsewhere:
        forward_to = entry.node;
        epoch = entry.epoch;
        break;
      case RankState::ended:
        counters_.dropped.add();
        return;
    }
  }
  if (forward_to != node_) {
    forward(from_node, frame, forward_to, epoch);
    return;
  }
  if (outcome.is_note) [[unlikely]] {
    call_note(frame);
    return;
  }
  act(header.destination, outcome);
  while (outcome.has_early) {
    // One at a time, with its answers: frames that came out of order are rare. Nothing keeps the
    // rank here meanwhile: if it leaves, deliver_early() goes on where it is installed.
    outcome.has_early = false;
    {
      const threads::OwnedGuard guard{entry.lock};
      Peer* peer =
          entry.state == RankState::here ? find_peer(*entry.endpoint, header.source) : nullptr;
      EarlyFrame* early = peer != nullptr ? next_early(*peer) : nullptr;
      if (early != nullptr) {
        accept_in_turn(entry, *entry.endpoint, *peer, frame_of(*early), outcome);
        free_early(*entry.endpoint, early);
      }
    }
    act(header.destination, outcome);
  }
}

void TransportCore::forward(std::uint32_t from_node, const Frame& frame, std::uint32_t to_node,
                            std::uint32_t epoch) noexcept {
  FrameHeader header = frame.header;
  // A rank that moves as often as frames do (one that tests in a loop, where each test may move it)
  // is followed until it is met: who drops the frame loses a message, and the job waits for ever.
  header.hops = header.hops < kHopsMax ? static_cast<std::uint8_t>(header.hops + 1) : kHopsMax;
  counters_.forwarded.add();
  // By the table once more: it may have gone further meanwhile.
  (void)transmit(header, Buffer::of(frame.payload.data(), frame.payload.size()));
  if (from_node != node_ && from_node != to_node && epoch != 0) {
    FrameHeader moved;
    moved.kind = FrameKind::moved;
    moved.source = node_;
    moved.destination = from_node;
    moved.cookie = frame.header.destination;
    moved.context = to_node;
    moved.sequence = epoch;
    (void)send_to_node(from_node, moved, {});
  }
}

void TransportCore::accept(RankEntry& entry, Endpoint& at, const Frame& frame,
                           Outcome& outcome) noexcept {
  const FrameHeader& header = frame.header;
  if (!is_in_turn(header.kind)) {
    accept_answer(entry, at, frame, outcome);
    return;
  }
  Peer* peer = make_peer(at, header.source);
  if (peer == nullptr) {
    outcome.lost = Outcome::Lost::no_memory;
    return;
  }
  if ((header.flags & kFrameHasCredit) != 0) {
    take_credit(*peer, header.credit);
  }
  switch (turn_of(*peer, header.sequence)) {
    case Turn::now:
      accept_in_turn(entry, at, *peer, frame, outcome);
      break;
    case Turn::later:
      switch (keep_early(at, *peer, frame)) {
        case Kept::kept:
          break;
        case Kept::twice:
          refuse(header, "it came twice");
          break;
        case Kept::too_many:
          outcome.lost = Outcome::Lost::too_many_early;
          break;
        case Kept::no_memory:
          outcome.lost = Outcome::Lost::no_memory;
          break;
      }
      break;
    case Turn::past:
      refuse(header, "it came twice");
      break;
  }
}

void TransportCore::accept_in_turn(RankEntry& entry, Endpoint& at, Peer& peer, const Frame& frame,
                                   Outcome& outcome) noexcept {
  ++peer.receive_sequence;
  switch (frame.header.kind) {
    case FrameKind::eager:
      accept_eager(entry, at, peer, frame, outcome);
      break;
    case FrameKind::eager_more:
      accept_more(entry, at, peer, frame, outcome);
      break;
    case FrameKind::head:
      accept_head(entry, at, peer, frame);
      break;
    case FrameKind::seek:
      accept_seek(at, peer, frame.header, outcome);
      break;
    case FrameKind::nothing:
      accept_nothing(at, peer, frame.header, outcome);
      break;
    case FrameKind::claim:
      accept_claim(at, peer, frame.header, outcome);
      break;
    default:
      accept_announced(entry, at, peer, frame, outcome);
      break;
  }
  outcome.has_early = peer.early != nullptr && peer.early->sequence == peer.receive_sequence;
}

void TransportCore::accept_answer(RankEntry& entry, Endpoint& at, const Frame& frame,
                                  Outcome& outcome) noexcept {
  const FrameHeader& header = frame.header;
  if (header.kind == FrameKind::rank_note) {
    ++entry.pins;
    outcome.is_note = true;
    return;
  }
  if ((header.flags & kFrameHasCredit) != 0) {
    if (Peer* peer = find_peer(at, header.source); peer != nullptr) {
      take_credit(*peer, header.credit);
      outcome.has_kept = header.kind == FrameKind::credit && (header.flags & kFrameHeld) != 0 &&
                         take_told(at, *peer, static_cast<std::uint32_t>(header.cookie));
    }
  }
  if (header.kind == FrameKind::credit) {
    return;
  }
  const bool is_for_send = header.kind == FrameKind::clear || header.kind == FrameKind::matched;
  void* found = find_pending(at, header.cookie,
                             is_for_send ? PendingEntry::Kind::send : PendingEntry::Kind::receive,
                             header.source);
  const bool comes_again = header.kind == FrameKind::data && (header.flags & kFrameAgain) != 0;
  if (found == nullptr) {
    if (!comes_again) {  // Else its receive had all of it already.
      refuse(header, "no request waits for it");
    }
    return;
  }
  if (is_for_send) {
    auto& send = *static_cast<SendRequest*>(found);
    if (header.kind == FrameKind::matched) {
      remove_pending(at, header.cookie);
      invitations_.forget(send);
      let_go(at, send);
      learn_read(header, send.data.bytes);
      send.fault = (header.flags & kFrameWithdrawn) != 0 ? Fault::cancelled : Fault::none;
      send.done.complete();
      return;
    }
    if (!decode_clear(frame.payload, limits_, outcome.clear, outcome.extents) ||
        outcome.clear.bytes_max > send.data.bytes) {
      refuse(header, "its payload breaks the format");
      return;
    }
    remove_pending(at, header.cookie);
    invitations_.forget(send);
    let_go(at, send);
    send.id = kNoId;
    if (Gate& gate = gates_[outcome.clear.node]; header.total_bytes != 0 && gate.is_open()) {
      gate.told_reading(header.total_bytes);
    }
    gates_[outcome.clear.node].end_turn(
        at.rank, header.cookie, (header.flags & kFramePosted) != 0 && header.hops == 0);
    ++entry.pins;
    outcome.cleared = &send;
    outcome.cleared_by = header.source;
    outcome.is_away = (header.flags & kFrameAway) != 0;
    return;
  }
  auto& request = *static_cast<RecvRequest*>(found);
  if (request.state != RecvRequest::State::receiving) {
    refuse(header, "its message was not announced");
    return;
  }
  const std::uint64_t offset = header.total_bytes;
  if (header.kind == FrameKind::finish) {
    if (offset >= request.envelope.bytes) {
      finish_receive(entry, at, request, Fault::none);
    } else {  // The rest comes in data frames.
      take_data(entry, at, request, offset);
    }
    return;
  }
  if (header.payload_bytes > request.envelope.bytes ||
      offset > request.envelope.bytes - header.payload_bytes) {
    refuse(header, "its bytes lie outside of the message");
    return;
  }
  copy_in(request.data, offset, frame.payload.data(), header.payload_bytes);
  take_data(entry, at, request,
            comes_again && bond_ != nullptr
                ? bond_->lent_parts().come_again({at.rank, request.id}, offset,
                                                 header.payload_bytes)
                : header.payload_bytes);
}

void TransportCore::act(std::uint32_t rank, Outcome& outcome) noexcept {
  if (outcome.lost != Outcome::Lost::nothing) [[unlikely]] {
    report_lost(rank, std::exchange(outcome.lost, Outcome::Lost::nothing));
  }
  for (std::uint32_t i = 0; i < outcome.answer_count; ++i) {
    const Outcome::Answer& answer = outcome.answers[i];
    const bool is_sent =
        transmit(answer.header, Buffer::of(answer.payload.data(), answer.header.payload_bytes));
    if (!is_sent && answer.header.kind == FrameKind::clear) {
      fail_cleared(rank, answer);
    }
  }
  outcome.answer_count = 0;
  if (outcome.has_kept) [[unlikely]] {
    outcome.has_kept = false;
    advance_kept(rank);
  }
  if (outcome.read.request != nullptr) {
    read_remote(rank, outcome);
    outcome.read.request = nullptr;
  }
  if (outcome.cleared != nullptr) {
    start_transfer(rank, outcome);
    outcome.cleared = nullptr;
  }
}

void TransportCore::refuse(const FrameHeader& header, const char* why) noexcept {
  counters_.malformed.add();
  log_.error("a frame of kind {} from {} to {} (sequence {}) was dropped: {}",
             static_cast<int>(header.kind), header.source, header.destination, header.sequence,
             why);
}

}  // namespace sterna::net
