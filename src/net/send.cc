// Messages at their sender: handed over within the node, or to send_remote.cc.
#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"
#include "net/matching/posted.h"
#include "net/peer.h"
#include "net/traced.h"

namespace sterna::net {
namespace {

// Up to here a copy is done under the lock of the receiver's rank: about as long as taking the lock
// twice more.
constexpr std::uint64_t kCopyUnderLockBytes = 4096;

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

}  // namespace

void TransportCore::send(Endpoint& from, SendRequest& request, const Target& target,
                         const Buffer& data, SendMode mode) noexcept {
  check(target.rank < limits_.rank_count, "a message goes to a rank of the job");
  check(target.tag >= 0, "the tag of a message is not negative");
  check(target.priority <= kPriorityMax, "a priority is one of a few");
  request.done.reset();
  request.fault = Fault::none;
  request.lacked_room = false;
  if (!from.is_fixed) {
    count_message(from, data.bytes);
  }
  if (mode == SendMode::standard && data.extents == nullptr && !is_left(request, target.rank) &&
      try_send_short(from, target, {data.address, data.bytes})) {
    request.done.complete_alone();
    return;
  }
  request.mode = mode;
  request.target = target;
  request.data = data;
  request.id = kNoId;
  request.is_withdrawn = request.is_trial = false;
  trace_message(trace::Kind::sends, {from.rank, target.context, target.tag, data.bytes},
                target.rank);
  const std::uint32_t route = ranks_[target.rank].route.load(std::memory_order_relaxed);
  if (route != RankEntry::kNoRoute) {
    send_remote(from, request, route);
  } else if (!send_local(from, request)) {
    send_remote(from, request, ranks_.node_of(target.rank));
  }
}

/// Its sender goes on with something else, and others may send it.
bool TransportCore::is_left(const SendRequest& request, std::uint32_t to_rank) noexcept {
  const std::uint32_t route = ranks_[to_rank].route.load(std::memory_order_relaxed);
  return request.may_be_left && !is_serial_ && route != RankEntry::kNoRoute &&
         !gates_[route].sends_at_once();
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

HandOver TransportCore::hand_over(RankEntry& entry, Endpoint& to, std::uint32_t from_rank,
                                  SendRequest& request, RecvRequest*& receive) noexcept {
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
  request.head_bytes = 0;  // Of an earlier message, perhaps; who clears this one may have moved.
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

}  // namespace sterna::net
