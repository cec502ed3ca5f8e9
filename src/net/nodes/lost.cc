// A node is lost: everything that waits for it, or for ranks on it, ends with peer_lost.
#include <fmt/format.h>

#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

void fail(RecvRequest& request) noexcept {
  request.fault = Fault::peer_lost;
  request.state = RecvRequest::State::idle;
  request.done.complete();
}

/// Receives that only a lost rank could serve; and those from any rank, because their sender may be
/// among the lost and nobody can know (as MPI_ERR_PROC_FAILED_PENDING of the fault-tolerance
/// proposal, but final).
void fail_posted(Endpoint& at, const std::vector<bool>& is_lost,
                 Invitations& invitations) noexcept {
  if (RecvRequest* const parked = at.parked; parked != nullptr) {
    const std::uint32_t source = at.parked_pattern.source;
    if (source == kAnySource || is_lost[source]) {
      at.parked = nullptr;
      fail(*parked);
    }
  }
  for (std::uint32_t i = 0; i < at.lane_bucket_count; ++i) {
    for (Lane* lane = at.lanes[i]; lane != nullptr; lane = lane->next_in_bucket) {
      if (lane->key.source == kAnySource || is_lost[lane->key.source]) {
        while (lane->receives_first != nullptr) {
          RecvRequest& request = *lane->receives_first;
          unpost_receive(at, request);
          invitations.drop(at, request);
          fail(request);
        }
      }
    }
  }
}

/// The same of receives with a mask, whose envelopes are their patterns.
void fail_masked(Endpoint& at, const std::vector<bool>& is_lost) noexcept {
  RecvRequest* next = nullptr;
  for (RecvRequest* request = at.masked_first; request != nullptr; request = next) {
    next = request->next;
    const std::uint32_t source = request->envelope.source;
    if (source == kAnySource || is_lost[source]) {
      unpost_receive(at, *request);
      fail(*request);
    }
  }
}

/// Eager messages whose last parts will not come.
void fail_partial(Endpoint& at, const std::vector<bool>& is_lost) noexcept {
  for (std::uint32_t i = 0; i < at.peer_bucket_count; ++i) {
    for (Peer* peer = at.peers[i]; peer != nullptr; peer = peer->next_in_bucket) {
      if (!is_lost[peer->rank] || peer->partial_left == 0) {
        continue;
      }
      Message* message = peer->partial_message;
      RecvRequest* request = message != nullptr ? message->receiver : peer->partial_receive;
      if (request != nullptr) {
        fail(*request);
      }
      if (message != nullptr && message->receiver == nullptr && message->links[0].lane == nullptr) {
        message->fault = Fault::peer_lost;  // A matched probe holds it: its receive will free it.
      } else if (message != nullptr) {
        if (message->receiver == nullptr) {
          remove_message(at, *message);
        }
        free_message(at, message);
      }
      peer->partial_message = nullptr;
      peer->partial_receive = nullptr;
      peer->partial_left = 0;
    }
  }
}

/// What lost peers keep will not come.
void end_holders(Endpoint& at, const std::vector<bool>& is_lost) noexcept {
  Peer* next = nullptr;
  for (Peer* peer = at.holders; peer != nullptr; peer = next) {
    next = peer->hold->next_holder;
    if (is_lost[peer->rank]) {
      end_holder(at, *peer);
    }
  }
}

}  // namespace

void TransportCore::on_rail_lost(std::uint16_t rail, std::uint32_t node,
                                 std::string_view reason) noexcept {
  if (node >= limits_.node_count) {
    return;
  }
  if (bond_ != nullptr && bond_->has(node)) {
    bond_->lose_rail(rail, node, reason);
  } else if (gates_[node].driver() == &rails_[rail]->driver()) {
    lose_node(node, reason);
  }
}

void TransportCore::on_link_lost(std::uint32_t node, std::string_view why) noexcept {
  lose_node(node, why);
}

void TransportCore::lose_node(std::uint32_t node, std::string_view reason) noexcept {
  // Not whether the gate is lost: a sender may have found its channel closed before we hear of it,
  // and then nobody has looked yet at what waits.
  if (is_node_lost_[node]) {
    return;
  }
  is_node_lost_[node] = true;
  log_.error("node {} is lost: {}; what waits for its ranks ends with an error", node, reason);
  gates_[node].lose();
  is_any_lost_.store(true, std::memory_order_seq_cst);
  fail_landings(node);
  std::vector<bool> is_lost(limits_.rank_count);
  bool is_rank_lost = false;
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    is_lost[rank] = ranks_.node_of(rank) == node;
    is_rank_lost = is_rank_lost || is_lost[rank];
  }
  // Of a node that all ranks have left nobody waits for anything.
  for (std::uint32_t rank = 0; rank < limits_.rank_count && is_rank_lost; ++rank) {
    fail_requests(ranks_[rank], is_lost);
  }
  if (is_rank_lost) {
    loss_count_.fetch_add(1, std::memory_order_release);
  }
  // Who begins to watch after that sees the loss: the lock orders the two.
  for (std::uint32_t rank = 0; rank < limits_.rank_count && is_rank_lost; ++rank) {
    RankEntry& entry = ranks_[rank];
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state == RankState::here) {
      tell_watches(*entry.endpoint, nullptr);
    }
  }
  (void)gates_[node].advance();  // Drops what waits.
  if (lost_handler_ != nullptr) {
    lost_handler_(lost_context_, node, reason);
  }
}

void TransportCore::fail_requests(RankEntry& entry, const std::vector<bool>& is_lost) noexcept {
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state != RankState::here) {
    return;
  }
  Endpoint& at = *entry.endpoint;
  fail_posted(at, is_lost, invitations_);
  fail_masked(at, is_lost);
  fail_partial(at, is_lost);
  end_holders(at, is_lost);
  for (std::uint32_t i = 0; i < at.pending_capacity; ++i) {
    PendingEntry& pending = at.pending[i];
    if (pending.kind == PendingEntry::Kind::free || !is_lost[pending.peer]) {
      continue;
    }
    void* request = pending.request;
    const bool is_send = pending.kind == PendingEntry::Kind::send;
    if (is_send) {
      remove_pending(at, (std::uint64_t{pending.generation} << 32) | i);
      auto& send = *static_cast<SendRequest*>(request);
      invitations_.forget(send);
      let_go(at, send);
      send.fault = Fault::peer_lost;
      send.done.complete();
    } else {
      finish_receive(entry, at, *static_cast<RecvRequest*>(request), Fault::peer_lost);
    }
  }
}

/// A frame could not even be noted: who waits for it would wait for ever.
void TransportCore::report_lost(std::uint32_t rank, Outcome::Lost why) noexcept {
  const std::string text =
      why == Outcome::Lost::no_memory
          ? fmt::format(
                "rank {} has lost a message: its system heap is full of messages that it "
                "has not received; receive them sooner, or lower net_eager_window",
                rank)
          : fmt::format(
                "rank {} has lost a message: {} of one rank have come before one that is "
                "missing; the network between them loses packets, try other --drivers",
                rank, kEarlyFramesMax);
  log_.error("{}", text);
  if (full_handler_ != nullptr) {
    full_handler_(full_context_, rank, text);
  }
}

}  // namespace sterna::net
