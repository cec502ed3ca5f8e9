// Messages between ranks of one worker, from the code of a rank: no thread-local storage, no
// allocation (threads/direct.h). Matching is that of the other ways (matching.h), under the same
// locks, so their order is one order: a message is taken by the oldest receive that fits, whichever
// way either came. The locks cost nothing here, because the worker owns those of the ranks that it
// runs (threads/owned_lock.h): all is done in one section of the worker, which ends with the switch
// to another rank.
//
// A rank that waits here is suspended, with no word for a token. What must interrupt it (an order
// to move) changes a word first and then calls interrupt(), which takes the lock of the rank; the
// rank reads the word in the section in which it posts. So either it sees the order and does not
// wait, or interrupt() finds Endpoint::parked. Who completes the receive has taken it from there
// under the lock: exactly one of the two wakes the rank. An interrupted receive stays where it is:
// its rank posts nothing else before it is done.
#include "threads/direct.h"

#include <cstring>

#include "base/probe.h"
#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "net/core.h"
#include "net/matching.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// Its one thread writes; a sum for reports.
void count_message(memory::RankSlot& slot, std::uint64_t bytes) noexcept {
  const auto add = [](std::atomic<std::uint64_t>& sum, std::uint64_t by) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  };
  add(slot.messages, 1);
  add(slot.message_bytes, bytes);
}

/// As memcpy, which is a call.
void copy_short(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  if (bytes == sizeof(std::uint64_t)) [[likely]] {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

void fill(std::uint32_t rank, RecvRequest& request, const Envelope& envelope,
          const std::byte* bytes) noexcept {
  STERNA_PROBE4(message_receive, envelope.source, rank, envelope.bytes, envelope.tag);
  request.message_bytes = envelope.bytes;
  request.envelope = envelope;
  if (envelope.bytes > request.data.bytes) [[unlikely]] {
    request.envelope.bytes = request.data.bytes;
    request.fault = Fault::truncated;
  }
  if (request.data.extents == nullptr) [[likely]] {
    copy_short(request.data.address, bytes, request.envelope.bytes);
  } else {
    copy_in(request.data, 0, bytes, request.envelope.bytes);
  }
}

/// No receive of the endpoint is in a lane.
bool is_parked_alone(const Endpoint& at) noexcept {
  return (at.posted_count[0] | at.posted_count[1] | at.posted_count[2] | at.posted_count[3]) == 0;
}

}  // namespace

bool Transport::try_send_direct(Endpoint& from, memory::RankSlot& slot, const Target& target,
                                std::span<const std::byte> bytes,
                                threads::Waiter& receiver) noexcept {
  return core_->try_send_direct(from, slot, target, bytes, receiver);
}

DirectReceive Transport::receive_direct(Endpoint& at, memory::RankSlot& slot,
                                        std::int32_t move_request, RecvRequest& request,
                                        const Pattern& pattern, const Buffer& data) noexcept {
  return core_->receive_direct(at, slot, move_request, request, pattern, data);
}

// The lock of an entry is held by owning it, which clang cannot follow.
bool TransportCore::try_send_direct(Endpoint& from, memory::RankSlot& slot, const Target& target,
                                    std::span<const std::byte> bytes,
                                    threads::Waiter& receiver) noexcept STERNA_LOCKS_UNCHECKED {
  RankEntry& entry = ranks_[target.rank];
  threads::DirectSection section{*slot.thread};
  if (!section.owns(entry.lock) || entry.state != RankState::here) {
    return false;
  }
  Endpoint& to = *entry.endpoint;
  if (from.peer_count != 0 && (!section.owns(ranks_[from.rank].lock) || !has_taken_all(to, from)))
      [[unlikely]] {
    return false;
  }
  const Envelope envelope{from.rank, target.context, target.tag, bytes.size()};
  const Pattern exact{from.rank, target.context, target.tag};
  RecvRequest* const receive =
      is_parked_alone(to) ? take_parked(to, exact) : take_receive(to, exact);
  if (receive != nullptr) {
    fill(target.rank, *receive, envelope, bytes.data());
    receiver = receive->done.complete_unsignalled();
    if (threads::Thread* const waiting = receiver.suspended_thread();
        waiting != nullptr && section.try_wake(*waiting)) [[likely]] {
      receiver = {};
    }
  } else if (!store_direct(to, envelope, bytes)) {
    return false;
  }
  STERNA_PROBE4(message_send, from.rank, target.rank, bytes.size(), target.tag);
  counters_.local.add();
  count_message(slot, bytes.size());
  return true;
}

/// As send_local(): no message overtakes frames that went over the network before. Whether `to` has
/// taken all of those.
bool TransportCore::has_taken_all(const Endpoint& to, const Endpoint& from) noexcept {
  const Peer* const sent = find_peer(from, to.rank);
  if (sent == nullptr) {
    return true;
  }
  const Peer* const taken = find_peer(to, from.rank);
  return (taken != nullptr ? taken->receive_sequence : 0) == sent->send_sequence;
}

/// The message waits at its receiver. False: no recycled memory for it.
bool TransportCore::store_direct(Endpoint& to, const Envelope& envelope,
                                 std::span<const std::byte> bytes) noexcept {
  if (bytes.size() > kSmallMessageBytes || to.free_messages == nullptr ||
      bytes.size() > options_.local_eager_bytes ||
      to.local_bytes + credit_of(bytes.size()) > options_.local_window_bytes ||
      find_lane(to, {envelope.source, envelope.context, envelope.tag}) == nullptr ||
      to.is_indexed[1] || to.is_indexed[2] || to.is_indexed[3]) {
    return false;
  }
  Message* message = create_message(to, bytes.size());
  message->envelope = envelope;
  message->is_local = true;
  message->arrived_bytes = bytes.size();
  copy_short(message->payload, bytes.data(), bytes.size());
  check(add_message(to, *message), "a message that has its lane is added without memory");
  to.local_bytes += credit_of(bytes.size());
  return true;
}

/// A message that is there.
DirectReceive TransportCore::take_direct(Endpoint& at, RecvRequest& request,
                                         const Pattern& pattern) noexcept {
  Message* const message = find_message(at, pattern);
  if (!message->is_local || !message->is_small || message->is_rendezvous) {
    return DirectReceive::refused;
  }
  remove_message(at, *message);
  fill(at.rank, request, message->envelope, message->payload);
  at.local_bytes -= credit_of(message->envelope.bytes);
  free_message(at, message);
  request.done.complete_alone();
  return DirectReceive::received;
}

DirectReceive TransportCore::receive_direct(Endpoint& at, memory::RankSlot& slot,
                                            std::int32_t move_request, RecvRequest& request,
                                            const Pattern& pattern,
                                            const Buffer& data) noexcept STERNA_LOCKS_UNCHECKED {
  threads::Thread& me = *slot.thread;
  RankEntry& entry = ranks_[at.rank];
  {
    threads::DirectSection section{me};
    if (section.owns(entry.lock)) [[likely]] {
      entry.lock.count_use();
      request.data = data;
      if (at.message_count != 0) {
        // An index would have to be made.
        const std::uint32_t pattern_class = class_of(pattern);
        if (pattern_class != 0 && !at.is_indexed[pattern_class]) {
          return DirectReceive::refused;
        }
        if (find_message(at, pattern) != nullptr) {
          return take_direct(at, request, pattern);
        }
      }
      // Flag and word in this section: on_peer_lost() and interrupt() take the lock after them.
      threads::Thread* next = nullptr;
      if (is_any_lost_.load(std::memory_order_relaxed) ||
          slot.move_request.load(std::memory_order_relaxed) != move_request ||
          (next = section.begin_leave()) == nullptr) {
        return DirectReceive::refused;
      }
      request.done.await_suspended(me);
      park_receive(at, request, pattern);
      section.leave_for(*next, slot.thread_pointer);
      return request.done.done() ? DirectReceive::received : DirectReceive::interrupted;
    }
  }
  claim_direct(entry, me);
  return DirectReceive::refused;
}

/// The worker of `me`, the current thread, shall own the lock of its rank.
void TransportCore::claim_direct(RankEntry& entry, threads::Thread& me) noexcept {
  if (!threads::DirectSection::kIsPossible || !entry.lock.should_claim()) {
    return;
  }
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state == RankState::here) {
    entry.lock.claim(*me.worker.load(std::memory_order_relaxed));
  }
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
