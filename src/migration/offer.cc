// Encoding and defensive decoding of offers.
#include "migration/offer.h"

#include <algorithm>

#include "base/wire.h"

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

}  // namespace

std::vector<std::byte> encode(const Offer& offer) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, kOfferBytesMax};
  writer.u32(offer.shape.rank);
  writer.u64(offer.shape.stack_bytes);
  writer.u64(offer.shape.images_bytes);
  writer.u64(offer.shape.system_heap_bytes);
  writer.u64(offer.shape.user_heap_bytes);
  writer.u64(offer.fingerprint);
  writer.u32(offer.source_pid);
  writer.i32(offer.memory_fd);
  writer.u64(offer.memory_inode);
  writer.u64(offer.memory_device);
  writer.u64(offer.number);
  writer.u64(offer.memory_bytes);
  writer.u64(offer.expires_ns);
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
  Offer offer;
  offer.shape.rank = reader.u32();
  offer.shape.stack_bytes = reader.u64();
  offer.shape.images_bytes = reader.u64();
  offer.shape.system_heap_bytes = reader.u64();
  offer.shape.user_heap_bytes = reader.u64();
  offer.fingerprint = reader.u64();
  offer.source_pid = reader.u32();
  offer.memory_fd = reader.i32();
  offer.memory_inode = reader.u64();
  offer.memory_device = reader.u64();
  offer.number = reader.u64();
  offer.memory_bytes = reader.u64();
  offer.expires_ns = reader.u64();
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
