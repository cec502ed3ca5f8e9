// The format of what nodes send each other: a driver's packet is one or several frames, each a
// header of kHeaderBytes followed by its payload. Little-endian. Decoded as if from a stranger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/costs/cost.h"
#include "net/driver.h"

namespace sterna::net {

enum class FrameKind : std::uint8_t {
  // Between ranks (source and destination are ranks). Those up to `claim` carry a sequence number.
  // A message, or its first part. Payload: its bytes. cookie, unless it is synchronous: of how many
  // frames it is; 0: of as many as there are if this one is the longest.
  eager = 1,
  eager_more,  // The next part of the message before.
  head,        // Behind its announcement, unasked: the first bytes of the message. See head.cc.
  rendezvous,  // A message is ready to be sent; cookie: the send's id.
  // Of messages that their sender keeps (kFrameHeld, matching/held.h).
  seek,  // Which of them fits context and tag (kAnyTag: any) first? total_bytes: bits of the tag.
  nothing,    // None. cookie: 1: none is kept at all.
  claim,      // cookie: the send's id: a receive has this one. With kFrameWithdrawn: if none has by
              // now, none will.
  clear,      // Send it: cookie: the send's id; total_bytes: what a byte of a packet takes the
              // receiver, in ps, 0: not known. Payload: ClearPayload.
  data,       // cookie: the receive's id; total_bytes: where the payload goes.
  finish,     // cookie: the receive's id; all bytes were written directly.
  matched,    // cookie: the send's id: a synchronous eager message was received, or one read;
              // total_bytes: the nanoseconds that reading it took, 0: it was not read, or not
              // measured; context: else as total_bytes of clear.
  credit,     // Nothing but the header's credit.
  rank_note,  // cookie: handler. For the node where the destination rank is.
  // Between nodes (source and destination are nodes).
  node,         // Sequence number. cookie: handler; total: bytes of the message. Payload: a part.
  bulk,         // cookie: the landing's id; total_bytes: where the payload goes.
  bulk_finish,  // cookie: the landing's id; total bytes were written directly.
  moved,        // cookie: rank; context: the node where it is; sequence: its epoch.
  // Measuring a way (sampler.h). cookie: the round.
  // tag: packets of the round, all alike; sequence: 1 + the rail that takes them and the answer, or
  // 0. Payload: bytes to be taken, no more.
  sample,
  sample_answer,  // To the last of them. context: 1: the node slept. Payload: SampleAnswer.
  // What a way costs. cookie: a node at its other end; sequence: which driver; context: 1: as a
  // rail of a link. Payload: WayCosts.
  sample_result,
};
inline constexpr std::uint8_t kFrameKindLast = static_cast<std::uint8_t>(FrameKind::sample_result);

inline constexpr std::uint8_t kFrameSynchronous = 1;  // Flag of eager: answer with `matched`.
inline constexpr std::uint8_t kFrameHasCredit = 2;    // The field `credit` means something.
// Of rendezvous: the payload is the address of the message, one range, which the receiver's node
// may read itself (and answers `matched`); its sender stays. Else there is no payload.
inline constexpr std::uint8_t kFrameReadable = 4;
// Of rendezvous: the message of this id, which came before, is not sent if no receive has it yet.
// Of matched, the answer: none had it.
inline constexpr std::uint8_t kFrameWithdrawn = 8;
// Of rendezvous: a `head` is the next frame of the pair; the payload is how long it is, 64 bits.
inline constexpr std::uint8_t kFrameHeaded = 32;
// Of node: a whole message, whose head of `credit` bytes lies in total_bytes, context and tag; the
// payload is its body. A call takes no more cache lines so than a message of as many bytes.
inline constexpr std::uint8_t kFrameHasWords = 16;
// Of rendezvous: the sender keeps the message, and what describes it: its receiver forgets it if no
// receive fits. Of credit: cookie: how many of those have come, mod 2^32.
inline constexpr std::uint8_t kFrameHeld = 64;
// Of rendezvous that is held: the answer to `seek`.
inline constexpr std::uint8_t kFrameSought = 128;
// Of seek: nothing is asked, but there is room again: what fits the window may be sent, in order.
inline constexpr std::uint8_t kFrameRoom = 1;
// Of clear: the program of the receiver will compute, by its habit: it takes no packets meanwhile.
inline constexpr std::uint8_t kFrameAway = 4;
// Of clear: its receive had been posted when the announcement came, over no other node, and the
// answer waits for no long message: what has passed meanwhile the sender may take for a round trip.
inline constexpr std::uint8_t kFramePosted = 1;
// Of data: the bytes were lent, and may have come, or still come, that way, too.
inline constexpr std::uint8_t kFrameAgain = 1;
inline constexpr std::size_t kWordsBytes = 16;
inline constexpr std::uint8_t kHopsMax = 64;

/// Whether it is taken in the order of the numbers of its pair.
[[nodiscard]] constexpr bool is_in_turn(FrameKind kind) noexcept {
  return kind <= FrameKind::claim;
}

struct FrameHeader {
  FrameKind kind{};
  std::uint8_t flags = 0;
  std::uint8_t hops = 0;      // How often it was forwarded after a rank that moved.
  std::uint8_t priority = 0;  // Of messages and their data: higher ones go first. priority.h
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint32_t sequence = 0;
  // Eager bytes `source` has consumed from `destination`, mod 2^32; see kFrameHasWords, too.
  std::uint32_t credit = 0;
  std::uint32_t context = 0;
  std::int32_t tag = 0;
  std::uint32_t payload_bytes = 0;
  std::uint64_t total_bytes = 0;  // Of the whole message; of data and bulk frames: the offset.
  std::uint64_t cookie = 0;
};
inline constexpr std::size_t kHeaderBytes = 48;

/// The packet begins with a message between nodes.
[[nodiscard]] inline bool is_of_nodes(Packet packet) noexcept {
  return packet.size() >= kHeaderBytes &&
         packet[offsetof(FrameHeader, kind)] == static_cast<std::byte>(FrameKind::node);
}

/// Of a frame with kFrameHasWords.
[[nodiscard]] inline bool are_words_right(const FrameHeader& header) noexcept {
  return header.credit != 0 && header.credit <= kWordsBytes;
}
static_assert(sizeof(FrameHeader) == kHeaderBytes, "the header is copied as it lies in memory");

/// Answer to `rendezvous`: where the bytes go. `extents` follow: address, bytes, each 64 bits; none
/// when there are too many of them for one frame: then only data frames will do.
struct ClearPayload {
  std::uint64_t receive_id = 0;
  std::uint64_t bytes_max = 0;  // What the receiver has room for.
  std::uint64_t begin = 0;      // From here on: what is before comes, or came, as `head`.
  std::uint32_t node = 0;       // The receiver's; it stays there until the last byte.
  std::uint32_t extent_count = 0;
};
inline constexpr std::uint32_t kClearExtentsMax = 8;

struct SampleAnswer {
  std::uint64_t address = 0;  // Of memory that may be read, as long as the process runs; 0: none.
  // From the poll before to that in which the round came; kNever: it did not look at the clock.
  std::uint64_t gap_ns = 0;
};
inline constexpr std::int32_t kSamplePacketsMax = 8;  // Of one round.
// FrameHeader::context of an answer to a round that says nothing of the way.
inline constexpr std::uint32_t kSampleSlept = 1;
inline constexpr std::uint32_t kSampleLate = 2;  // The answer goes behind messages.

/// Bounds that a decoder checks.
struct FrameLimits {
  std::uint32_t node_count;
  std::uint32_t rank_count;
};

struct Frame {
  FrameHeader header;
  std::span<const std::byte> payload;
};

enum class DecodeState : std::uint8_t {
  frame,      // One frame was taken off the front of `rest`.
  end,        // `rest` is empty.
  malformed,  // The bytes break the format; nothing more can be read of this packet.
};

/// Takes the next frame off `rest`. All fields of the header are in range afterwards, but cookies,
/// which only their owner can judge.
[[nodiscard]] DecodeState decode_frame(std::span<const std::byte>& rest, const FrameLimits& limits,
                                       Frame& frame) noexcept;

/// Of a packet of which only the head has come: reads the header of the one frame that is the whole
/// packet of `packet_bytes` bytes. False: it is not that.
[[nodiscard]] bool decode_head(std::span<const std::byte> head, std::size_t packet_bytes,
                               const FrameLimits& limits, FrameHeader& header) noexcept;

struct RemoteExtents {
  RemotePiece pieces[kClearExtentsMax];
  std::uint32_t count = 0;
};

/// Reads the payload of a `sample_result`; false when it is malformed or cannot be meant: see
/// are_plausible().
[[nodiscard]] bool decode_costs(std::span<const std::byte> payload, WayCosts& costs) noexcept;

/// Reads the payload of a `clear` frame; false when it is malformed.
[[nodiscard]] bool decode_clear(std::span<const std::byte> payload, const FrameLimits& limits,
                                ClearPayload& clear, RemoteExtents& extents) noexcept;

}  // namespace sterna::net
