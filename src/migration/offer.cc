// Encoding and defensive decoding of offers.
#include "migration/offer.h"

#include <algorithm>

#include "base/wire_fields.h"

namespace sterna::migration {

namespace {

std::uintptr_t begin_of(const net::Extent& extent) noexcept {
  return reinterpret_cast<std::uintptr_t>(extent.address);
}

bool is_inside(const net::Extent& extent, std::uint32_t rank) noexcept {
  const std::uintptr_t begin = begin_of(extent);
  if (extent.bytes == 0 || !memory::is_rank_address(begin)) {
    return false;
  }
  const memory::SlotRange slot = memory::slot_at(begin);
  return slot.number == rank && extent.bytes <= slot.bytes - (begin - slot.base);
}

// All but the extents, which the reader checks against each other.
constexpr auto kOffer = [](auto& field, auto& offer) {
  field.number(offer.shape.rank);
  field.number(offer.shape.stack_bytes);
  field.number(offer.shape.images_bytes);
  field.number(offer.shape.system_heap_bytes);
  field.number(offer.shape.user_heap_bytes);
  field.number(offer.fingerprint);
  field.number(offer.source_pid);
  field.number(offer.memory_fd);
  field.number(offer.memory_inode);
  field.number(offer.memory_device);
  field.number(offer.number);
  field.number(offer.memory_bytes);
  field.number(offer.expires_ns);
  field.number(offer.given);
};

}  // namespace

std::vector<std::byte> encode(const Offer& offer) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, kOfferBytesMax};
  wire::FieldWriter field{writer};
  kOffer(field, offer);
  writer.u32(static_cast<std::uint32_t>(offer.extents.size()));
  for (const net::Extent& extent : offer.extents) {
    writer.u64(begin_of(extent));
    writer.u64(extent.bytes);
  }
  check(writer.ok(), "a rank has at most kExtentCountMax live extents");
  return bytes;
}

Result<Offer> decode_offer(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  wire::FieldReader field{reader};
  Offer offer;
  kOffer(field, offer);
  const std::uint32_t count = reader.count(16);
  if (!reader.ok() || count > kExtentCountMax) {
    return Error{Errc::malformed, "an offer of a rank that cannot be read"};
  }
  offer.extents.reserve(count);
  std::uintptr_t end = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uintptr_t begin = reader.u64();
    const net::Extent extent{reinterpret_cast<std::byte*>(begin), reader.u64()};
    if (!reader.ok() || !is_inside(extent, offer.shape.rank) || begin < end) {
      return Error{Errc::malformed, "an offer whose bytes lie outside of the rank's slot"};
    }
    end = begin + extent.bytes;
    offer.extents.push_back(extent);
  }
  if (!reader.finished()) {
    return Error{Errc::malformed, "an offer with bytes after its end"};
  }
  return offer;
}

void normalise(std::vector<net::Extent>& extents) {
  std::ranges::sort(extents, {}, begin_of);
  std::vector<net::Extent> joined;
  for (const net::Extent& extent : extents) {
    if (extent.bytes == 0) {
      continue;
    }
    if (!joined.empty()) {
      net::Extent& last = joined.back();
      const std::uintptr_t last_end = begin_of(last) + last.bytes;
      if (begin_of(extent) <= last_end) {
        last.bytes = std::max(last_end, begin_of(extent) + extent.bytes) - begin_of(last);
        continue;
      }
    }
    joined.push_back(extent);
  }
  extents = std::move(joined);
}

}  // namespace sterna::migration
