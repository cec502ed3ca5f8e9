// Sums and the decoder of link packets.
#include "net/rails/format.h"

#include <cstring>

#include <sodium.h>

namespace sterna::net {

static_assert(sizeof(SumKey) == crypto_shorthash_KEYBYTES, "a key of SipHash");

SumKey make_sum_key(std::span<const std::byte> secret) noexcept {
  SumKey key;
  crypto_generichash(key.bytes.data(), key.bytes.size(),
                     reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), nullptr,
                     0);
  return key;
}

std::uint64_t link_sum(Packet packet, const SumKey& key) noexcept {
  // The header apart, as its sum is not part of it; its hash becomes the tweak of the rest's.
  std::array<unsigned char, kLinkHeaderBytes> header;
  std::memcpy(header.data(), packet.data(), header.size());
  std::memset(header.data() + offsetof(LinkHeader, sum), 0, sizeof(std::uint64_t));
  std::array<unsigned char, crypto_shorthash_BYTES> of_header;
  crypto_shorthash(of_header.data(), header.data(), header.size(), key.bytes.data());
  SumKey tweaked = key;
  for (std::size_t i = 0; i < of_header.size(); ++i) {
    tweaked.bytes[i] ^= of_header[i];
  }
  std::uint64_t sum = 0;
  const Packet rest = packet.subspan(kLinkHeaderBytes);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&sum),
                   reinterpret_cast<const unsigned char*>(rest.data()), rest.size(),
                   tweaked.bytes.data());
  return sum;
}

LinkDecode decode_link(Packet packet, bool needs_sum, const SumKey& key, LinkPacket& out) noexcept {
  if (packet.size() < kLinkHeaderBytes) {
    return LinkDecode::malformed;
  }
  LinkHeader& header = out.header;
  std::memcpy(&header, packet.data(), kLinkHeaderBytes);
  const bool has_sum = (header.flags & kLinkHasSum) != 0;
  if (has_sum ? header.sum != link_sum(packet, key) : needs_sum) {
    return LinkDecode::corrupt;
  }
  if (header.bytes != packet.size() - kLinkHeaderBytes || header.kind < LinkKind::data ||
      header.kind > LinkKind::answer || (header.flags & ~(kLinkHasSum | kLinkHasExpected)) != 0) {
    return LinkDecode::malformed;
  }
  out.payload = {};
  out.arrived_words = 0;
  const Packet rest = packet.subspan(kLinkHeaderBytes);
  switch (header.kind) {
    case LinkKind::data:
      out.payload = rest;
      return rest.empty() ? LinkDecode::malformed : LinkDecode::good;
    case LinkKind::ack:
      if (rest.size() % sizeof(std::uint64_t) != 0 ||
          rest.size() > kArrivedWords * sizeof(std::uint64_t) ||
          (header.flags & kLinkHasExpected) == 0) {
        return LinkDecode::malformed;
      }
      std::memcpy(out.arrived.data(), rest.data(), rest.size());
      out.arrived_words = static_cast<std::uint32_t>(rest.size() / sizeof(std::uint64_t));
      return LinkDecode::good;
    default:
      return rest.empty() ? LinkDecode::good : LinkDecode::malformed;
  }
}

}  // namespace sterna::net
