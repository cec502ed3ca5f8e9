// Messages between ranks of one worker, from the code of a rank: no thread-local storage, no
// allocation, no system call (threads/direct.h). What would need one is refused, nothing has
// happened then, and Transport::send() or receive() does it. Inline, for mpi/p2p/direct.h: a
// message is as long as the instructions of a call.
//
// Matching is that of the other ways (matching.h), under the same locks, so their order is one
// order: a message is taken by the oldest receive that fits, whichever way either came. The locks
// cost nothing here, because the worker owns those of the ranks that it runs
// (threads/queues/owned_lock.h): all is done in one section of the worker, which ends with the
// switch to another rank.
//
// A rank that waits here is suspended, with no word for a token. What must interrupt it (an order
// to move) changes a word first and then calls Transport::interrupt(), which takes the lock of the
// rank; the rank reads the word in the section in which it posts. So either it sees the order and
// does not wait, or interrupt() finds Endpoint::parked. Who completes the receive has taken it from
// there under the lock: exactly one of the two wakes the rank. An interrupted receive stays where
// it is: its rank posts nothing else before it is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/probe.h"
#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "net/matching/matching.h"
#include "net/nodes/rank_table.h"
#include "threads/direct.h"

namespace sterna::net {

class TransportCore;

enum class DirectReceive : std::uint8_t {
  refused,
  received,     // The request is done.
  interrupted,  // It is posted still, and nobody waits for it.
};

/// As memcpy, which is a call.
[[gnu::always_inline]] inline void copy_short(std::byte* to, const std::byte* from,
                                              std::uint64_t bytes) noexcept {
  if (bytes == sizeof(std::uint64_t)) [[likely]] {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else {
#if defined(__x86_64__)
    // Fast for short ones too where this matters (FSRM), and leaves the registers alone.
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    if (bytes != 0) {
      std::memcpy(to, from, bytes);
    }
#endif
  }
}

/// Its one thread writes; a sum for reports.
[[gnu::always_inline]] inline void count_message(memory::RankSlot& slot,
                                                 std::uint64_t bytes) noexcept {
  const auto add = [](std::atomic<std::uint64_t>& sum, std::uint64_t by) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  };
  add(slot.messages, 1);
  add(slot.message_bytes, bytes);
}

/// The message has matched `request`, which is in no list any more.
[[gnu::always_inline]] inline void fill(std::uint32_t rank, RecvRequest& request, Envelope envelope,
                                        const std::byte* bytes) noexcept {
  STERNA_PROBE4(message_receive, envelope.source, rank, envelope.bytes, envelope.tag);
  request.message_bytes = envelope.bytes;
  if (envelope.bytes > request.data.bytes) [[unlikely]] {
    envelope.bytes = request.data.bytes;
    request.fault = Fault::truncated;
  }
  // One by one: as a whole it would be made in memory first, and read again before it is there.
  request.envelope.source = envelope.source;
  request.envelope.context = envelope.context;
  request.envelope.tag = envelope.tag;
  request.envelope.bytes = envelope.bytes;
  if (request.data.extents == nullptr) [[likely]] {
    copy_short(request.data.address, bytes, envelope.bytes);
  } else {
    copy_in(request.data, 0, bytes, envelope.bytes);
  }
}

/// The part of a Transport that its direct messages need.
class DirectWay {
 public:
  DirectWay(TransportCore& core, RankTable& ranks, const std::atomic<bool>& is_any_lost,
            std::atomic<std::uint64_t>& local_count) noexcept
      : core_{core}, entries_{&ranks[0]}, is_any_lost_{is_any_lost}, local_count_{local_count} {}

  /// From now on `slot` knows the way of this node; before its rank makes direct messages here.
  /// What a message needs is then found in few steps, each of which is a load that waits for the
  /// one before: right after the thread pointer was written, the processor has nothing else to do.
  void lead(memory::RankSlot& slot) noexcept {
    slot.direct_way = this;
    slot.rank_entries = entries_;
  }
  /// That of the node where the rank of `slot` is.
  [[nodiscard]] static DirectWay& of(const memory::RankSlot& slot) noexcept {
    return *static_cast<DirectWay*>(slot.direct_way);
  }

  /// The worker that runs the rank, or ran it last; null: the rank is elsewhere, or has no slot. A
  /// hint; the worker is there as long as the node. On the runtime's thread pointer.
  [[nodiscard]] threads::Worker* worker_of(std::uint32_t rank) noexcept;

  /// Sends if the receiver has posted a receive, or has room for so little. `slot` is that of the
  /// sender, whose only thread calls. `receiver`: who waited for it and has to be signalled by the
  /// caller; mostly it is null.
  [[nodiscard, gnu::always_inline]] bool try_send(memory::RankSlot& slot, const Target& target,
                                                  const std::byte* data, std::uint64_t bytes,
                                                  threads::Waiter& receiver) noexcept;

  /// Receives a message that is there, or waits for it while other threads of the worker run.
  /// `slot` is that of the endpoint's rank, whose only thread calls; refused unless
  /// slot.move_request is `move_request`. `request` is idle, without a fault and without extents;
  /// its address and its length say where the message goes. Switches.
  [[nodiscard, gnu::always_inline]] DirectReceive receive(memory::RankSlot& slot,
                                                          std::int32_t move_request,
                                                          RecvRequest& request,
                                                          const Pattern& pattern) noexcept;

 private:
  enum class Found : std::uint8_t { nothing, taken, refused };

  /// A section of the caller's is under way, as in the next three. What they are given has no
  /// address here, and stays in registers.
  [[nodiscard]] static bool has_taken_all(const Endpoint& to, const Endpoint& from) noexcept;
  [[nodiscard]] bool store(Endpoint& to, Envelope envelope, const std::byte* data) noexcept;
  [[nodiscard]] static RecvRequest* take_posted(Endpoint& to, Pattern exact) noexcept;
  [[nodiscard]] static Found take(Endpoint& at, RecvRequest& request, Pattern pattern) noexcept;
  /// No section is.
  void claim(RankEntry& entry, threads::Thread& me) noexcept;

  /// No receive of the endpoint is in a lane.
  [[nodiscard]] static bool is_parked_alone(const Endpoint& at) noexcept {
    std::uint64_t counts[2];
    static_assert(sizeof(counts) == sizeof(at.posted_count));
    std::memcpy(counts, at.posted_count, sizeof(counts));
    return (counts[0] | counts[1]) == 0;
  }

  // Constant, all four.
  TransportCore& core_;
  RankEntry* const entries_;
  const std::atomic<bool>& is_any_lost_;
  std::atomic<std::uint64_t>& local_count_;  // Messages. Relaxed and not exact.
};

// The lock of an entry is held by owning it, which clang cannot follow.
inline bool DirectWay::try_send(memory::RankSlot& slot, const Target& target, const std::byte* data,
                                std::uint64_t bytes,
                                threads::Waiter& receiver) noexcept STERNA_LOCKS_UNCHECKED {
  RankEntry* const entries = static_cast<RankEntry*>(slot.rank_entries);
  const Endpoint& from = *static_cast<Endpoint*>(slot.endpoint);
  RankEntry& entry = entries[target.rank];
  threads::DirectSection section{*slot.thread};
  if (!section.owns(entry.lock) || entry.state != RankState::here) [[unlikely]] {
    return false;
  }
  Endpoint& to = *entry.endpoint;
  if (from.peer_count != 0 && (!section.owns(entries[slot.rank].lock) || !has_taken_all(to, from)))
      [[unlikely]] {
    return false;
  }
  const Envelope envelope{slot.rank, target.context, target.tag, bytes};
  const Pattern exact{slot.rank, target.context, target.tag};
  RecvRequest* const receive =
      is_parked_alone(to) ? take_parked(to, exact) : take_posted(to, exact);
  if (receive != nullptr) [[likely]] {
    fill(target.rank, *receive, envelope, data);
    receiver = receive->done.complete_unsignalled();
    if (threads::Thread* const waiting = receiver.suspended_thread();
        waiting != nullptr && section.try_wake(*waiting)) [[likely]] {
      receiver = {};
    }
  } else if (!store(to, envelope, data)) {
    return false;
  }
  STERNA_PROBE4(message_send, slot.rank, target.rank, bytes, target.tag);
  local_count_.store(local_count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  count_message(slot, bytes);
  return true;
}

inline DirectReceive DirectWay::receive(memory::RankSlot& slot, std::int32_t move_request,
                                        RecvRequest& request,
                                        const Pattern& pattern) noexcept STERNA_LOCKS_UNCHECKED {
  threads::Thread& me = *slot.thread;
  Endpoint& at = *static_cast<Endpoint*>(slot.endpoint);
  RankEntry& entry = static_cast<RankEntry*>(slot.rank_entries)[slot.rank];
  {
    threads::DirectSection section{me};
    if (section.owns(entry.lock)) [[likely]] {
      entry.lock.count_use();
      if (has_waiting(at)) [[unlikely]] {
        const Found found = take(at, request, pattern);
        if (found != Found::nothing || at.holder_count != 0) {
          return found == Found::taken ? DirectReceive::received : DirectReceive::refused;
        }
      }
      // Flag and word in this section: on_peer_lost() and interrupt() take the lock after them.
      threads::Thread* next = nullptr;
      if (is_any_lost_.load(std::memory_order_relaxed) ||
          slot.move_request.load(std::memory_order_relaxed) != move_request ||
          (next = section.begin_leave()) == nullptr) [[unlikely]] {
        return DirectReceive::refused;
      }
      request.done.await_suspended(me);
      park_receive(at, request, pattern);
      RecvRequest* const volatile kept = &request;  // As in leave_for().
      section.leave_for(*next, slot.thread_pointer);
      return kept->done.done() ? DirectReceive::received : DirectReceive::interrupted;
    }
  }
  claim(entry, me);
  return DirectReceive::refused;
}

}  // namespace sterna::net
