// The matching state of one rank: receives that wait, messages that wait, and for each rank it
// talks to over the network the order and the credit of both directions.
//
// All of it lies in the rank's system heap and moves with it as bytes: trivially copyable
// structures and iso-addresses only. Guard of everything: the lock of the rank's RankEntry. The
// functions of matching.h and peer.h work on it; who is not the transport keeps the pointer and
// nothing else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "net/message.h"

namespace sterna::memory {
class Heap;
class KeptBlocks;
}

namespace sterna::net {

/// A message that no receive has matched yet, or one taken by a matched probe.
struct Message {
  // Most of what a short message needs lies in the first two lines.
  Envelope envelope;
  std::byte* payload = nullptr;  // Eager: `envelope.bytes` bytes. Null: rendezvous, or empty.
  std::uint64_t held_bytes = 0;  // Room behind this, for the payload.
  std::uint64_t arrived_bytes = 0;
  RecvRequest* receiver = nullptr;  // Matched before its last part arrived.
  bool is_rendezvous = false;
  bool is_synchronous = false;
  bool is_local = false;    // Sent within the node: no credit goes back.
  bool is_claimed = false;  // It was kept by its sender: it took nothing of a window.
  bool is_small = false;    // Of the endpoint's free list.
  // Not none: its bytes are lost, and the receive that takes it ends so.
  Fault fault = Fault::none;
  Message* all_next = nullptr;  // Of the endpoint, in order of arrival.
  Message* all_previous = nullptr;
  // By class of pattern (matching.h): place in the lane of that class.
  struct Link {
    Message* next = nullptr;
    Message* previous = nullptr;
    Lane* lane = nullptr;
  } links[4];
  std::uint64_t order = 0;       // Of arrival.
  std::uint64_t send_id = 0;     // Rendezvous and synchronous: in the pending table of the source.
  std::uint64_t address = 0;     // Rendezvous of a message that may be read there; else 0.
  std::uint64_t head_bytes = 0;  // Rendezvous: of its head, the frame `head_sequence`; 0: none.
  std::uint32_t head_sequence = 0;
  std::uint32_t sequence = 0;  // Rendezvous: of its announcement.
};

/// All that waits for one (context, source, tag), where source and tag may be "any": a queue of
/// receives, a queue of messages. Kept when empty, swept when the table would grow.
struct Lane {
  Pattern key;
  std::uint8_t pattern_class;
  Lane* next_in_bucket;
  RecvRequest* receives_first;
  RecvRequest* receives_last;
  Message* messages_first;
  Message* messages_last;
};

/// A part of a message that came before its turn; `bytes` bytes of frame follow.
struct EarlyFrame {
  EarlyFrame* next;
  std::uint32_t sequence;
  std::uint32_t bytes;
};

struct Hold;  // What one of two ranks keeps back for the other: matching/held.h.

/// What this rank knows of its exchange with another one over the network.
struct Peer {
  std::uint32_t rank;
  Peer* next_in_bucket;
  // Towards it.
  std::uint32_t send_sequence;   // Of the next frame.
  std::uint32_t eager_sent;      // Bytes counted against the window, modulo 2^32.
  std::uint32_t eager_returned;  // Of them, consumed by it.
  std::uint32_t bar;             // Counts against the window too: kBar while messages are kept.
  // From it.
  std::uint32_t receive_sequence;  // The next one to be taken.
  std::uint32_t eager_received;    // Eager bytes that came, modulo 2^32.
  std::uint32_t consumed;          // Eager bytes consumed, modulo 2^32.
  std::uint32_t consumed_told;     // Of them, told.
  EarlyFrame* early;               // Ascending.
  EarlyFrame* early_last;
  std::uint32_t early_count;
  Message* partial_message;      // An eager message whose last parts are still to come goes here,
  RecvRequest* partial_receive;  // or here, or (a receive that failed) nowhere.
  std::uint64_t partial_left;    // Bytes of it to come; 0: none.
  bool is_partial_placed;        // The driver receives them where they belong; the rank is pinned.
  std::uint64_t head_receive;    // The next frame is the head of a message for this pending receive
                                 // (else kNoId).
  Hold* hold;                    // Null: neither ever kept anything back.
};

/// Requests that wait for an answer from the network, by an id that a stranger cannot abuse.
struct PendingEntry {
  enum class Kind : std::uint8_t { free, send, receive } kind;
  std::uint32_t generation;
  std::uint32_t next_free;
  std::uint32_t peer;  // The other rank.
  void* request;
};

/// A count that is written under the lock of the rank, and may be read without it, as a hint. Bytes
/// that move, as all here: no std::atomic.
struct OpenCount {
  std::uint32_t value;

  operator std::uint32_t() const noexcept {  // NOLINT(google-explicit-constructor)
    return std::atomic_ref<std::uint32_t>{const_cast<std::uint32_t&>(value)}.load(
        std::memory_order_relaxed);
  }
  OpenCount& operator++() noexcept { return set(value + 1); }
  OpenCount& operator--() noexcept { return set(value - 1); }

 private:
  OpenCount& set(std::uint32_t to) noexcept {
    std::atomic_ref<std::uint32_t>{value}.store(to, std::memory_order_relaxed);
    return *this;
  }
};

struct Endpoint {
  std::uint32_t rank;
  std::uint32_t epoch;  // How often the rank has moved.
  memory::Heap* heap;   // The rank's system heap.
  memory::KeptBlocks* blocks;  // Of messages, where that heap is malloc(); else null.
  bool is_fixed;        // The rank never moves: others may read its messages where they are.
  std::uint64_t next_order;
  MessageWatch* watches;  // Of probes that wait.

  // A receive that its rank waits for, posted after all others, in no lane (direct.cc); or null.
  RecvRequest* parked;
  Pattern parked_pattern;
  Lane** lanes;  // Buckets.
  std::uint32_t lane_bucket_count;
  std::uint32_t lane_count;
  OpenCount posted_count[4];  // Receives by class; those with a mask are counted in the last.
  RecvRequest* masked_first;  // Receives with a mask, in the order of posting.
  RecvRequest* masked_last;
  bool is_indexed[4];  // Messages are linked in the lanes of this class too.
  alignas(std::uint64_t) OpenCount message_count;
  OpenCount holder_count;      // Peers that keep messages for us. Behind the count: has_waiting().
  Message* messages_first;     // All that wait, in order of arrival.
  Message* messages_last;

  // See matching/held.h.
  Endpoint* kept;  // Its messages are those that wait here for others; null: none do.
  Peer* holders;   // Those of holder_count.
  Peer* to_ask_first;
  Peer* to_ask_last;
  Peer* to_tell_first;
  RecvRequest* seekers_first;  // In the order of posting.
  RecvRequest* seekers_last;
  std::uint32_t seeker_count;

  Peer** peers;  // Buckets.
  std::uint32_t peer_bucket_count;
  std::uint32_t peer_count;

  PendingEntry* pending;
  std::uint32_t pending_capacity;
  std::uint32_t pending_free;  // Index of the first free entry; kNoPending: none.
  std::uint32_t pending_count;
  std::uint32_t partial_count;  // Of the peers, those with Peer::partial_left.
  std::uint32_t pending_sends;  // Of them.

  Lane* free_lanes;
  Message* free_messages;  // Small ones.
  std::uint32_t free_message_count;
  std::uint64_t local_bytes;       // Of messages that wait and came from ranks of the same node.
  std::uint64_t unexpected_bytes;  // Payload held, of all.
  std::uint64_t unexpected_bytes_peak;
  std::uint32_t early_count;  // Of all peers: frames that wait for those before them.
  // Losses that ended its requests, wherever it was: each ends those from anybody that were posted
  // before, not those that were posted by somebody who knew. So they go along.
  OpenCount loss_count;       // Read without the lock by who probes.
  std::uint64_t* lost_ranks;  // Of them, a bit a rank of the job; null: none, or no memory.
};
static_assert(std::is_trivially_copyable_v<Endpoint>, "it moves as bytes");

/// Whether a receive finds more than posting it: messages here, or at their senders.
[[nodiscard]] inline bool has_waiting(const Endpoint& at) noexcept {
  static_assert(offsetof(Endpoint, holder_count) ==
                    offsetof(Endpoint, message_count) + sizeof(OpenCount) &&
                offsetof(Endpoint, message_count) % sizeof(std::uint64_t) == 0);
  // One load, on the way of each message. Relaxed: without the lock it is a hint.
  using Both [[gnu::may_alias]] = std::uint64_t;
  return __atomic_load_n(reinterpret_cast<const Both*>(&at.message_count), __ATOMIC_RELAXED) != 0;
}

/// In `heap`, which must outlive it; null: out of memory.
[[nodiscard]] Endpoint* create_endpoint(memory::Heap& heap, std::uint32_t rank) noexcept;
/// Frees all it holds. No request of it is pending.
void destroy_endpoint(Endpoint* endpoint) noexcept;

}  // namespace sterna::net
