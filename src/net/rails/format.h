// What a link puts before its packets (link.h): 32 bytes, little-endian, and for acknowledgements a
// map of what has come out of turn. Decoded as if from a stranger.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/driver.h"

namespace sterna::net {

// None is a FrameKind: a packet says by its first byte whether it is a link's.
enum class LinkKind : std::uint8_t {
  data = 0xd1,    // Frames follow.
  ack = 0xd2,     // A map follows: see LinkPacket::arrived.
  probe = 0xd3,   // Is this rail alive? Nothing follows.
  answer = 0xd4,  // It is; by the same rail. Nothing follows.
};

inline constexpr std::uint8_t kLinkHasSum = 1;       // Flag: `sum` means something.
inline constexpr std::uint8_t kLinkHasExpected = 2;  // Flag: `expected` and `echo` do.

struct LinkHeader {
  LinkKind kind{};
  std::uint8_t flags = 0;
  std::uint16_t rail = 0;         // By which it was sent, in the order of the job's drivers.
  std::uint32_t sequence = 0;     // Of data: its number. Of a probe and its answer: the probe's.
  std::uint32_t expected = 0;     // All data packets before this number have come.
  std::uint32_t echo = 0;         // The data packet that came last, or of data, by this rail,
  std::uint32_t echo_age_us = 0;  // and how long ago.
  std::uint32_t bytes = 0;        // That follow.
  std::uint64_t sum = 0;          // Of all bytes of the packet, this field being 0.
};
inline constexpr std::size_t kLinkHeaderBytes = 32;
static_assert(sizeof(LinkHeader) == kLinkHeaderBytes, "the header is copied as it lies in memory");

inline constexpr std::uint32_t kLinkWindow = 1024;  // Data packets on their way, a power of two.
inline constexpr std::size_t kArrivedWords = kLinkWindow / 64;

struct LinkPacket {
  LinkHeader header;
  Packet payload;  // Of data.
  // Of an ack: bit i of word w: packet expected + 1 + 64 w + i has come.
  std::array<std::uint64_t, kArrivedWords> arrived;
  std::uint32_t arrived_words;
};

/// Keys the sums of a job: from its secret, so that not even a stranger's packet has a right one by
/// chance.
struct SumKey {
  std::array<unsigned char, 16> bytes{};
};
[[nodiscard]] SumKey make_sum_key(std::span<const std::byte> secret) noexcept;

/// The sum of a whole packet whose field `sum` is taken as 0 (SipHash-2-4).
[[nodiscard]] std::uint64_t link_sum(Packet packet, const SumKey& key) noexcept;

enum class LinkDecode : std::uint8_t {
  good,
  corrupt,    // Its sum is wrong, or has to be there and is not.
  malformed,  // The bytes break the format.
};
[[nodiscard]] LinkDecode decode_link(Packet packet, bool needs_sum, const SumKey& key,
                                     LinkPacket& out) noexcept;

/// True when `a` comes after `b`, both of one window.
[[nodiscard]] constexpr bool is_after(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace sterna::net
