// Messages at their sender: handed over within the node, or put into frames.
#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/peer.h"
#include "net/traced.h"

namespace sterna::net {
namespace {

// Up to here a copy is done under the lock of the receiver's rank: about as long as taking the lock
// twice more.
constexpr std::uint64_t kCopyUnderLockBytes = 4096;
// An eager message is cut into frames of whole payload: each must fit the pieces of a packet.
constexpr std::uint32_t kEagerExtentsMax = kPacketPiecesMax - 2;

/// For the balancer, which takes and resets the counts of mobile ranks.
void count_message(const Endpoint& from, std::uint64_t bytes) noexcept {
  if (memory::RankSlot* slot = memory::rank_slot_of(&from); slot != nullptr) {
    slot->messages.fetch_add(1, std::memory_order_relaxed);
    slot->message_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
}

void start_receive(RecvRequest& receive, const Envelope& envelope) noexcept {
  receive.message_bytes = envelope.bytes;
  receive.envelope = envelope;
  if (envelope.bytes > receive.data.bytes) [[unlikely]] {
    receive.envelope.bytes = receive.data.bytes;
    receive.fault = Fault::truncated;
  }
}

// Up to here the receiver's node may read a message that its sender waits for.
constexpr std::uint64_t kReadBytesMax = 256 << 10;

}  // namespace

void TransportCore::send(Endpoint& from, SendRequest& request, const Target& target,
                         const Buffer& data, SendMode mode) noexcept {
  check(target.rank < limits_.rank_count, "a message goes to a rank of the job");
  check(target.tag >= 0, "the tag of a message is not negative");
  check(target.priority <= kPriorityMax, "a priority is one of a few");
  request.done.reset();
  request.fault = Fault::none;
  if (mode == SendMode::standard && data.extents == nullptr &&
      (is_serial_ || (from.is_fixed && !request.may_be_left)) &&
      try_send_short(from, target, {data.address, data.bytes})) {
    request.done.complete_alone();
    return;
  }
  request.mode = mode;
  request.target = target;
  request.data = data;
  request.id = kNoId;
  request.is_withdrawn = false;
  if (!from.is_fixed) {
    count_message(from, data.bytes);
  }
  trace_message(trace::Kind::sends, {from.rank, target.context, target.tag, data.bytes},
                target.rank);
  const std::uint32_t route = ranks_[target.rank].route.load(std::memory_order_relaxed);
  if (route != RankEntry::kNoRoute) {
    send_remote(from, request, route);
  } else if (!send_local(from, request)) {
    send_remote(from, request, ranks_.node_of(target.rank));
  }
}

/// Whether all frames that `from` has sent to `to_rank` were taken: read what was sent (false: no
/// frame ever), to be compared under the lock of the receiver. `is_kept`: messages before this one
/// wait here.
bool TransportCore::is_caught_up(const Endpoint& from, std::uint32_t to_rank,
                                 std::uint32_t& sequence, bool& is_kept) noexcept {
  RankEntry& entry = ranks_[from.rank];
  const threads::OwnedGuard guard{entry.lock};
  const Peer* peer = find_peer(from, to_rank);
  sequence = peer != nullptr ? peer->send_sequence : 0;
  is_kept = peer != nullptr && keeps(*peer);
  return peer == nullptr;
}

/// False: the receiver is not here or has no room, or what was sent before is still on its way.
bool TransportCore::send_local(Endpoint& from, SendRequest& request) noexcept {
  std::uint32_t sequence = 0;
  bool is_free = true;
  bool is_kept = false;
  // Relaxed: a peer that this thread made is seen by it, others do not order messages with us.
  if (std::atomic_ref<std::uint32_t>{from.peer_count}.load(std::memory_order_relaxed) != 0) {
    is_free = is_caught_up(from, request.target.rank, sequence, is_kept);
  }
  if (is_kept) [[unlikely]] {
    return false;
  }
  RankEntry& entry = ranks_[request.target.rank];
  RecvRequest* receive = nullptr;
  HandOver state;
  {
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state != RankState::here) {
      return false;
    }
    if (!is_free) {
      const Peer* peer = find_peer(*entry.endpoint, from.rank);
      if ((peer != nullptr ? peer->receive_sequence : 0) != sequence) {
        return false;
      }
    }
    state = hand_over(entry, *entry.endpoint, from.rank, request, receive);
  }
  if (state == HandOver::no_room) [[unlikely]] {
    return announce_local(from, request);
  }
  counters_.local.add();
  if (state == HandOver::must_copy) {
    deliver_now(request.target.rank, *receive, request);
  }
  request.done.complete();
  return true;
}

TransportCore::HandOver TransportCore::hand_over(RankEntry& entry, Endpoint& to,
                                                 std::uint32_t from_rank, SendRequest& request,
                                                 RecvRequest*& receive) noexcept {
  const Target& target = request.target;
  const std::uint64_t bytes = request.data.bytes;
  const Envelope envelope{from_rank, target.context, target.tag, bytes};
  receive = take_posted(entry, to, {from_rank, target.context, target.tag}, 0);
  if (receive != nullptr) {
    start_receive(*receive, envelope);
    trace_message(trace::Kind::receives, envelope, target.rank);
    if (receive->envelope.bytes <= kCopyUnderLockBytes) [[likely]] {
      copy_between(receive->data, request.data, receive->envelope.bytes);
      receive->done.complete();
      return HandOver::done;
    }
    ++entry.pins;
    receive->state = RecvRequest::State::receiving;
    return HandOver::must_copy;
  }
  if (bytes > options_.local_eager_bytes || request.mode == SendMode::synchronous ||
      to.local_bytes + credit_of(bytes) > options_.local_window_bytes) {
    return HandOver::no_room;
  }
  Message* message = create_message(to, bytes);
  if (message == nullptr) {
    return HandOver::no_room;
  }
  message->envelope = envelope;
  message->is_local = true;
  message->arrived_bytes = bytes;
  copy_out(request.data, 0, message->payload, bytes);
  if (!add_message(to, *message)) {
    free_message(to, message);
    return HandOver::no_room;
  }
  to.local_bytes += credit_of(bytes);
  return HandOver::done;
}

/// A copy that takes long, into the memory of a rank that is pinned for it.
void TransportCore::deliver_now(std::uint32_t rank, RecvRequest& receive,
                                SendRequest& request) noexcept {
  copy_between(receive.data, request.data, receive.envelope.bytes);
  RankEntry& entry = ranks_[rank];
  const threads::OwnedGuard guard{entry.lock};
  --entry.pins;
  receive.state = RecvRequest::State::idle;
  receive.done.complete();
}

/// The message waits at its sender; the receiver gets its envelope. False: it has left, or has no
/// room.
bool TransportCore::announce_local(Endpoint& from, SendRequest& request) noexcept {
  const Target& target = request.target;
  {
    RankEntry& entry = ranks_[from.rank];
    const threads::OwnedGuard guard{entry.lock};
    request.id = add_pending(from, PendingEntry::Kind::send, &request, target.rank);
  }
  if (request.id == kNoId) {
    request.fault = Fault::no_memory;
    request.done.complete();
    return true;
  }
  Outcome outcome;
  Announced state = Announced::no_room;
  {
    RankEntry& entry = ranks_[target.rank];
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state == RankState::here) {
      Endpoint& to = *entry.endpoint;
      // A receive may have been posted since we looked.
      Frame frame;
      frame.header.kind = FrameKind::rendezvous;
      frame.header.source = from.rank;
      frame.header.destination = target.rank;
      frame.header.context = target.context;
      frame.header.tag = target.tag;
      frame.header.total_bytes = request.data.bytes;
      frame.header.cookie = request.id;
      state = accept_rendezvous(entry, to, nullptr, frame, outcome);
    }
  }
  if (state == Announced::taken) {
    counters_.local.add();
    act(target.rank, outcome);
    return true;
  }
  {
    RankEntry& entry = ranks_[from.rank];
    const threads::OwnedGuard guard{entry.lock};
    remove_pending(from, request.id);
    request.id = kNoId;
  }
  if (state == Announced::no_memory) {
    request.fault = Fault::no_memory;
    request.done.complete();
  }
  return state == Announced::no_memory;
}

void TransportCore::send_remote(Endpoint& from, SendRequest& request, std::uint32_t node) noexcept {
  const Target& target = request.target;
  const std::uint32_t to_rank = target.rank;
  const std::uint64_t bytes = request.data.bytes;
  Gate& gate = gates_[node];
  // A rank that is on its way to or from here has no gate: any threshold will do.
  const bool can_be_read = from.is_fixed && request.data.extents == nullptr && gate.is_direct();
  // Who does not wait computes, perhaps, and would fill no packets meanwhile. Who waits, now or by
  // his habit at once, writes long ones himself, so that his model learns what that costs.
  const bool is_left = can_be_read && !request.is_awaited;
  const bool may_compute = is_left && !(is_serial_ && wait_habit_.waits_at_once());
  std::uint64_t eager_bytes = !gate.is_open() ? options_.local_eager_bytes
                              : is_left       ? gate.unawaited_eager_bytes()
                                              : gate.eager_bytes();
  if (is_left && !may_compute && wait_habit_.is_open()) {
    // Of several that are started at once some come before their receives, to be copied once more.
    eager_bytes = std::min<std::uint64_t>(eager_bytes, frame_payload_max_);
  }
  const bool is_synchronous = request.mode == SendMode::synchronous;
  const std::uint32_t frame_bytes = gate.frame_bytes(bytes, frame_payload_max_);
  // Frames of one message do not overtake others: an urgent one of several is announced, whose
  // bytes do, where frames wait.
  const bool may_overtake =
      target.priority == 0 || bytes <= frame_bytes || !gate.is_open() || gate.is_empty();
  bool is_eager =
      bytes <= eager_bytes && request.data.extent_count <= kEagerExtentsMax && may_overtake;
  FrameHeader header;
  std::uint32_t frame_count = 1;
  std::uint32_t head_bytes = 0;
  bool is_kept = false;
  {
    RankEntry& entry = ranks_[from.rank];
    const threads::OwnedGuard guard{entry.lock};
    Peer* peer = make_peer(from, target.rank);
    const std::uint32_t window = options_.eager_window_bytes;
    is_eager = is_eager && peer != nullptr && has_credit(*peer, credit_of(bytes), window);
    if (peer != nullptr && (!is_eager || is_synchronous)) {
      request.id = add_pending(from, PendingEntry::Kind::send, &request, target.rank);
    }
    is_kept = !is_eager && peer != nullptr && !has_credit(*peer, credit_of(0), window);
    if (is_kept && request.id != kNoId) [[unlikely]] {
      is_kept = keep_back(from, *peer, request);
    }
    if (peer == nullptr || ((!is_eager || is_synchronous) && request.id == kNoId)) {
      request.fault = Fault::no_memory;
      request.done.complete();
      return;
    }
    header.cookie = request.id;
    if (is_eager) {
      frame_count =
          bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + frame_bytes - 1) / frame_bytes);
    } else if (!is_kept) {
      head_bytes = head_bytes_of(from, request, *peer, gate);
    }
    if (!is_kept) {
      request.head_bytes = head_bytes;
    }
    if (target.priority != 0 && from.rank == invitations_.rank()) {
      invitations_.stop_sending();
    }
    if (!is_kept) [[likely]] {
      peer->eager_sent += credit_of(is_eager ? bytes : head_bytes);
      header.sequence = peer->send_sequence;
      peer->send_sequence += frame_count + (head_bytes != 0 ? 1 : 0);
      tell_credit(*peer, header);
    }
  }
  if (is_kept) [[unlikely]] {
    announce_kept(from, header.cookie, to_rank);
    return;
  }
  const bool is_shorter_way = bytes <= kReadBytesMax && bytes >= gate.direct_from_bytes();
  const bool is_readable = !is_eager && can_be_read && (may_compute || is_shorter_way);
  const std::uint64_t word =
      is_readable ? reinterpret_cast<std::uint64_t>(request.data.address) : head_bytes;
  header.kind = is_eager ? FrameKind::eager : FrameKind::rendezvous;
  header.flags |= is_eager && is_synchronous ? kFrameSynchronous
                  : is_readable              ? kFrameReadable
                  : head_bytes != 0          ? kFrameHeaded
                                             : 0;
  header.source = from.rank;
  header.destination = target.rank;
  header.context = target.context;
  header.tag = target.tag;
  header.priority = target.priority;
  header.total_bytes = bytes;
  (is_eager ? counters_.eager : counters_.rendezvous).add();
  // The answer may complete a synchronous or announced send at any moment from here on: the
  // request is not ours any more then.
  const bool is_ours = is_eager && !is_synchronous;
  const Buffer whole = request.data;
  const Buffer data = is_eager ? whole : word != 0 ? Buffer::of(&word, sizeof word) : Buffer{};
  const Sender sender = is_ours && request.may_be_left ? Sender::goes_on : Sender::waits;
  const std::uint32_t sequence = header.sequence;
  bool is_sent = true;
  if (head_bytes != 0 && head_bytes == bytes) {
    const std::size_t gone = send_with_head(header, data, whole);
    frame_count = gone == 0 ? 1 : 0;
    header.sequence += gone == 0 ? 0 : 1;
    head_bytes = gone == 2 ? 0 : head_bytes;
  }
  for (std::uint64_t offset = 0; frame_count-- != 0 && is_sent; offset += frame_bytes) {
    header.payload_bytes =
        is_eager ? static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - offset, frame_bytes))
                 : static_cast<std::uint32_t>(data.bytes);
    if (frame_count != 0 && gate.has_several_rails() &&
        transmit_two(header, data, offset, frame_bytes, is_sent)) {
      --frame_count;
      offset += frame_bytes;
    } else {
      is_sent = transmit(header, data, offset, sender);
    }
    header.kind = FrameKind::eager_more;
    ++header.sequence;
  }
  if (head_bytes != 0 && is_sent) {
    counters_.heads.add();
    header.kind = FrameKind::head;
    header.flags &= kFrameHasCredit;
    header.payload_bytes = head_bytes;
    is_sent = transmit(header, whole);
  }
  if (is_ours) {
    request.fault = is_sent ? Fault::none : Fault::peer_lost;
    request.done.complete_alone();  // Nobody waits before we return.
  } else if (!is_sent) {
    end_pending_send(from, header.cookie, target.rank, Fault::peer_lost);
  } else if (!is_eager && gate.is_direct() && from.rank == invitations_.rank()) {
    tell_announced(from, header.cookie, target.rank, sequence);
  }
  if (is_left && is_serial_ && bytes > frame_payload_max_) {
    wait_habit_.started(clock_.now_ns());
  }
}

/// The next two frames of a message in pieces, at once by two rails; `header` is then that of the
/// second. False: nothing has happened.
bool TransportCore::transmit_two(FrameHeader& header, const Buffer& data, std::uint64_t offset,
                                 std::uint32_t frame_bytes, bool& is_sent) noexcept {
  const std::atomic<std::uint32_t>& route_of_rank = ranks_[header.destination].route;
  const std::uint32_t route = route_of_rank.load(std::memory_order_relaxed);
  if (route == RankEntry::kNoRoute || route == node_ || data.extents != nullptr) {
    return false;
  }
  const std::uint32_t version = gates_[route].route_version();  // First: as in transmit().
  if (route_of_rank.load(std::memory_order_relaxed) != route) {
    return false;
  }
  FrameHeader second = header;
  second.kind = FrameKind::eager_more;
  ++second.sequence;
  second.payload_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(data.bytes - offset - header.payload_bytes, frame_bytes));
  const Piece pieces[2][2] = {
      {std::as_bytes(std::span{&header, 1}), {data.address + offset, header.payload_bytes}},
      {std::as_bytes(std::span{&second, 1}),
       {data.address + offset + header.payload_bytes, second.payload_bytes}}};
  Gate::TwoResults two{};
  if (!gates_[route].try_send_two(pieces[0], pieces[1], version, two)) {
    return false;
  }
  if (two.was_beside) {
    counters_.handed.add();
  }
  is_sent = two.results[0] != Gate::SendResult::lost && two.results[1] != Gate::SendResult::lost;
  header = second;
  return true;
}

/// The message was announced: what is said of it from now on comes after that. Unless it has been
/// answered.
void TransportCore::tell_announced(Endpoint& from, std::uint64_t id, std::uint32_t peer,
                                   std::uint32_t sequence) noexcept {
  const threads::OwnedGuard guard{ranks_[from.rank].lock};
  if (void* const request = find_pending(from, id, PendingEntry::Kind::send, peer)) {
    invitations_.announce(*static_cast<SendRequest*>(request), sequence);
  }
}

}  // namespace sterna::net
