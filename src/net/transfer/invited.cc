// What the transport does with invitations (invitations.h): tells of receives, takes those of its
// peers, and reads what was left.
#include <algorithm>

#include "net/core.h"
#include "net/matching/matching.h"
#include "net/peer.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

// Of the messages that wait for an answer so many are compared with invitations. Receivers answer
// in order: the one that an invitation is for is among the oldest.
constexpr std::size_t kComparedMax = 4;
// A receiver that is in a call sees what was announced by itself, and has the bytes in its own
// cache if it reads them: where both copy in turn, the memory of the receive goes back and forth.
// One that is seen away so often, one look after the other, computes; else it may be between two
// calls. A look takes what the receiver writes out of its cache: one in so many polls, a
// microsecond.
constexpr std::uint32_t kLooksUntilAway = 2;
constexpr std::uint32_t kPollsOfLook = 12;
constexpr std::uint32_t kTestsOfLook = 32;  // Of who computes between them.
// Who never waits, but tests, reads what it has left so often.
constexpr std::uint32_t kLeftMax = 32;

}  // namespace

/// Who polls now waits, and has nothing better to do than to copy.
bool TransportCore::is_waited_for() const noexcept {
  const progress::Progress* const progress = progress_.load(std::memory_order_acquire);
  return progress == nullptr || progress->point() == threads::SchedulingPoint::idle;
}

/// The channel to a rank elsewhere, if it is open; else null.
Channel* TransportCore::channel_to(std::uint32_t rank) noexcept {
  const std::uint32_t route = rank < limits_.rank_count
                                  ? ranks_[rank].route.load(std::memory_order_relaxed)
                                  : RankEntry::kNoRoute;
  return route != RankEntry::kNoRoute && gates_[route].is_open() ? gates_[route].open_channel()
                                                                 : nullptr;
}

/// A receive that is posted. Messages that would come eagerly need no invitation, nor do programs
/// that come back at once.
bool TransportCore::may_be_invited(const Endpoint& at, const RecvRequest& request) noexcept {
  if ((is_serial_ && !are_reads_left_) || invitations_.own() == nullptr ||
      at.rank != invitations_.rank() || request.lane == nullptr ||
      request.data.extents != nullptr || request.lane->key.source >= limits_.rank_count) {
    return false;
  }
  const std::uint32_t route =
      ranks_[request.lane->key.source].route.load(std::memory_order_relaxed);
  if (route == RankEntry::kNoRoute) {
    return false;
  }
  const Gate& gate = gates_[route];
  return gate.is_direct() && gate.driver()->invitations() == invitations_.own() &&
         request.data.bytes > gate.unawaited_eager_bytes();
}

/// The receive has been taken for a message; the next of its lane may be told of now, for those
/// that come after this message. False: its sender writes it by itself, and it is not to be used in
/// another way.
bool TransportCore::end_invitation(Endpoint& at, RecvRequest& request, const Pattern& exact,
                                   std::uint32_t sequence_after) noexcept {
  const bool is_ours = invitations_.take_back(at, request);
  const Lane* const lane = at.posted_count[0] != 0 ? find_lane(at, exact) : nullptr;
  RecvRequest* const next = lane != nullptr ? lane->receives_first : nullptr;
  if (next != nullptr && next->may_be_written && next->id == kNoId && may_be_invited(at, *next)) {
    invitations_.invite(at, *next, sequence_after);
  }
  return is_ours;
}

/// The rest of take_posted(), for a receive that a sender may have been told of.
RecvRequest* TransportCore::take_written(RankEntry& entry, Endpoint& at, RecvRequest& request,
                                         Pattern exact, std::uint32_t sequence_after) noexcept {
  if (end_invitation(at, request, exact, sequence_after)) [[likely]] {
    return &request;
  }
  leave_to_writer(entry, at, request, exact);
  return nullptr;
}

/// Its sender said that the first message of this kind was another one. It may write until it says
/// `finish`, or is lost; the message that came waits for another receive.
void TransportCore::leave_to_writer(RankEntry& entry, Endpoint& at, RecvRequest& request,
                                    const Pattern& exact) noexcept {
  log_.error("rank {} writes a message to rank {} that another one precedes", exact.source,
             at.rank);
  request.state = RecvRequest::State::receiving;
  request.envelope = {exact.source, exact.context, exact.tag, request.data.bytes};
  ++entry.pins;
}

/// The receive has matched a message that can be read, by a call that waits for nothing
/// (`is_waited`), of a program that will compute, by its habit. If that waits before its sender
/// does it reads then what it would read now: nothing is lost. The rank is pinned for it.
bool TransportCore::leave_to_who_waits(RankEntry& entry, Endpoint& at, RecvRequest& request,
                                       const Message& announced, bool is_waited) noexcept {
  if (!request.may_be_written || at.rank != invitations_.rank() || is_waited || !are_reads_left_) {
    return false;
  }
  Channel* const channel = channel_to(announced.envelope.source);
  const bool is_first = !invitations_.has_left();
  if (channel == nullptr || channel->invitations() == nullptr ||
      channel->peer_is() == PeerIs::asleep ||
      !invitations_.leave(at, request, announced, announced.sequence)) {
    return false;
  }
  is_left_alone_ = (is_left_alone_ && !is_first) || (channel->peer_is() != PeerIs::at_hand &&
                                                     request.envelope.bytes > kReadAtOnceBytesMax);
  ++entry.pins;
  return true;
}

/// Reads one of the messages that were left. Not left to a sender that sleeps: it has fallen asleep
/// before it could see us away, and rang nobody; or it sees us away, and rings.
std::uint32_t TransportCore::read_left() noexcept {
  const std::uint32_t rank = invitations_.rank();
  const bool is_waited = is_waited_for();
  RankEntry& entry = ranks_[rank];
  Outcome outcome;
  {
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state != RankState::here) {
      return 0;
    }
    const auto is_due = [&](std::uint32_t source, std::uint32_t looks) {
      const Channel* const channel = channel_to(source);
      const PeerIs peer = channel != nullptr ? channel->peer_is() : PeerIs::unknown;
      return is_waited || looks >= kLeftMax || peer == PeerIs::asleep ||
             (is_in_place_ && peer != PeerIs::at_hand);
    };
    const Invitations::Left left = invitations_.take_left(*entry.endpoint, is_due);
    outcome.read = {left.request, left.address, left.send_id};
  }
  const bool is_found = outcome.read.request != nullptr;
  act(rank, outcome);
  return is_found ? 1 : 0;
}

bool TransportCore::take_invitation(Endpoint& from, Outcome& outcome) noexcept {
  for (Invitations::Waiting& message : invitations_.waiting(kComparedMax)) {
    SendRequest& send = *message.send;
    Channel* const channel = channel_to(send.target.rank);
    InvitationBoard* const board = channel != nullptr ? channel->invitations() : nullptr;
    if (board == nullptr || board->is_empty() || !channel->can_write_remote()) {
      continue;
    }
    message.looks = channel->peer_is() == PeerIs::away ? message.looks + 1 : 0;
    if (message.looks < kLooksUntilAway) {
      continue;
    }
    Invitation taken;
    if (!board->take([&](const Invitation& it) { return invitations_.is_meant(it, message); },
                     taken)) {
      continue;
    }
    remove_pending(from, send.id);
    send.id = kNoId;
    invitations_.forget(send);
    outcome.cleared = &send;
    outcome.cleared_by = taken.receiver;
    outcome.is_invited = true;
    outcome.clear = {.receive_id = taken.receive_id,
                     .bytes_max = std::min(taken.bytes, send.data.bytes),
                     .begin = 0,
                     .node = ranks_[taken.receiver].route.load(std::memory_order_relaxed),
                     .extent_count = 1};
    outcome.extents.count = 1;
    outcome.extents.pieces[0] = {taken.address, outcome.clear.bytes_max};
    return true;
  }
  return false;
}

/// One of the messages that were announced, if somebody waits for them, or asks again and again.
std::uint32_t TransportCore::write_invited() noexcept {
  if (++polls_of_look_ < (is_waited_for() ? kPollsOfLook : kTestsOfLook)) {
    return 0;
  }
  polls_of_look_ = 0;
  const std::uint32_t rank = invitations_.rank();
  RankEntry& entry = ranks_[rank];
  Outcome outcome;
  {
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state != RankState::here || !take_invitation(*entry.endpoint, outcome)) {
      return 0;
    }
    ++entry.pins;
  }
  counters_.invited.add();
  act(rank, outcome);
  return 1;
}

}  // namespace sterna::net
