// Taking receives and sends back.
//
// A send can be taken back while its message waits, unmatched, at its receiver: announced, or
// synchronous. Whoever takes the message out of the receiver's Endpoint first, under the lock of
// that rank, has it: a receive, or the withdrawal. The withdrawal is a frame of the pair, so it
// comes after the message; its answer ends the send. It needs none where a receive was first: then
// the send ends by that.
//
// tests/models/rendezvous.pml is the protocol of announced messages, with withdrawals and nodes
// that end, for a model checker.
#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// The message of this send, if no receive and no matched probe has taken it. A walk: rare.
Message* find_withdrawn(const Endpoint& at, std::uint32_t source, std::uint64_t send_id) noexcept {
  Message* message = at.messages_first;
  while (message != nullptr && (message->envelope.source != source || message->send_id != send_id ||
                                !(message->is_rendezvous || message->is_synchronous))) {
    message = message->all_next;
  }
  return message;
}

}  // namespace

bool TransportCore::cancel_receive(Endpoint& at, RecvRequest& request) noexcept {
  RankEntry& entry = ranks_[at.rank];
  const threads::OwnedGuard guard{entry.lock};
  if (request.state != RecvRequest::State::posted || !invitations_.take_back(at, request)) {
    return false;
  }
  unpost_receive(at, request);
  request.fault = Fault::cancelled;
  request.done.complete();
  return true;
}

bool TransportCore::cancel_send(Endpoint& from, SendRequest& request) noexcept {
  const Target target = request.target;
  const std::uint32_t to_rank = target.rank;
  std::uint64_t id = kNoId;
  FrameHeader kept;
  bool is_kept = false;
  {  // After this lock the request may end at any moment, and be the caller's callback's.
    RankEntry& entry = ranks_[from.rank];
    const threads::OwnedGuard guard{entry.lock};
    if (request.done.done() || request.id == kNoId ||
        find_pending(from, request.id, PendingEntry::Kind::send, to_rank) != &request) {
      return false;
    }
    if (request.is_withdrawn) {
      return true;
    }
    id = request.id;
    is_kept = withdraw_kept(from, request, id, kept);
  }
  if (is_kept) {
    if (kept.cookie != 0 && !transmit(kept, Buffer{})) {
      end_pending_send(from, id, to_rank, Fault::peer_lost);
    }
    advance_kept(from.rank);
    return true;
  }
  bool is_here = false;
  if (take_back(from.rank, to_rank, id, is_here)) {
    end_pending_send(from, id, to_rank, Fault::cancelled);
    return true;
  }
  FrameHeader header;
  {
    RankEntry& entry = ranks_[from.rank];
    const threads::OwnedGuard guard{entry.lock};
    // Of ranks here that have never exchanged a frame the message is not on its way: a receive has
    // it. Elsewhere it may have moved with its receiver.
    Peer* const peer = is_here ? find_peer(from, to_rank) : make_peer(from, to_rank);
    if (peer == nullptr || find_pending(from, id, PendingEntry::Kind::send, to_rank) != &request) {
      return false;
    }
    header.sequence = peer->send_sequence++;
    tell_credit(*peer, header);
  }
  header.kind = FrameKind::rendezvous;
  header.flags |= kFrameWithdrawn;
  header.source = from.rank;
  header.destination = to_rank;
  header.context = target.context;
  header.tag = target.tag;
  header.cookie = id;
  if (!transmit(header, Buffer{})) {
    end_pending_send(from, id, to_rank, Fault::peer_lost);
  }
  return true;
}

/// Whether the message waited at a rank of this node, and is gone.
bool TransportCore::take_back(std::uint32_t source, std::uint32_t to_rank, std::uint64_t send_id,
                              bool& is_here) noexcept {
  RankEntry& entry = ranks_[to_rank];
  Outcome outcome;
  {
    const threads::OwnedGuard guard{entry.lock};
    is_here = entry.state == RankState::here;
    Message* const message = is_here ? find_withdrawn(*entry.endpoint, source, send_id) : nullptr;
    if (message == nullptr || !message->is_rendezvous) {
      return false;
    }
    remove_message(*entry.endpoint, *message);
    release(*entry.endpoint, *message, outcome);
    free_message(*entry.endpoint, message);
  }
  act(to_rank, outcome);
  return true;
}

void TransportCore::withdraw(Endpoint& at, const FrameHeader& header, Outcome& outcome) noexcept {
  Message* const message = find_withdrawn(at, header.source, header.cookie);
  if (message == nullptr) {
    return;
  }
  remove_message(at, *message);
  release(at, *message, outcome);
  free_message(at, message);
  answer_matched(at, header.source, header.cookie, outcome);
  outcome.answers[outcome.answer_count - 1].header.flags |= kFrameWithdrawn;
}

/// The node of the peer was lost while we sent, or the message is taken back: unless another end,
/// as lose_node(), has found the request first.
void TransportCore::end_pending_send(Endpoint& from, std::uint64_t id, std::uint32_t peer,
                                     Fault fault) noexcept {
  RankEntry& entry = ranks_[from.rank];
  const threads::OwnedGuard guard{entry.lock};
  void* request = find_pending(from, id, PendingEntry::Kind::send, peer);
  if (request != nullptr) {
    auto& send = *static_cast<SendRequest*>(request);
    remove_pending(from, id);
    invitations_.forget(send);
    let_go(from, send);
    send.fault = fault;
    send.done.complete();
  }
}

}  // namespace sterna::net
