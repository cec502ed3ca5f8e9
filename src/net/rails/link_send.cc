// Links: the way of a packet out.
//
// tests/models/failover.pml is this protocol for a model checker, function by function: who changes
// try_send, send_again, take_acks, find_missing, lose_rail, connect_again, take_data, acknowledge
// or owe_again changes it there too. try_send_two() is two of its try_send in one turn of
// send_lock_, which no other action of the protocol comes between.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/backoff.h"
#include "net/rails/choice.h"
#include "net/rails/link.h"

namespace sterna::net {
namespace {

/// The pieces of a packet behind room for the header.
struct Roomed {
  explicit Roomed(std::span<const Piece> of) noexcept : count{of.size() + 1} {
    static constexpr std::array<std::byte, kLinkHeaderBytes> kRoom{};
    pieces[0] = kRoom;
    std::copy(of.begin(), of.end(), pieces.begin() + 1);
    for (const Piece& piece : of) {
      bytes += static_cast<std::uint32_t>(piece.size());
    }
  }
  [[nodiscard]] std::span<const Piece> all() const noexcept { return {pieces.data(), count}; }

  std::array<Piece, kPacketPiecesMax + 1> pieces;
  std::size_t count;
  std::uint32_t bytes = kLinkHeaderBytes;
};

}  // namespace

/// The rail for a packet; kNoRail: it has to wait.
std::uint32_t Link::choose(std::uint32_t bytes, std::uint64_t tried) noexcept {
  std::array<RailView, kViewedRails> views;
  const std::size_t count = view(bytes, tried, views);
  const RailChoice choice = checked_rail(*shared_.strategy, {views.data(), count}, bytes);
  if (choice.broken_rule != nullptr && shared_.is_choice_told != nullptr &&
      !shared_.is_choice_told->exchange(true, std::memory_order_relaxed)) [[unlikely]] {
    shared_.log->error(
        "the network strategy breaks a rule of sterna/strategy.hpp ({}); packets take the first "
        "rail with room instead",
        choice.broken_rule);
  }
  return choice.rail;
}

void Link::write_header(HeldPacket& packet, LinkKind kind, std::uint16_t rail,
                        std::uint32_t sequence, std::uint64_t now_ns) noexcept {
  LinkHeader header;
  header.kind = kind;
  header.rail = rail;
  header.sequence = sequence;
  header.bytes = static_cast<std::uint32_t>(packet.bytes - kLinkHeaderBytes);
  if (echo_ns_ != 0) {
    LinkRail* const own = kind == LinkKind::data && rails_.size() > 1 ? find_rail(rail) : nullptr;
    const RailEcho::Packet its = own != nullptr ? own->echo.take_came() : RailEcho::Packet{};
    const std::uint64_t came_ns = its.ns != 0 ? its.ns : echo_ns_;
    header.flags |= kLinkHasExpected;
    header.expected = received_.expected();
    header.echo = its.ns != 0 ? its.sequence : echo_;
    header.echo_age_us = static_cast<std::uint32_t>(
        std::min<std::uint64_t>((now_ns - std::min(now_ns, came_ns)) / 1000, ~std::uint32_t{0}));
  }
  header.flags |= shared_.options.has_sums ? kLinkHasSum : 0;
  std::memcpy(packet.data(), &header, kLinkHeaderBytes);
  if (shared_.options.has_sums) {
    header.sum = link_sum(packet.packet(), shared_.key);
    std::memcpy(packet.data(), &header, kLinkHeaderBytes);
  }
}

/// A rail has taken the packet. What its header says has been told, unless more has come since; an
/// ack, with its map, says all of that time.
void Link::note_told(HeldPacket& packet, LinkKind kind) noexcept {
  LinkHeader header;
  std::memcpy(&header, packet.data(), kLinkHeaderBytes);
  // Of a packet that says no more than what is expected next nothing else has come, if that is it.
  const bool says_all = kind == LinkKind::ack ? header.echo == echo_
                                              : header.expected == received_.expected() &&
                                                    !received_.has_holes();
  if ((header.flags & kLinkHasExpected) != 0 && says_all) {
    owed_ = 0;
    owed_bytes_ = 0;
    ack_ns_ = kNever;
  }
}

/// The peer may not know what has come.
void Link::owe_again(std::uint64_t now_ns) noexcept {
  if (echo_ns_ != 0) {
    owed_ = std::max(owed_, 1U);
    ack_ns_ = now_ns;
    note_due(now_ns);
  }
}

bool Link::is_usable(std::uint32_t at, std::uint32_t bytes) const noexcept {
  const LinkRail& rail = rails_[at];
  return rail.state == RailState::up && rail.channel != nullptr && may_take(rail, bytes);
}

/// Whether a packet of `bytes` bytes and others, `packets` in all, may go now.
bool Link::takes_now(std::uint32_t bytes, std::uint32_t packets, std::uint32_t only) noexcept {
  return window_.count() + packets <= kLinkWindow && again_count_ == 0 &&
         (only == kAnyRail ? choose(bytes, 0) != kNoRail : is_usable(only, bytes));
}

/// The packet will go by the rail: counted before it does, so that the next one's choice knows.
void Link::assign(std::uint32_t at, std::uint32_t sequence, const HeldPacket& packet,
                  std::uint64_t now_ns) noexcept {
  LinkRail& rail = rails_[at];
  Sent& sent = window_[sequence];
  sent.rail = static_cast<std::uint16_t>(at);
  sent.sent_ns = now_ns;
  sent.order = rail.next_order++;
  sent.stamp = rail.rate.sent(packet.bytes, now_ns);
  for (LinkRail& other : rails_) {
    other.echo.left_again(sequence);  // Or it was refused there.
  }
  if (sent.tries == 0) {
    rail.echo.left(sequence, packet.bytes, now_ns);
  }
  rail.unheard_ns = std::min(rail.unheard_ns, now_ns);
  rail.bytes += packet.bytes;
}

void Link::unassign(std::uint32_t at, const HeldPacket& packet) noexcept {
  rails_[at].rate.forget(packet.bytes);
  rails_[at].bytes -= packet.bytes;
}

std::uint32_t Link::push(HeldPacket& packet) noexcept {
  const std::uint32_t sequence = window_.next();
  Sent& sent = window_.push();
  sent.packet = &packet;
  sent.is_busy = true;
  return sequence;
}

/// False: the peer has told that it came.
bool Link::keeps(std::uint32_t sequence, const HeldPacket& packet) noexcept {
  return window_.holds(sequence) && window_[sequence].packet == &packet;
}

/// Hands the packet to the rail to which it is assigned. By one thread at a time for each rail.
SendState Link::pass(std::uint32_t at, std::uint32_t sequence, HeldPacket& packet) noexcept {
  const Piece piece = packet.packet();
  const SendState state = rails_[at].channel->try_send({&piece, 1});
  const SpinGuard guard{state_lock_};
  LinkRail& rail = rails_[at];
  if (state == SendState::accepted) {
    ++rail.packets;
    ++statistics_.sent;
    note_told(packet, LinkKind::data);
    if (keeps(sequence, packet)) {
      Sent& sent = window_[sequence];
      sent.is_busy = false;
      note_due_of_sender(sent.sent_ns + patience_ns(rail, 0));
    } else {  // The peer has told meanwhile that it came.
      shared_.pool->release(&packet);
    }
    return state;
  }
  unassign(at, packet);
  if (state == SendState::closed) {
    note_closed(rail);
  }
  return state;
}

/// Sends what the window keeps under `sequence` by a rail that takes it. It is busy, so that its
/// bytes stay even if the news that they came is faster than the driver's call.
SendState Link::send_kept(std::uint32_t sequence, HeldPacket& packet, std::uint32_t only) noexcept {
  std::uint64_t tried = 0;
  for (;;) {
    std::uint32_t at = kNoRail;
    {
      const SpinGuard guard{state_lock_};
      if (!keeps(sequence, packet)) {
        return SendState::closed;  // The peer says that it came, though it has not been sent.
      }
      if (only == kAnyRail) {
        at = choose(packet.bytes, tried);
      } else if (tried == 0 && is_usable(only, packet.bytes)) {
        at = only;
      }
      if (at == kNoRail) {
        return SendState::full;
      }
      const std::uint64_t now_ns = shared_.clock->now_ns();
      assign(at, sequence, packet, now_ns);
      write_header(packet, LinkKind::data, rails_[at].index, sequence, now_ns);
    }
    if (pass(at, sequence, packet) == SendState::accepted) {
      return SendState::accepted;
    }
    tried |= std::uint64_t{1} << at;
  }
}

/// No rail has taken the packet. The last of the window leaves it; one with another behind it stays
/// and is sent again, as if it had been lost: its number is given.
SendState Link::take_back_or_keep(std::uint32_t sequence, HeldPacket& packet) noexcept {
  const SpinGuard guard{state_lock_};
  if (keeps(sequence, packet)) {  // Else the peer says that it came.
    if (sequence + 1 != window_.next()) {
      window_[sequence].is_busy = false;
      window_[sequence].must_go = true;
      ++again_count_;
      note_due_of_sender(shared_.clock->now_ns());
      return SendState::accepted;
    }
    window_.take_back();
  }
  shared_.pool->release(&packet);
  return is_over() ? SendState::closed : SendState::full;
}

SendState Link::send_one(std::span<const Piece> pieces, std::uint32_t bytes,
                         std::uint32_t only) noexcept {
  {
    const SpinGuard guard{state_lock_};
    if (is_over()) {
      return SendState::closed;
    }
    if (!takes_now(bytes, 1, only)) {
      // Room comes with the news of a packet, and that with a packet, or from step().
      return SendState::full;
    }
  }
  HeldPacket* const packet = shared_.pool->copy(pieces);
  std::uint32_t sequence = 0;
  {
    const SpinGuard guard{state_lock_};
    sequence = push(*packet);
  }
  return send_kept(sequence, *packet, only) == SendState::accepted
             ? SendState::accepted
             : take_back_or_keep(sequence, *packet);
}

SendState Link::try_send(std::span<const Piece> pieces) noexcept {
  const Roomed roomed{pieces};
  SendState state;
  {
    const SpinGuard send{send_lock_};
    state = send_one(roomed.all(), roomed.bytes, kAnyRail);
  }
  wake_if_sooner();
  return state;
}

/// `closed` also says that the rail does not work just now.
SendState Link::try_send_by(std::uint16_t index, std::span<const Piece> pieces) noexcept {
  const Roomed roomed{pieces};
  SendState state = SendState::closed;
  {
    const SpinGuard send{send_lock_};
    std::uint32_t at = kNoRail;
    {
      const SpinGuard guard{state_lock_};
      const LinkRail* const rail = find_rail(index);
      const bool is_up = rail != nullptr && rail->state == RailState::up;
      at = is_up ? static_cast<std::uint32_t>(rail - rails_.data()) : kNoRail;
    }
    if (at != kNoRail) {
      state = send_one(roomed.all(), roomed.bytes, at);
    }
  }
  wake_if_sooner();
  return state;
}

/// One of two packets, which is assigned to a rail.
struct Link::Half {
  Link* link;
  std::span<const Piece> pieces;
  HeldPacket* packet;
  std::uint32_t at = kNoRail;
  std::uint32_t sequence = 0;
  SendState state = SendState::full;
};

/// By the thread that has send_lock_, or for it, while it waits: each rail has one caller.
void Link::send_half(void* half) noexcept STERNA_LOCKS_UNCHECKED {
  auto& [link, pieces, packet, at, sequence, state] = *static_cast<Half*>(half);
  PacketPool::fill(*packet, pieces);
  {
    const SpinGuard guard{link->state_lock_};
    link->write_header(*packet, LinkKind::data, link->rails_[at].index, sequence,
                       link->shared_.clock->now_ns());
  }
  state = link->pass(at, sequence, *packet);
}

/// True: both are assigned, to two rails; else nothing has happened.
bool Link::assign_two(Half& first, Half& second) noexcept {
  if (is_over() || !takes_now(first.packet->bytes, 2, kAnyRail)) {
    return false;
  }
  const std::uint64_t now_ns = shared_.clock->now_ns();
  first.at = choose(first.packet->bytes, 0);
  first.sequence = push(*first.packet);
  assign(first.at, first.sequence, *first.packet, now_ns);
  second.at = choose(second.packet->bytes, 0);
  if (second.at == kNoRail || second.at == first.at) {
    unassign(first.at, *first.packet);
    window_.take_back();
    return false;
  }
  second.sequence = push(*second.packet);
  assign(second.at, second.sequence, *second.packet, now_ns);
  return true;
}

/// True: another thread has sent the second.
bool Link::send_halves(Half& first, Half& second, SideWork& side,
                       threads::HandOver& hand_over) noexcept {
  SideWork::Task task{.run = send_half, .object = &second};
  bool is_offered = side.offer(task);
  if (is_offered && !hand_over.hand()) {
    is_offered = !side.take_back(task);  // Nobody searches; but one may just have taken it.
  }
  send_half(&first);
  const bool was_beside = is_offered && !side.take_back(task);
  if (was_beside) {
    Backoff backoff;
    while (!SideWork::is_done(task)) {
      backoff.pause();
    }
  } else {
    send_half(&second);
  }
  for (Half* const half : {&first, &second}) {
    if (half->state != SendState::accepted) {
      half->state = send_kept(half->sequence, *half->packet);  // By any rail.
    }
  }
  for (Half* const half : {&second, &first}) {  // The last of the window first.
    if (half->state != SendState::accepted) {
      half->state = take_back_or_keep(half->sequence, *half->packet);
    }
  }
  return was_beside;
}

Link::Two Link::try_send_two(std::span<const Piece> first, std::span<const Piece> second,
                             SideWork& side, threads::HandOver& hand_over) noexcept {
  const Roomed roomed[2] = {Roomed{first}, Roomed{second}};
  Two two{{SendState::full, SendState::full}, false};
  {
    const SpinGuard send{send_lock_};
    Half halves[2] = {
        {.link = this, .pieces = roomed[0].all(), .packet = shared_.pool->take(roomed[0].all())},
        {.link = this, .pieces = roomed[1].all(), .packet = shared_.pool->take(roomed[1].all())}};
    bool are_two = false;
    {
      const SpinGuard guard{state_lock_};
      are_two = assign_two(halves[0], halves[1]);
    }
    if (are_two) {
      two.was_beside = send_halves(halves[0], halves[1], side, hand_over);
      two.states[0] = halves[0].state;
      two.states[1] = halves[1].state;
    } else {
      shared_.pool->release(halves[0].packet);
      shared_.pool->release(halves[1].packet);
      two.states[0] = send_one(roomed[0].all(), roomed[0].bytes, kAnyRail);
      two.states[1] = two.states[0] == SendState::accepted
                          ? send_one(roomed[1].all(), roomed[1].bytes, kAnyRail)
                          : two.states[0];
    }
  }
  wake_if_sooner();
  return two;
}

}  // namespace sterna::net
