// The parts of direct messages that are not met every time. See direct.h.
#include "net/matching/direct.h"

#include "net/core.h"
#include "net/matching/held.h"
#include "net/peer.h"

namespace sterna::net {

/// As send_local(): no message overtakes frames that went over the network before. Whether `to` has
/// taken all of those.
bool DirectWay::has_taken_all(const Endpoint& to, const Endpoint& from) noexcept {
  const Peer* const sent = find_peer(from, to.rank);
  if (sent == nullptr) {
    return true;
  }
  if (keeps(*sent)) {
    return false;
  }
  const Peer* const taken = find_peer(to, from.rank);
  return (taken != nullptr ? taken->receive_sequence : 0) == sent->send_sequence;
}

RecvRequest* DirectWay::take_posted(Endpoint& to, Pattern exact) noexcept {
  return take_receive(to, exact);
}

/// The message waits at its receiver. False: no recycled memory for it, or a probe waits that is to
/// be woken, which a section must not do: the usual way tells it.
bool DirectWay::store(Endpoint& to, Envelope envelope, const std::byte* data) noexcept {
  const CoreOptions& options = core_.options_;
  if (envelope.bytes > kSmallMessageBytes || to.free_messages == nullptr ||
      envelope.bytes > options.local_eager_bytes ||
      to.local_bytes + credit_of(envelope.bytes) > options.local_window_bytes ||
      find_lane(to, {envelope.source, envelope.context, envelope.tag}) == nullptr ||
      to.is_indexed[1] || to.is_indexed[2] || to.is_indexed[3] || to.watches != nullptr) {
    return false;
  }
  Message* message = create_message(to, envelope.bytes);
  message->envelope = envelope;
  message->is_local = true;
  message->arrived_bytes = envelope.bytes;
  copy_short(message->payload, data, envelope.bytes);
  check(add_message(to, *message), "a message that has its lane is added without memory");
  to.local_bytes += credit_of(envelope.bytes);
  return true;
}

/// A message that is there.
DirectWay::Found DirectWay::take(Endpoint& at, RecvRequest& request, Pattern pattern) noexcept {
  const std::uint32_t pattern_class = class_of(pattern);
  if (pattern_class != 0 && !at.is_indexed[pattern_class]) {
    return Found::refused;  // An index would have to be made.
  }
  Message* const message = find_message(at, pattern);
  if (message == nullptr) {
    return Found::nothing;
  }
  if (!message->is_local || !message->is_small || message->is_rendezvous) {
    return Found::refused;
  }
  remove_message(at, *message);
  fill(at.rank, request, message->envelope, message->payload);
  at.local_bytes -= credit_of(message->envelope.bytes);
  free_message(at, message);
  request.done.reset();
  request.done.complete_alone();
  return Found::taken;
}

/// The worker of `me`, the current thread, shall own the lock of its rank.
void DirectWay::claim(RankEntry& entry, threads::Thread& me) noexcept {
  if (!threads::DirectSection::kIsPossible || !entry.lock.should_claim()) {
    return;
  }
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state == RankState::here) {
    entry.lock.claim(*me.worker.load(std::memory_order_relaxed));
  }
}

threads::Worker* DirectWay::worker_of(std::uint32_t rank) noexcept {
  RankEntry& entry = entries_[rank];
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state != RankState::here || entry.endpoint->is_fixed) {
    return nullptr;
  }
  // Mapped as long as it is here.
  const threads::Thread* const thread = memory::rank_slot_address(rank)->thread;
  return thread == nullptr ? nullptr : thread->worker.load(std::memory_order_relaxed);
}

void TransportCore::interrupt(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  threads::Waiter waiter;
  {
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state == RankState::here && entry.endpoint->parked != nullptr) {
      waiter = entry.endpoint->parked->done.withdraw_suspended();
    }
  }
  if (waiter) {
    waiter.signal();
  }
}

}  // namespace sterna::net
