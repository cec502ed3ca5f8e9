// The short way of a message: one packet, made where the driver sends it from and read where it has
// arrived, straight into the buffer of the receive. No request, no queue, no poll. A rank that may
// move takes it too: while it calls it is here, and what it sends goes by a route of this moment.
//
// It is taken only where the long way would do the same: to send, the gate is free and the credit
// there; to receive, no message waits and no other receive is posted, and the next packet of the
// driver is the whole next message of its sender and fits; or what is received waits as a whole
// already. Order, credit and counters are kept in the same places. Everything else is refused
// before anything has happened: send() and receive() do it, and poll() hands over the packet that
// was only looked at.
//
// Where one thread calls (Transport::serve_one_caller) the lock of the rank excludes nobody. It is
// taken because it finds out who breaks that rule, and across calls of the driver because those
// call nobody. Where several do, the sender has the gate as well, and the receiver the poller's
// turn: it is the poller while it looks. Both are tried only, and come before the lock of the rank.
// That a receive is posted or a message waits is asked twice: as a hint, and under the lock.
//
// accept_plain() is what deliver() would do with such a packet that poll() hands over, under the
// same lock, without what it does with the others.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "net/matching/expected.h"
#include "net/matching/matching.h"
#include "net/matching/plain.h"
#include "progress/progress.h"
#include "threads/direct.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kLooksUntilPoll = 256;  // Then comes a round of all sources.
constexpr std::uint32_t kLooksAtOnce = 32;  // Of a user thread, which others may wait for.

/// A message that is here already, by a receive that names its sender and tag, if there is nothing
/// to do but to copy it: it is whole, nobody awaits an answer, and less than `untold_max` of its
/// window has become free since its sender heard of that. As match() would, under the same lock.
[[gnu::noinline]] bool take_waiting(Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                                    std::uint32_t untold_max, Envelope& found) noexcept {
  if (at.message_count == 0 || at.holder_count != 0 || class_of(pattern) != 0) {
    return false;
  }
  Message* const message = find_message(at, pattern);
  if (message == nullptr || message->is_rendezvous || message->is_synchronous ||
      message->is_local || message->is_claimed || message->fault != Fault::none) {
    return false;
  }
  const std::uint64_t bytes = message->envelope.bytes;  // Longer ones are measured.
  Peer* const peer = find_peer(at, pattern.source);
  if (bytes > into.size() || bytes >= kMeasuredPacketBytes || message->arrived_bytes < bytes ||
      peer == nullptr ||
      peer->consumed + credit_of(bytes) - peer->consumed_told >= untold_max) {
    return false;
  }
  remove_message(at, *message);
  copy_bytes(into.data(), message->payload, bytes);
  peer->consumed += credit_of(bytes);
  found = message->envelope;
  trace_message(trace::Kind::receives, found, at.rank);
  free_message(at, message);
  return true;
}

/// A plain message that no receive waits for waits itself, as accept_eager() would have it. False:
/// nothing has happened.
[[gnu::noinline]] bool keep_plain(Endpoint& at, Peer& peer, const FrameHeader& header,
                                  Packet packet) noexcept {
  Message* const message =
      peer.partial_left == 0 ? create_message(at, header.total_bytes) : nullptr;
  if (message == nullptr) {
    return false;
  }
  message->envelope = {header.source, header.context, header.tag, header.total_bytes};
  message->arrived_bytes = header.total_bytes;
  copy_bytes(message->payload, packet.data() + kHeaderBytes, header.total_bytes);
  if (!add_message(at, *message)) {
    free_message(at, message);
    return false;
  }
  take_credit(peer, header.credit);
  ++peer.receive_sequence;
  peer.eager_received += credit_of(header.total_bytes);
  return true;
}

}  // namespace

/// `kSerial`: one thread calls.
template <bool kSerial>
[[gnu::always_inline]] inline bool TransportCore::accept_plain_here(Packet packet) noexcept {
  using Guard = std::conditional_t<kSerial, threads::AloneGuard, threads::OwnedGuard>;
  // Unlikely, as in take_seen().
  FrameHeader header;
  if (packet.size() < kHeaderBytes) [[unlikely]] {
    return false;
  }
  std::memcpy(&header, packet.data(), kHeaderBytes);
  if (!is_plain(header, packet.size()) || header.destination >= limits_.rank_count) [[unlikely]] {
    return false;
  }
  RankEntry& entry = ranks_[header.destination];
  const Guard guard{entry.lock};
  if (entry.state != RankState::here) [[unlikely]] {
    return false;
  }
  Endpoint& at = *entry.endpoint;
  Peer* const peer = find_plain_peer(at, header, options_.eager_window_bytes);
  if (peer == nullptr) [[unlikely]] {
    return false;
  }
  RecvRequest* const request = take_posted(
      entry, at, {header.source, header.context, header.tag}, header.sequence + 1);
  if (request == nullptr) [[unlikely]] {
    return keep_plain(at, *peer, header, packet);
  }
  finish_plain(*peer, header, packet, *request, kSerial);
  return true;
}

bool TransportCore::accept_plain(Packet packet) noexcept {
  return is_serial_ ? accept_plain_here<true>(packet) : accept_plain_here<false>(packet);
}

void Rail::on_packet(std::uint32_t from_node, Packet packet) noexcept {
  // Most packets of a job are this; the others are taken apart, and some of them measured.
  if (packet.size() < kMeasuredPacketBytes && core_.bond_ == nullptr) [[likely]] {
    if (core_.is_serial_ ? core_.accept_plain_here<true>(packet) : core_.accept_plain(packet))
        [[likely]] {
      return;
    }
    if (is_of_nodes(packet) && core_.accept_whole(from_node, packet)) {
      return;
    }
  }
  core_.on_packet(index_, from_node, packet);
}

void TransportCore::receive_run(Endpoint& at, RecvRequest& request, Pattern pattern,
                                std::byte* into, std::uint64_t bytes) noexcept {
  Lane* const lane = is_serial_ && !has_waiting(at) ? find_near_lane(at, pattern) : nullptr;
  if (lane == nullptr) [[unlikely]] {
    receive(at, request, pattern, Buffer::of(into, bytes));
    return;
  }
  {
    const threads::AloneGuard guard{ranks_[at.rank].lock};
    prepare(request, into, bytes);
    post_in_lane(at, *lane, request);
  }
  // As in receive().
  if (is_any_lost_.load(std::memory_order_seq_cst)) [[unlikely]] {
    end_if_lost(at, request, pattern);
  }
}

// Flat: a call of the copy would cost more than the copy.
[[gnu::flatten]] bool TransportCore::try_send_short(Endpoint& from, const Target& target,
                                                    std::span<const std::byte> bytes) noexcept {
  const std::uint32_t route = ranks_[target.rank].route.load(std::memory_order_relaxed);
  if (route == RankEntry::kNoRoute) {
    return false;
  }
  Gate& gate = gates_[route];
  if (bytes.size() > gate.eager_bytes() || bytes.size() > frame_payload_max_) {
    return false;
  }
  // The bell is rung without lock and gate: it is a system call, and who is woken may take the
  // processor.
  if (!is_serial_) [[unlikely]] {
    // Apart from the other branch, which is quicker without its registers.
    return [this, &gate, route, &from, &target, bytes]() __attribute__((noinline)) {
      // The version before the route, as in transmit().
      const std::uint32_t version = gate.route_version();
      if (!gate.is_open() ||
          ranks_[target.rank].route.load(std::memory_order_relaxed) != route) {
        return false;
      }
      Channel* channel = nullptr;
      bool is_sent = false;
      bool must_ring = false;
      {
        const Gate::Turn turn{gate, version};
        channel = turn.idle_channel();
        if (channel == nullptr) {
          return false;
        }
        const threads::OwnedGuard guard{ranks_[from.rank].lock};
        is_sent = send_placed(*channel, from, target, bytes, must_ring);
      }
      if (must_ring) [[unlikely]] {
        channel->ring();
      }
      return is_sent;
    }();
  }
  Channel* const channel = gate.idle_channel();
  if (channel == nullptr) {
    return false;
  }
  bool must_ring = false;
  const bool is_sent = [&] {
    const threads::AloneGuard guard{ranks_[from.rank].lock};
    return send_placed(*channel, from, target, bytes, must_ring);
  }();
  if (must_ring) [[unlikely]] {
    channel->ring();
  }
  return is_sent;
}

/// Under the lock of the rank; nobody else uses the channel.
[[gnu::always_inline]] inline bool TransportCore::send_placed(Channel& channel,
                                                              const Endpoint& from,
                                                              const Target& target,
                                                              std::span<const std::byte> bytes,
                                                              bool& must_ring) noexcept {
  Peer* const peer = find_peer(from, target.rank);
  if (peer == nullptr || !has_credit(*peer, credit_of(bytes.size()), options_.eager_window_bytes)) {
    return false;
  }
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::byte* const place = channel.try_place(static_cast<std::uint32_t>(kHeaderBytes) + size);
  if (place == nullptr) {
    return false;
  }
  // The receiver looks at the line of the header all the time, and each look takes it away: so that
  // is written last.
  copy_bytes(place + kHeaderBytes, bytes.data(), bytes.size());
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Field by field where it is sent from: a copy of fields just written would wait for them.
  auto& header = *::new (place) FrameHeader;
  header.kind = FrameKind::eager;
  header.flags = kFrameHasCredit;
  header.source = from.rank;
  header.destination = target.rank;
  header.sequence = peer->send_sequence;
  header.credit = peer->consumed;
  header.context = target.context;
  header.tag = target.tag;
  header.payload_bytes = size;
  header.total_bytes = size;
  if (channel.send_placed(must_ring) != SendState::accepted) [[unlikely]] {
    return false;
  }
  ++peer->send_sequence;
  peer->eager_sent += credit_of(size);
  peer->consumed_told = peer->consumed;
  counters_.eager.add();
  trace_message(trace::Kind::sends, {from.rank, target.context, target.tag, size}, target.rank);
  return true;
}

/// Nothing waits that a poll would have to do first, and nobody was lost. A hint, beside others.
bool TransportCore::is_nothing_left() noexcept {
  return !has_inner_work() && waiting_gates_.load(std::memory_order_relaxed) == 0 &&
         !is_any_lost_.load(std::memory_order_relaxed);
}

/// The same, and nothing that a receive would have to do.
bool TransportCore::may_look(const Endpoint& at) noexcept {
  return looked_at_ != nullptr && at.message_count == 0 && !has_posted(at) && is_nothing_left();
}

/// By the poller, or the one caller. False: it is time for a round of all sources.
bool TransportCore::count_look() noexcept {
  const bool is_time = looks_since_poll_ == kLooksUntilPoll || sampler_.is_watching();
  looks_since_poll_ = is_time ? 0 : looks_since_poll_ + 1;
  return looks_since_poll_ != 0;
}

bool TransportCore::may_find_more() noexcept {
  Driver::Sight seen;
  return !is_serial_ || looked_at_ == nullptr || rails_.size() != 1 || !is_nothing_left() ||
         !count_look() || looked_at_->sight(0, seen);
}

[[gnu::flatten]] bool TransportCore::try_receive_short(Endpoint& at, const Pattern& pattern,
                                                       std::span<std::byte> into,
                                                       Envelope& found, Fault* fault) noexcept {
  if (!may_look(at)) {
    if (is_serial_) {
      const threads::AloneGuard guard{ranks_[at.rank].lock};
      return take_waiting(at, pattern, into, options_.eager_window_bytes / 2, found);
    }
    // Who waits there cannot be moved.
    return at.is_fixed && fault != nullptr && receive_among(at, pattern, into, found, *fault);
  }
  if (!is_serial_) {
    return receive_beside(at, pattern, into, found);
  }
  if (habits_.is_open()) [[unlikely]] {
    habits_.waits(clock_.now_ns());
  }
  if (!count_look()) {
    return false;
  }
  // Before the message has come, as much as can be: what comes after is its latency.
  const ExpectedPlain expected{at, pattern, options_.eager_window_bytes};
  Driver::Sight seen;
  const bool has_company = has_company_ != nullptr && *has_company_;
  if (!looked_at_->sight(has_company ? 0 : looks_max_, seen)) {
    return false;
  }
  RankEntry& entry = ranks_[at.rank];
  const threads::AloneGuard guard{entry.lock};
  if (ExpectedPlain::Seen plain; expected.is_it(seen.packet, into.size(), plain)) [[likely]] {
    copy_bytes(into.data(), seen.packet.data() + kHeaderBytes, plain.bytes);
    take_plain(*expected.peer, plain.bytes, plain.credit);
    found = {pattern.source, pattern.context, plain.tag, plain.bytes};
    trace_message(trace::Kind::receives, found, at.rank);
  } else if (take_seen<false>(entry, at, pattern, into, seen.packet, found) != Taken::ours) {
    return false;
  }
  looked_at_->pass_sight();
  return true;
}

/// As Driver::sight(), for a caller that may be a user thread: as long as no other one of its
/// worker could run. What has an entity others may wait for elsewhere: it looks for a moment only.
bool TransportCore::sight_beside(Driver::Sight& seen) noexcept {
  const threads::Thread* const me = threads::self();
  if (me == nullptr) {
    return looked_at_->sight(looks_max_, seen);
  }
  std::uint32_t left = me->entity == nullptr ? looks_max_ : std::min(looks_max_, kLooksAtOnce);
  bool is_seen = false;
  while (!is_seen && threads::is_alone(*me)) {
    const std::uint32_t looks = std::min(left, kLooksAtOnce);
    is_seen = looked_at_->sight(looks, seen);
    left -= looks;
    if (left == 0) {
      break;
    }
  }
  return is_seen;
}

[[gnu::noinline]] bool TransportCore::receive_beside(Endpoint& at, const Pattern& pattern,
                                                     std::span<std::byte> into,
                                                     Envelope& found) noexcept {
  progress::Progress* const progress = progress_.load(std::memory_order_acquire);
  const threads::Thread* const me = threads::self();
  if (progress == nullptr || (me != nullptr && !threads::is_alone(*me))) {
    return false;
  }
  const progress::Progress::Turn turn{*progress};
  Driver::Sight seen;
  // Again, in the turn: who has declined to poll since relies on the next round to do what waits.
  if (!turn.is_taken() || !may_look(at) || !count_look() || !sight_beside(seen)) {
    return false;
  }
  fetch(seen.packet);
  {
    RankEntry& entry = ranks_[at.rank];
    const threads::OwnedGuard guard{entry.lock};
    if (at.message_count != 0 || has_posted(at) ||
        take_seen<false>(entry, at, pattern, into, seen.packet, found) != Taken::ours) {
      return false;
    }
  }
  looked_at_->pass_sight();
  return true;
}

}  // namespace sterna::net
