// Messages between ranks of this node, from the code of a rank: no thread-local storage, no system
// call, no allocation (threads/direct.h). Matching is that of the other ways (matching.h), under
// the same locks, so their order is one order: a message is taken by the oldest receive that fits,
// whichever way either came.
//
// A rank that waits here is suspended, with no word for a token. What must interrupt it (an order
// to move) changes a word first and then calls interrupt(), which takes the lock of the rank; the
// rank reads the word under that lock before it posts. So either it sees the order and does not
// wait, or interrupt() finds Endpoint::parked. Who completes the receive has unposted it under the
// lock, which clears `parked`: exactly one of the two wakes the rank.
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
void count_message(const Endpoint& from, std::uint64_t bytes) noexcept {
  const auto add = [](std::atomic<std::uint64_t>& sum, std::uint64_t by) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  };
  if (memory::RankSlot* slot = memory::rank_slot_of(&from); slot != nullptr) {
    add(slot->messages, 1);
    add(slot->message_bytes, bytes);
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
  copy_in(request.data, 0, bytes, request.envelope.bytes);
}

}  // namespace

bool TransportCore::try_send_direct(Endpoint& from, const Target& target,
                                    std::span<const std::byte> bytes,
                                    threads::Waiter& receiver) noexcept {
  RankEntry& entry = ranks_[target.rank];
  if (entry.route.load(std::memory_order_relaxed) != RankEntry::kNoRoute) {
    return false;
  }
  // As send_local(): no message overtakes frames that went over the network before.
  std::uint32_t sequence = 0;
  const bool is_free =
      std::atomic_ref<std::uint32_t>{from.peer_count}.load(std::memory_order_relaxed) == 0 ||
      is_caught_up(from, target.rank, sequence);
  const Envelope envelope{from.rank, target.context, target.tag, bytes.size()};
  {
    const SpinGuard guard{entry.lock};
    if (entry.state != RankState::here) {
      return false;
    }
    Endpoint& to = *entry.endpoint;
    if (!is_free) {
      const Peer* peer = find_peer(to, from.rank);
      if ((peer != nullptr ? peer->receive_sequence : 0) != sequence) {
        return false;
      }
    }
    if (RecvRequest* receive = take_receive(to, {from.rank, target.context, target.tag})) {
      fill(target.rank, *receive, envelope, bytes.data());
      receiver = receive->done.complete_unsignalled();
    } else if (!store_direct(to, envelope, bytes)) {
      return false;
    }
  }
  STERNA_PROBE4(message_send, from.rank, target.rank, bytes.size(), target.tag);
  counters_.local.add();
  count_message(from, bytes.size());
  return true;
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
  std::memcpy(message->payload, bytes.data(), bytes.size());
  check(add_message(to, *message), "a message that has its lane is added without memory");
  to.local_bytes += credit_of(bytes.size());
  return true;
}

DirectReceive TransportCore::try_receive_direct(Endpoint& at, RecvRequest& request,
                                                const Pattern& pattern, const Buffer& data,
                                                const DirectWait& wait,
                                                threads::DirectLeave& leave) noexcept {
  const std::uint32_t pattern_class = class_of(pattern);
  const SpinGuard guard{ranks_[at.rank].lock};
  if (at.message_count != 0) {
    // An index would have to be made.
    if (pattern_class != 0 && !at.is_indexed[pattern_class]) {
      return DirectReceive::refused;
    }
    if (Message* message = find_message(at, pattern); message != nullptr) {
      if (!message->is_local || !message->is_small || message->is_rendezvous) {
        return DirectReceive::refused;
      }
      remove_message(at, *message);
      request.data = data;
      fill(at.rank, request, message->envelope, message->payload);
      at.local_bytes -= credit_of(message->envelope.bytes);
      free_message(at, message);
      (void)request.done.complete_unsignalled();
      return DirectReceive::received;
    }
  }
  Lane* const lane = find_lane(at, pattern);
  // The flag under the lock: on_peer_lost() sets it and then takes the lock to look for receives.
  if (lane == nullptr || is_any_lost_.load(std::memory_order_relaxed) ||
      wait.word->load(std::memory_order_relaxed) != wait.expected) {
    return DirectReceive::refused;
  }
  leave = threads::try_begin_direct_leave(*wait.thread);
  if (!leave) {
    return DirectReceive::refused;
  }
  request.data = data;
  request.done.await_suspended(*wait.thread);
  post_in_lane(at, request, *lane);
  at.parked = &request;
  return DirectReceive::posted;
}

void TransportCore::interrupt(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  threads::Waiter waiter;
  {
    const SpinGuard guard{entry.lock};
    if (entry.state == RankState::here && entry.endpoint->parked != nullptr) {
      waiter = entry.endpoint->parked->done.withdraw_suspended();
      entry.endpoint->parked = nullptr;
    }
  }
  if (waiter) {
    waiter.signal();
  }
}

}  // namespace sterna::net
