// A node is lost: everything that waits for it, or for ranks on it, ends with peer_lost.
#include <fmt/format.h>

#include "memory/heap.h"
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

/// Ranks that are lost, as a rank is told of them.
struct Losses {
  const std::vector<bool>& are_lost;
  bool is_news;  // It did not know of all of them.

  /// Whether a receive from this source ends: one that only a lost rank could serve; or one from
  /// any rank, because its sender may be among the lost and nobody can know (as
  /// MPI_ERR_PROC_FAILED_PENDING of the fault-tolerance proposal, but final).
  [[nodiscard]] bool end(std::uint32_t source) const noexcept {
    return source == kAnySource ? is_news : are_lost[source];
  }
};

/// Notes what the rank is told of. True: not all of it was known to it, here or where it was
/// before.
bool note_losses(Endpoint& at, const std::vector<bool>& are_lost) noexcept {
  constexpr std::size_t kBits = 64;
  bool is_news = false;
  for (std::size_t rank = 0; rank < are_lost.size(); ++rank) {
    if (!are_lost[rank]) {
      continue;
    }
    if (at.lost_ranks == nullptr) {
      at.lost_ranks = static_cast<std::uint64_t*>(at.heap->allocate_zeroed(
          (are_lost.size() + kBits - 1) / kBits * sizeof(std::uint64_t)));
    }
    const std::uint64_t bit = std::uint64_t{1} << rank % kBits;
    if (at.lost_ranks == nullptr) {
      is_news = true;  // For all that can be known.
    } else if ((at.lost_ranks[rank / kBits] & bit) == 0) {
      at.lost_ranks[rank / kBits] |= bit;
      is_news = true;
    }
  }
  if (is_news) {
    ++at.loss_count;
  }
  return is_news;
}

/// Of receives that are posted those that the losses end.
void fail_posted(Endpoint& at, const Losses& losses, Invitations& invitations) noexcept {
  if (RecvRequest* const parked = at.parked;
      parked != nullptr && losses.end(at.parked_pattern.source)) {
    at.parked = nullptr;
    fail(*parked);
  }
  for (std::uint32_t i = 0; i < at.lane_bucket_count; ++i) {
    for (Lane* lane = at.lanes[i]; lane != nullptr; lane = lane->next_in_bucket) {
      while (lane->receives_first != nullptr && losses.end(lane->key.source)) {
        RecvRequest& request = *lane->receives_first;
        unpost_receive(at, request);
        invitations.drop(at, request);
        fail(request);
      }
    }
  }
}

/// The same of receives with a mask, whose envelopes are their patterns.
void fail_masked(Endpoint& at, const Losses& losses) noexcept {
  RecvRequest* next = nullptr;
  for (RecvRequest* request = at.masked_first; request != nullptr; request = next) {
    next = request->next;
    if (losses.end(request->envelope.source)) {
      unpost_receive(at, *request);
      fail(*request);
    }
  }
}

/// Eager messages whose last parts will not come.
void fail_partial(RankEntry& entry, Endpoint& at, const std::vector<bool>& is_lost) noexcept
    STERNA_REQUIRES(entry.lock) {
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
      --at.partial_count;
      entry.pins -= peer->is_partial_placed ? 1 : 0;
      peer->is_partial_placed = false;
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
  if (is_rank_lost) {  // Of a node that all ranks have left nobody waits for anything.
    lose_ranks(is_lost);
  }
  (void)gates_[node].advance();  // Drops what waits.
  if (lost_handler_ != nullptr) {
    lost_handler_(lost_context_, node, reason);
  }
}

void TransportCore::lose_ranks(const std::vector<bool>& is_lost) noexcept {
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    fail_requests(ranks_[rank], is_lost);
  }
  loss_count_.fetch_add(1, std::memory_order_release);
  // Who begins to watch after that sees the loss: the lock orders the two.
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    RankEntry& entry = ranks_[rank];
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state == RankState::here) {
      tell_watches(*entry.endpoint, nullptr);
    }
  }
}

/// The rank has come, or stays after all: its requests were left out of losses that this node has
/// heard of before, or meanwhile. After it is here: who loses a node from then on finds it.
void TransportCore::see_losses(std::uint32_t rank) noexcept {
  if (!is_any_lost_.load(std::memory_order_seq_cst)) [[likely]] {
    return;
  }
  std::vector<bool> is_lost(limits_.rank_count);
  for (std::uint32_t other = 0; other < limits_.rank_count; ++other) {
    is_lost[other] = gates_[ranks_.node_of(other)].is_lost();
  }
  RankEntry& entry = ranks_[rank];
  fail_requests(entry, is_lost);
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state == RankState::here) {
    tell_watches(*entry.endpoint, nullptr);
  }
}

/// The rank is elsewhere than was known here: on a node that is lost, perhaps, of whose ranks it
/// was none when that was heard of. After the place was written: who loses the node from then on
/// finds the rank there.
void TransportCore::see_place(std::uint32_t rank) noexcept {
  if (!is_any_lost_.load(std::memory_order_seq_cst)) [[likely]] {
    return;
  }
  {
    RankEntry& entry = ranks_[rank];
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state != RankState::elsewhere || !gates_[entry.node].is_lost()) {
      return;
    }
  }
  std::vector<bool> is_lost(limits_.rank_count);
  is_lost[rank] = true;
  lose_ranks(is_lost);
}

void TransportCore::fail_requests(RankEntry& entry, const std::vector<bool>& is_lost) noexcept {
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state != RankState::here) {
    return;
  }
  Endpoint& at = *entry.endpoint;
  const Losses losses{is_lost, note_losses(at, is_lost)};
  fail_posted(at, losses, invitations_);
  fail_masked(at, losses);
  fail_partial(entry, at, is_lost);
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
