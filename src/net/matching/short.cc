// The short way of a message of a process: one packet, made where the driver sends it from and read
// where it has arrived, straight into the buffer of the receive. No request, no queue, no poll.
//
// It is taken only where the long way would do the same: to send, the gate is free and the credit
// there; to receive, no message waits and no other receive is posted, and the next packet of the
// driver is the whole next message of its sender and fits. Order, credit and counters are kept in
// the same places. Everything else is refused before anything has happened: send() and receive() do
// it, and poll() hands over the packet that was only looked at.
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

#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/expected.h"
#include "net/matching/matching.h"
#include "net/peer.h"
#include "net/traced.h"
#include "progress/progress.h"
#include "threads/direct.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kLooksUntilPoll = 256;  // Then comes a round of all sources.
constexpr std::size_t kFetchedMax = 1024;
constexpr std::uint32_t kLooksAtOnce = 32;  // Of a user thread, which others may wait for.

bool has_posted(const Endpoint& at) noexcept {
  return (at.posted_count[0] | at.posted_count[1] | at.posted_count[2] | at.posted_count[3]) != 0;
}

bool fits(const Pattern& pattern, const FrameHeader& header) noexcept {
  return header.context == pattern.context &&
         (header.source == pattern.source || pattern.source == kAnySource) &&
         (header.tag == pattern.tag || pattern.tag == kAnyTag);
}

/// A whole message in one packet of `bytes` bytes, of the plain kind that send() makes.
bool is_plain(const FrameHeader& header, std::size_t bytes) noexcept {
  return header.kind == FrameKind::eager && header.flags == kFrameHasCredit && header.hops == 0 &&
         header.priority <= kPriorityMax && header.tag >= 0 &&
         header.payload_bytes == bytes - kHeaderBytes && header.payload_bytes == header.total_bytes;
}

/// To take a lock waits for all loads before it, and what comes after it waits for the lock: the
/// lines of a packet are on their way meanwhile.
void fetch(Packet packet) noexcept {
  const std::size_t bytes = std::min(packet.size(), kFetchedMax);
  for (std::size_t at = kCacheLineBytes; at < bytes; at += kCacheLineBytes) {
    __builtin_prefetch(packet.data() + at);
  }
}

/// As receive() begins.
void prepare(RecvRequest& request, std::byte* into, std::uint64_t bytes) noexcept {
  request.may_be_written = false;  // Of its last use.
  check(request.state == RecvRequest::State::idle, "a receive request is used once at a time");
  request.done.reset();
  request.fault = Fault::none;
  request.id = kNoId;
  // Field by field: a copy of what was just written in parts would wait for them.
  request.data.address = into;
  request.data.bytes = bytes;
  request.data.extents = nullptr;
  request.data.extent_count = 0;
}

/// A message of so many bytes is taken and consumed at once.
[[gnu::always_inline]] inline void take_plain(Peer& peer, std::uint64_t bytes,
                                              std::uint32_t told_credit) noexcept {
  const std::uint32_t credit = credit_of(bytes);
  take_credit(peer, told_credit);
  ++peer.receive_sequence;
  peer.eager_received += credit;
  peer.consumed += credit;
  peer.partial_left = 0;
}

}  // namespace

/// The peer of a plain message whose turn it is; null: not that, or there is more to do than to
/// take it: it goes beyond the credit of its sender, or it is time to tell that of ours.
[[gnu::always_inline]] inline Peer* TransportCore::find_plain_peer(
    const Endpoint& at, const FrameHeader& header) noexcept {
  Peer* const peer = find_peer(at, header.source);
  if (peer == nullptr || turn_of(*peer, header.sequence) != Turn::now || peer->early != nullptr) {
    return nullptr;
  }
  const std::uint32_t credit = credit_of(header.total_bytes);
  const std::uint32_t window = options_.eager_window_bytes;
  const bool is_more = header.total_bytes > window ||
                       peer->eager_received + credit - peer->consumed > window ||
                       peer->consumed + credit - peer->consumed_told >= window / 2;
  return is_more ? nullptr : peer;
}

bool TransportCore::accept_plain(Packet packet) noexcept {
  FrameHeader header;
  if (packet.size() < kHeaderBytes) {
    return false;
  }
  std::memcpy(&header, packet.data(), kHeaderBytes);
  if (!is_plain(header, packet.size()) || header.destination >= limits_.rank_count) {
    return false;
  }
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  Peer* const peer =
      entry.state == RankState::here ? find_plain_peer(*entry.endpoint, header) : nullptr;
  RecvRequest* const request =
      peer != nullptr
          ? take_posted(entry, *entry.endpoint, {header.source, header.context, header.tag},
                        header.sequence + 1)
          : nullptr;
  if (request == nullptr) {
    return false;
  }
  take_plain(*peer, header.total_bytes, header.credit);
  request->envelope = {header.source, header.context, header.tag, header.total_bytes};
  request->message_bytes = request->received_bytes = header.total_bytes;
  trace_message(trace::Kind::receives, request->envelope, header.destination);
  if (header.total_bytes > request->data.bytes) {
    request->envelope.bytes = request->data.bytes;
    request->fault = Fault::truncated;
  }
  copy_in(request->data, 0, packet.data() + kHeaderBytes, request->envelope.bytes);
  request->state = RecvRequest::State::idle;
  is_serial_ ? request->done.complete_alone() : request->done.complete();
  return true;
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
      if (!from.is_fixed || !gate.is_open() ||
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
  copy_bytes(place + kHeaderBytes, bytes.data(), bytes.size());
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

[[gnu::flatten]] bool TransportCore::try_receive_short(Endpoint& at, const Pattern& pattern,
                                                       std::span<std::byte> into,
                                                       Envelope& found) noexcept {
  if (!at.is_fixed || !may_look(at)) {
    return false;
  }
  if (!is_serial_) {
    return receive_beside(at, pattern, into, found);
  }
  if (wait_habit_.is_open()) [[unlikely]] {
    wait_habit_.waits(clock_.now_ns());
  }
  if (!count_look()) {
    return false;
  }
  // Before the message has come, as much as can be: what comes after is its latency.
  const ExpectedPlain expected{at, pattern, options_.eager_window_bytes};
  Driver::Sight seen;
  if (!looked_at_->sight(looks_max_, seen)) {
    return false;
  }
  const threads::AloneGuard guard{ranks_[at.rank].lock};
  if (ExpectedPlain::Seen plain; expected.is_it(seen.packet, into.size(), plain)) [[likely]] {
    copy_bytes(into.data(), seen.packet.data() + kHeaderBytes, plain.bytes);
    take_plain(*expected.peer, plain.bytes, plain.credit);
    found = {pattern.source, pattern.context, plain.tag, plain.bytes};
    trace_message(trace::Kind::receives, found, at.rank);
  } else if (!accept_short(at, pattern, into, seen.packet, found)) {
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
    const threads::OwnedGuard guard{ranks_[at.rank].lock};
    if (at.message_count != 0 || has_posted(at) ||
        !accept_short(at, pattern, into, seen.packet, found)) {
      return false;
    }
  }
  looked_at_->pass_sight();
  return true;
}

/// Under the lock of the rank.
[[gnu::always_inline]] inline bool TransportCore::accept_short(const Endpoint& at,
                                                               const Pattern& pattern,
                                                               std::span<std::byte> into,
                                                               Packet packet,
                                                               Envelope& found) noexcept {
  FrameHeader header;
  if (packet.size() < kHeaderBytes) {
    return false;
  }
  std::memcpy(&header, packet.data(), kHeaderBytes);
  if (!is_plain(header, packet.size()) || header.destination != at.rank || !fits(pattern, header) ||
      header.total_bytes > into.size()) {
    return false;
  }
  Peer* const peer = find_plain_peer(at, header);
  if (peer == nullptr) {
    return false;
  }
  copy_bytes(into.data(), packet.data() + kHeaderBytes, header.total_bytes);
  take_plain(*peer, header.total_bytes, header.credit);
  found = {header.source, header.context, header.tag, header.total_bytes};
  trace_message(trace::Kind::receives, found, at.rank);
  return true;
}

}  // namespace sterna::net
