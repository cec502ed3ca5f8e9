// What the next message of one rank looks like if it is a plain one that a receive waits for: made
// before it has come, so that little is left to do when it has.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "net/endpoint.h"
#include "net/packets/packet.h"
#include "net/peer.h"

namespace sterna::net {

/// What accept_short() asks of a packet, as far as it is known before the packet: for a receive
/// that names its source. In words as they lie in the header, where fields are neighbours.
struct ExpectedPlain {
  Peer* peer;              // Null: nothing is expected.
  std::uint64_t begin;     // kind to source; any priority.
  std::uint64_t order;     // destination and sequence.
  std::uint64_t envelope;  // context and tag, if that counts.
  std::uint64_t envelope_mask;
  std::uint32_t credit_max;  // So that there is no more to do than to take it.

  [[gnu::always_inline]] ExpectedPlain(const Endpoint& at, const Pattern& pattern,
                                       std::uint32_t window) noexcept
      : peer{pattern.source != kAnySource ? find_peer(at, pattern.source) : nullptr} {
    if (peer == nullptr || peer->early != nullptr || peer->partial_left != 0) {
      peer = nullptr;
      return;
    }
    begin = word_of(std::uint32_t{static_cast<std::uint8_t>(FrameKind::eager)} |
                        (std::uint32_t{kFrameHasCredit} << 8),
                    pattern.source);
    order = word_of(at.rank, peer->receive_sequence);
    const bool is_any = pattern.tag == kAnyTag;
    envelope = word_of(pattern.context, is_any ? 0 : static_cast<std::uint32_t>(pattern.tag));
    envelope_mask = word_of(~0U, is_any ? 1U << 31 : ~0U);  // Tags are not negative.
    const std::uint32_t held = peer->eager_received - peer->consumed;
    const std::uint32_t untold = peer->consumed - peer->consumed_told;
    credit_max =
        std::min(window - std::min(held, window), window / 2 - std::min(untold + 1, window / 2));
  }

  /// What is_it() has read of the packet, once: its bytes lie where its sender can change them.
  struct Seen {
    std::uint32_t bytes;  // Of the message.
    std::uint32_t credit;
    std::int32_t tag;
  };
  [[nodiscard, gnu::always_inline]] bool is_it(Packet packet, std::size_t room,
                                               Seen& seen) const noexcept {
    if (peer == nullptr || packet.size() < kHeaderBytes) [[unlikely]] {
      return false;
    }
    constexpr std::uint64_t kAnyPriority = std::uint64_t{kPriorityMax}
                                           << (8 * offsetof(FrameHeader, priority));
    static_assert((kPriorityMax & (kPriorityMax + 1)) == 0);
    const std::size_t bytes = packet.size() - kHeaderBytes;
    const auto context_and_tag = read<std::uint64_t>(packet, offsetof(FrameHeader, context));
    seen = {static_cast<std::uint32_t>(bytes),
            read<std::uint32_t>(packet, offsetof(FrameHeader, credit)),
            static_cast<std::int32_t>(context_and_tag >> 32)};
    return (read<std::uint64_t>(packet, 0) & ~kAnyPriority) == begin &&
           read<std::uint64_t>(packet, offsetof(FrameHeader, destination)) == order &&
           ((context_and_tag ^ envelope) & envelope_mask) == 0 &&
           read<std::uint32_t>(packet, offsetof(FrameHeader, payload_bytes)) == bytes &&
           read<std::uint64_t>(packet, offsetof(FrameHeader, total_bytes)) == bytes &&
           bytes <= room && credit_of(bytes) <= credit_max;
  }

 private:
  [[nodiscard]] static std::uint64_t word_of(std::uint32_t low, std::uint32_t high) noexcept {
    return low | (std::uint64_t{high} << 32);
  }
  template <typename Word>
  [[nodiscard, gnu::always_inline]] static Word read(Packet packet, std::size_t at) noexcept {
    Word value;
    std::memcpy(&value, packet.data() + at, sizeof value);
    return value;
  }
};
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(FrameHeader, source) == 4 && offsetof(FrameHeader, sequence) == 12 &&
              offsetof(FrameHeader, tag) == offsetof(FrameHeader, context) + 4);

}  // namespace sterna::net
