// The parts of a rank's slot, and what of them must be copied when the rank moves.
#include "memory/rank_slot.h"

#include <algorithm>

#include "base/check.h"

namespace sterna::memory {

namespace {

constexpr std::size_t kStackGapBytes = 64 << 10;  // Never mapped: the slot below ends here.
constexpr std::size_t kRedZoneBytes = 128;        // What a leaf function uses below its pointer.

std::span<std::byte> bytes_of(std::uintptr_t from, std::uintptr_t to) noexcept {
  return {reinterpret_cast<std::byte*>(from), to - from};
}

}  // namespace

bool RankSlot::has_refusal() const noexcept {
  return std::any_of(std::begin(refusals), std::end(refusals),
                     [](const auto& count) { return count.load(std::memory_order_relaxed) != 0; });
}

RankRegions rank_regions(std::uint32_t rank) noexcept {
  const std::size_t bytes = std::size_t{1} << rank_slot_shift();
  const std::uintptr_t base = kRankBase + (std::uintptr_t{rank} << rank_slot_shift());
  const std::uintptr_t head = base + rank_head_offset(bytes);
  const auto region = [](std::uintptr_t from, std::uintptr_t to) {
    return Region{.base = from, .bytes = 0, .bytes_max = to - from};
  };
  return {.stack = region(base + kStackGapBytes, head),
          .head = region(head, head + kPageBytes),
          .tls = region(head + kPageBytes, head + kRankHeadBytes),
          .system_heap = region(head + kRankHeadBytes, base + bytes / 4),
          .images = region(base + bytes / 4, base + bytes / 2),
          .user_heap = region(base + bytes / 2, base + bytes)};
}

RankShape shape_of(const RankSlot& slot) noexcept {
  return {.rank = slot.rank,
          .stack_bytes = slot.stack.bytes,
          .images_bytes = slot.images.bytes,
          .system_heap_bytes = slot.system_heap->mapped_bytes(),
          .user_heap_bytes = slot.user_heap->mapped_bytes()};
}

void for_each_live_extent(RankSlot& slot, std::uintptr_t stack_pointer,
                          FunctionRef<void(std::span<std::byte>)> extent) noexcept {
  const std::uintptr_t stack_end = slot.stack.base + slot.stack.bytes;
  const std::uintptr_t stack_low = stack_pointer - kRedZoneBytes;
  check(stack_low >= slot.stack.base && stack_pointer <= stack_end,
        "the stack pointer of a rank that moves lies in its stack");
  const std::uintptr_t head_end =
      slot.tls.base + ((slot.tls_bytes_used + kPageBytes - 1) & ~(kPageBytes - 1));
  // Stack, header and thread-local block are neighbours: one extent.
  extent(bytes_of(stack_low & ~(kPageBytes - 1), head_end));
  slot.system_heap->for_each_live_extent(extent);
  slot.user_heap->for_each_live_extent(extent);
}

}  // namespace sterna::memory
