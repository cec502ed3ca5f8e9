// Ranks that come, leave and end. The states and their changes:
//   expected -> here (install), elsewhere (unexpect)
//   here -> leaving (begin_leave), ended (remove)
//   leaving -> elsewhere (commit_leave), here (cancel_leave), ended (remove)
//   elsewhere -> expected (expect)
#include <fmt/format.h>

#include "net/core.h"
#include "net/matching/matching.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

HeldPacket* take_held(RankEntry& entry) noexcept STERNA_REQUIRES(entry.lock) {
  HeldPacket* first = entry.held_first;
  entry.held_first = entry.held_last = nullptr;
  return first;
}

}  // namespace

/// Frames whose turn it is: whoever took the one before them, and sent its answers, found that the
/// rank had begun to leave, and nobody else looks at them before one of their pair comes.
void TransportCore::deliver_early(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  for (;;) {
    Outcome outcome;
    {
      const threads::OwnedGuard guard{entry.lock};
      Peer* const peer = entry.state == RankState::here ? find_early(*entry.endpoint) : nullptr;
      if (peer == nullptr) {
        return;
      }
      EarlyFrame* const early = next_early(*peer);
      accept_in_turn(entry, *entry.endpoint, *peer, frame_of(*early), outcome);
      free_early(*entry.endpoint, early);
    }
    act(rank, outcome);
  }
}

void TransportCore::install(std::uint32_t rank, Endpoint* endpoint) noexcept {
  check(rank < limits_.rank_count && endpoint->rank == rank,
        "an endpoint is installed as its rank");
  RankEntry& entry = ranks_[rank];
  HeldPacket* held = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    check(entry.state == RankState::expected, "a rank that is installed was expected");
    const bool has_moved = entry.is_moving;
    endpoint->epoch += has_moved ? 1 : 0;
    entry.is_moving = false;
    entry.state = RankState::here;
    entry.node = node_;
    entry.tell_route();
    entry.epoch = endpoint->epoch;
    entry.endpoint = endpoint;
    entry.pins = 0;
    if (endpoint->is_fixed) {
      invitations_.set_rank(rank);
    }
    // Its probes look again; of losses, after what has come before them, see_losses() tells them.
    tell_watches(*endpoint, nullptr);
    held = take_held(entry);
  }
  deliver_early(rank);
  // Others may be delivered before these: sequence numbers put them right.
  deliver_held(held);
  see_losses(rank);
  advance_kept(rank);
}

void TransportCore::remove(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  HeldPacket* held = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    check((entry.state == RankState::here || entry.state == RankState::leaving) && entry.pins == 0,
          "a rank ends where it is, when no copy from or to it is under way");
    entry.state = RankState::ended;
    entry.endpoint = nullptr;
    if (rank == invitations_.rank()) {
      invitations_.close();
    }
    entry.lock.disown();
    held = take_held(entry);
  }
  deliver_held(held);
}

Result<> TransportCore::begin_leave(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  std::uint32_t pins = 0;
  {
    const threads::OwnedGuard guard{entry.lock};
    check(entry.state == RankState::here, "a rank leaves from where it is");
    pins = entry.pins;
    if (pins == 0) {
      entry.state = RankState::leaving;
      return Done{};
    }
  }
  return Error{Errc::refused,
               fmt::format("rank {} has {} large messages under way; it can move when they have "
                           "arrived",
                           rank, pins)};
}

void TransportCore::commit_leave(std::uint32_t rank, std::uint32_t to_node) noexcept {
  check(to_node < limits_.node_count && to_node != node_, "a rank leaves for another node");
  RankEntry& entry = ranks_[rank];
  HeldPacket* held = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    check(entry.state == RankState::leaving, "a move is committed after it was begun");
    entry.state = RankState::elsewhere;
    entry.node = to_node;
    entry.tell_route();
    entry.endpoint = nullptr;
    ++entry.epoch;
    entry.lock.disown();
    held = take_held(entry);
  }
  deliver_held(held);
  see_place(rank);
}

void TransportCore::cancel_leave(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  HeldPacket* held = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    check(entry.state == RankState::leaving, "a move is cancelled after it was begun");
    entry.state = RankState::here;
    tell_watches(*entry.endpoint, nullptr);  // As in install().
    held = take_held(entry);
  }
  deliver_early(rank);
  deliver_held(held);
  see_losses(rank);
  advance_kept(rank);
}

void TransportCore::expect(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  const threads::OwnedGuard guard{entry.lock};
  check(entry.state == RankState::elsewhere, "a rank is expected from elsewhere");
  entry.state = RankState::expected;
  entry.tell_route();
  entry.is_moving = true;
}

void TransportCore::learn(std::uint32_t rank, std::uint32_t node, std::uint32_t move) noexcept {
  check(rank < limits_.rank_count && node < limits_.node_count, "a rank is placed on a node");
  // What comes here is known here first.
  if (node != node_ && ranks_.learn(rank, node, move)) {
    see_place(rank);
  }
}

void TransportCore::for_each_moved(FunctionRef<void(const RankPlace&)> visit) noexcept {
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    RankPlace place{.rank = rank};
    {
      RankEntry& entry = ranks_[rank];
      const threads::OwnedGuard guard{entry.lock};
      if (entry.state != RankState::elsewhere || entry.epoch == 0) {
        continue;
      }
      place.node = entry.node;
      place.move = entry.epoch;
    }
    visit(place);
  }
}

void TransportCore::retire(std::uint32_t node, std::span<const RankPlace> places) noexcept {
  check(node < limits_.node_count && node != node_, "another node is retired");
  for (const RankPlace& place : places) {
    check(place.rank < limits_.rank_count && place.node < limits_.node_count,
          "a rank is placed on a node");
    if (place.node != node && place.node != node_ &&
        ranks_.retire(place.rank, node, place.node, place.move)) {
      see_place(place.rank);
    }
  }
  gates_[node].retire_routes();
}

void TransportCore::unexpect(std::uint32_t rank, std::uint32_t node) noexcept {
  RankEntry& entry = ranks_[rank];
  HeldPacket* held = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    check(entry.state == RankState::expected, "only a rank that is expected can fail to come");
    entry.state = RankState::elsewhere;
    entry.is_moving = false;
    entry.node = node;
    entry.tell_route();
    held = take_held(entry);
  }
  deliver_held(held);
  see_place(rank);
}

}  // namespace sterna::net
