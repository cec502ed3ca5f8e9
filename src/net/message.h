// Messages between ranks as their sender and receiver see them: envelopes, buffers, requests.
//
// Requests live in the caller's memory, which moves with its rank: they hold iso-addresses only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "progress/completion.h"

namespace sterna::net {

inline constexpr std::uint32_t kAnySource = 0xffff'ffff;
inline constexpr std::int32_t kAnyTag = -1;  // Tags of messages are not negative.

/// What is known of a message without its bytes.
struct Envelope {
  std::uint32_t source = 0;
  std::uint32_t context = 0;
  std::int32_t tag = 0;
  std::uint64_t bytes = 0;  // In a receive that ended: those stored.
};

/// Which messages a receive or a probe takes. `source` may be kAnySource, `tag` kAnyTag.
struct Pattern {
  std::uint32_t source;
  std::uint32_t context;
  std::int32_t tag;
};

/// With a mask: of the tag only these bits are compared. The pattern's tag is not kAnyTag.
struct MaskedPattern {
  constexpr MaskedPattern(const Pattern& of, std::uint32_t bits) noexcept
      : pattern{of}, mask{bits} {}

  Pattern pattern;
  std::uint32_t mask;
};

/// Of a probe that found nothing and waits: `done` once it had better look again, since a message
/// that fits has come, or senders keep messages now, or a node is lost. One use each; its memory
/// may move with the rank.
/// Guard: the lock of the rank, but for `done`.
struct MessageWatch {
  progress::Completion done;
  Pattern pattern{};
  std::uint32_t mask = ~std::uint32_t{0};
  // A sender that keeps messages is asked for something else just now, of whose answer another
  // probe is told.
  bool must_look_again = false;
  bool is_listed = false;  // Of the rank's Endpoint; it is completed then, or taken back.
  MessageWatch* next = nullptr;
};

/// Where a message goes.
struct Target {
  std::uint32_t rank;
  std::uint32_t context;
  std::int32_t tag;
  std::uint8_t priority = 0;  // 0 .. kPriorityMax.
};

/// Among messages that wait for the same node those of higher priority go first. They keep the
/// order of those with the same sender, receiver, context and tag.
inline constexpr std::uint8_t kPriorityMax = 7;

struct Extent {
  std::byte* address;
  std::uint64_t bytes;
};

/// A message in more places than a list is worth: whoever has made it copies parts of it, any of
/// them, by any thread while its request is under way. Of ranks that never move.
class Layout {
 public:
  virtual void copy_out(std::uint64_t offset, std::byte* to,
                        std::uint64_t bytes) const noexcept = 0;
  virtual void copy_in(std::uint64_t offset, const std::byte* from,
                       std::uint64_t bytes) const noexcept = 0;

 protected:
  ~Layout() = default;
};

/// The bytes of a message: one range, or `extents` one after the other (then `address` is not
/// read), or a layout. `bytes` is the total. Extents and layouts belong to the caller until the
/// request is done. Bytes that are sent are not written, in spite of the type.
struct Buffer {
  std::byte* address = nullptr;
  std::uint64_t bytes = 0;
  const Extent* extents = nullptr;
  std::uint32_t extent_count = 0;

  [[nodiscard]] static Buffer of(void* address, std::uint64_t bytes) noexcept {
    return {static_cast<std::byte*>(address), bytes, nullptr, 0};
  }
  [[nodiscard]] static Buffer of(const void* address, std::uint64_t bytes) noexcept {
    return of(const_cast<void*>(address), bytes);
  }
  /// Not one range for whoever asks `extents`, and of more extents than any packet takes.
  [[nodiscard]] static Buffer of(const Layout& layout, std::uint64_t bytes) noexcept {
    const void* const it = &layout;
    return {static_cast<std::byte*>(const_cast<void*>(it)), bytes, static_cast<const Extent*>(it),
            kLaidOut};
  }
  /// Null: it has none.
  [[nodiscard]] const Layout* layout() const noexcept {
    const void* const it = address;
    return extent_count == kLaidOut ? static_cast<const Layout*>(it) : nullptr;
  }

  static constexpr std::uint32_t kLaidOut = ~std::uint32_t{0};  // As extent_count.
};

/// How a request ended.
enum class Fault : std::uint8_t {
  none,
  truncated,  // The message was longer than the buffer; what fits was stored.
  peer_lost,  // The node of the other rank is gone.
  cancelled,  // It was taken back: cancel_receive, cancel_send.
  no_memory,  // The heap of a rank is full: the message is lost.
};

/// One sentence part, for error texts.
[[nodiscard]] const char* to_string(Fault fault) noexcept;

enum class SendMode : std::uint8_t {
  standard,
  synchronous,  // Done only when the receive has started.
  ready,        // The caller knows that the receive is posted.
};

struct Lane;
struct Message;   // One that no receive has matched: endpoint.h.
struct HeldSend;  // One that its sender keeps: matching/held.h.
struct Endpoint;

/// One message on its way out. Free for reuse when done; Transport::send sets everything.
/// Guard of all but `done`: the lock of the sender's RankEntry, until done.
struct SendRequest {
  progress::Completion done;
  Fault fault = Fault::none;
  SendMode mode = SendMode::standard;
  // Given by the sender: it does nothing else until this is done. Else its processor is for other
  // things: what can be left to the receiver is.
  bool is_awaited = false;
  // Given by the sender: it goes on with something else, so that a worker without work may send
  // this (paper 004 §4.2), where that gains.
  bool may_be_left = false;
  // The rest is the transport's.
  bool is_listed = false;     // Among those that may be invited: transfer/invitations.h.
  bool is_kept = false;       // It waits here, as `held`: matching/held.h.
  bool is_withdrawn = false;  // Was kept, and is being taken back.
  bool is_trial = false;      // Goes the way that its gate did not choose: costs/trials.h.
  // Short enough to go at once, but its receiver has not told that it has room: a poll may find
  // that it has. Read by the sender after send().
  bool lacked_room = false;
  Target target{};
  Buffer data{};
  union {
    std::uint32_t head_bytes = 0;  // That follow the announcement unasked.
    HeldSend* held;                // Of one that is kept.
  };
  std::uint64_t id = 0;  // In Endpoint::pending; 0: none.
};

/// One message on its way in. Read `envelope` and `fault` when it is done.
/// Guard of all but `done`: the lock of the receiver's RankEntry, until done.
struct RecvRequest {
  progress::Completion done;
  Fault fault = Fault::none;
  enum class State : std::uint8_t {
    idle,       // Not in use, or done.
    posted,     // In a lane, waits for a message.
    receiving,  // Matched; bytes are still to come.
  } state = State::idle;
  // Given by the receiver: it goes on with something else, so that its sender may write into it
  // (transfer/invitations.h).
  bool may_be_written = false;
  // By the owner: what it has to send goes behind this in the same call, so that a message that has
  // been announced is not read before that.
  bool is_beside_sends = false;
  // Parts of it that a driver may write at any moment (PacketSink::hold_place): it ends after them,
  // if it is to end before.
  bool is_to_end = false;
  // Posted, and asks senders for what these keep; received_bytes and envelope.bytes are its places
  // in that list: matching/held.h.
  bool is_seeking = false;
  std::uint16_t held_parts = 0;
  Envelope envelope{};  // Of one that is posted with a mask: its pattern.
  // The rest is the transport's.
  Buffer data{};
  RecvRequest* next = nullptr;  // In its lane.
  RecvRequest* previous = nullptr;
  Lane* lane = nullptr;     // Null: not posted, or with a mask.
  std::uint64_t order = 0;  // Of posting: the oldest that fits takes the message.
  // Of the matched message, which may be more than fits; while it is posted: its mask, if any.
  std::uint64_t message_bytes = 0;
  std::uint64_t received_bytes = 0;  // Arrived of it, in any order.
  std::uint64_t id = 0;              // In Endpoint::pending, also of one that is told of; 0: none.
};

}  // namespace sterna::net
