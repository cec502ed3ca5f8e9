// Any bytes: decoding an offer must stay inside them, and accept only extents of one slot.
#include <algorithm>
#include <memory>

#include "memory/iso_space.h"
#include "migration/offer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sterna;
  static auto space = memory::IsoSpace::open({.rank_count = 16});
  const std::span<const std::byte> input{reinterpret_cast<const std::byte*>(data), bytes};
  Result<migration::Offer> offer = migration::decode_offer(input);
  if (offer) {
    for (const net::Extent& extent : offer.value().extents) {
      const memory::RankSlot* slot = memory::rank_slot_of(extent.address);
      check(slot == memory::rank_slot_address(offer.value().shape.rank),
            "extents stay in the slot");
    }
    check(std::ranges::equal(migration::encode(offer.value()), input), "one way to encode");
  }
  return 0;
}
