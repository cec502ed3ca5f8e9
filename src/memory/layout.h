// The plan of the iso-address space: the same in every process of a job. Arithmetic only.
//
//   [kIsoBase + k * kClassAreaBytes, ...)   stack slots of class k: kStackSlotBytesMin << k bytes
//   [kRankBase, kIsoEnd)                    slot of rank r: r-th of 1 << rank_slot_shift() bytes
//
// The slots of an area follow each other from its begin. The top of a stack slot holds the
// descriptor of its thread, below it the stack grows down, at the bottom is a guard page.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/cpu.h"

namespace sterna::memory {

inline constexpr std::size_t kPageBytes = 4096;
// An odd number of pages: at distances of a power of two the pages that switches touch, and the
// entries of their tables, fall on few sets of the processor's caches for them. The page of one of
// 1,000 threads is found in 1 ns in the order of their slots, not in 2.4, and in any order in 4.7,
// not in 17. This is as small as it can be for the usual stack, of 60 KiB; and from class 1 on it
// holds stacks of a power of two, which just did not fit, with all that belongs to them, in slots
// of powers of two.
inline constexpr std::size_t kStackSlotBytesMin = 17 * kPageBytes;
inline constexpr std::uint32_t kStackClassCount = 17;  // 68 KiB to 4.25 GiB.

// 17 TiB, and up to 81 TiB: above the shadow of AddressSanitizer (which ends just past 16 TiB),
// below where Linux loads position-independent executables (85 TiB, 0x5555'...). ThreadSanitizer
// allows programs the first 512 GiB and a few places far above only.
inline constexpr std::uintptr_t kIsoBase = kIsThreadSanitized ? 0x0010'0000'0000 : 0x1100'0000'0000;
inline constexpr std::uint32_t kClassAreaShift = kIsThreadSanitized ? 32 : 40;
inline constexpr std::uint32_t kClassAreaCount = 32;  // Those from kStackClassCount on stay empty.
inline constexpr std::size_t kClassAreaBytes = std::size_t{1} << kClassAreaShift;
inline constexpr std::uintptr_t kRankBase = kIsoBase + kClassAreaCount * kClassAreaBytes;
inline constexpr std::size_t kRankAreaBytes = kClassAreaCount * kClassAreaBytes;
inline constexpr std::uintptr_t kIsoEnd = kRankBase + kRankAreaBytes;
inline constexpr std::uint32_t kRankSlotShiftMin = 30;  // 1 GiB
inline constexpr std::uint32_t kRankSlotShiftMax = 40;  // 1 TiB
inline constexpr std::uint32_t kRankCountMax =
    static_cast<std::uint32_t>(kRankAreaBytes >> kRankSlotShiftMin);

/// The descriptor of a thread has this room at the top of its slot.
inline constexpr std::size_t kDescriptorBytes = 1024;
// Slots begin with a page, so equal offsets fall on the same cache sets: a switch among 1,000
// threads costs 37 ns uncoloured, 9.4 coloured. 32 colours of one line keep the descriptor and the
// first KiB of stack in the top page.
inline constexpr std::uint32_t kColourCount = 32;
inline constexpr std::size_t kColourBytes = 64;
// The colours of each class begin so many further than those of the class before: the first threads
// of two classes, a thread and what it spawns, would have equal offsets too (1 ns of a birth).
inline constexpr std::uint32_t kColourStep = 8;

/// The largest power of two such that `rank_count` slots fit, within 1 GiB and 1 TiB.
[[nodiscard]] constexpr std::uint32_t rank_slot_shift_for(std::uint32_t rank_count) noexcept {
  check(rank_count <= kRankCountMax, "a job has at most kRankCountMax ranks");
  const std::size_t slot_count = std::bit_ceil(std::size_t{rank_count == 0 ? 1 : rank_count});
  const std::size_t room = kRankAreaBytes / slot_count;
  const auto shift = static_cast<std::uint32_t>(std::bit_width(room) - 1);
  return shift > kRankSlotShiftMax ? kRankSlotShiftMax : shift;
}

namespace detail {
// The one value below runtime/ that belongs to the process: several IsoSpaces (simulated nodes)
// share the addresses, hence the layout. Written by the first IsoSpace::open, which later ones must
// agree with; constant after it. 0: no space is open, so no address is a rank's.
extern constinit std::uint32_t rank_slot_shift;
}  // namespace detail

[[nodiscard]] inline std::uint32_t rank_slot_shift() noexcept {
  return detail::rank_slot_shift;
}

/// A slot found from an address inside it. bytes == 0: the address is not in the iso space.
struct SlotRange {
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
  std::uint32_t number = 0;  // In its class; for the slot of a rank: the rank.
};

[[nodiscard]] inline bool is_rank_address(std::uintptr_t address) noexcept {
  return address - kRankBase < kRankAreaBytes && rank_slot_shift() != 0;
}
/// Of any address in the iso space, and of some others that lie between its areas.
[[nodiscard]] constexpr bool is_near_iso(std::uintptr_t address) noexcept {
  return address - kIsoBase < kIsoEnd - kIsoBase;
}
[[nodiscard]] constexpr bool is_stack_address(std::uintptr_t address) noexcept {
  return address - kIsoBase < kStackClassCount * kClassAreaBytes;
}

namespace detail {
/// offset / kStackSlotBytesMin, by one multiplication: exact below 2^47, since the error of the
/// factor, which is less than kStackSlotBytesMin, times the offset stays below 2^64.
[[nodiscard]] constexpr std::uintptr_t whole_slots(std::uintptr_t offset) noexcept {
  __extension__ using Wide = unsigned __int128;
  constexpr std::uint64_t kFactor = ~std::uint64_t{0} / kStackSlotBytesMin + 1;
  static_assert(kStackSlotBytesMin < 1 << 17 && kIsoEnd <= std::uintptr_t{1} << 47);
  return static_cast<std::uintptr_t>(Wide{offset} * kFactor >> 64);
}
}  // namespace detail

[[nodiscard]] constexpr std::size_t stack_slot_bytes(std::uint32_t stack_class) noexcept {
  return kStackSlotBytesMin << stack_class;
}
/// The smallest class whose slots have so many bytes; for more than there are: kStackClassCount or
/// above.
[[nodiscard]] constexpr std::uint32_t stack_class_for(std::size_t slot_bytes) noexcept {
  return static_cast<std::uint32_t>(std::bit_width((slot_bytes - 1) / kStackSlotBytesMin));
}
/// Where the slots of a class begin.
[[nodiscard]] constexpr std::uintptr_t stack_area(std::uint32_t stack_class) noexcept {
  return kIsoBase + (std::uintptr_t{stack_class} << kClassAreaShift);
}
/// Of an is_stack_address().
[[nodiscard]] constexpr std::uint32_t stack_class_at(std::uintptr_t address) noexcept {
  return static_cast<std::uint32_t>((address - kIsoBase) >> kClassAreaShift);
}

/// The slot that contains `address`, touching no memory but the shift above.
[[nodiscard]] inline SlotRange slot_at(std::uintptr_t address) noexcept {
  if (is_stack_address(address)) {
    const std::uint32_t stack_class = stack_class_at(address);
    const std::uintptr_t area = stack_area(stack_class);
    const std::uintptr_t number = detail::whole_slots((address - area) >> stack_class);
    const std::size_t bytes = stack_slot_bytes(stack_class);
    return {area + number * bytes, bytes, static_cast<std::uint32_t>(number)};
  }
  if (is_rank_address(address)) {
    const std::uint32_t shift = rank_slot_shift();
    const std::uintptr_t number = (address - kRankBase) >> shift;
    return {kRankBase + (number << shift), std::size_t{1} << shift,
            static_cast<std::uint32_t>(number)};
  }
  return {};
}

/// Bytes of the slot that contains `address`, 0: not iso.
[[nodiscard]] inline std::size_t slot_bytes_at(std::uintptr_t address) noexcept {
  return slot_at(address).bytes;
}

// What a rank touches first lies together, so that one page of page tables serves it: below this
// offset its stack (growing down), above it the header of the slot (a RankSlot), then the
// thread-local block and the system heap. rank_slot.h has the whole plan.
inline constexpr std::size_t kRankHeadBytes = 512 << 10;
[[nodiscard]] constexpr std::size_t rank_head_offset(std::size_t slot_bytes) noexcept {
  return slot_bytes / 8 + kRankHeadBytes;
}

[[nodiscard]] constexpr std::size_t colour_offset(std::uint32_t slot_number) noexcept {
  return (slot_number % kColourCount) * kColourBytes;
}

namespace detail {
/// descriptor_address() of an address in a slot of the first class.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t first_class_descriptor(
    std::uintptr_t address) noexcept {
  constexpr std::uintptr_t kOrigin = kIsoBase % kStackSlotBytesMin == 0 ? 0 : kIsoBase;
  constexpr std::uintptr_t kBefore = (kIsoBase - kOrigin) / kStackSlotBytesMin;
  constexpr std::uintptr_t kFirst =
      kStackSlotBytesMin - kDescriptorBytes - (kColourCount - 1) * kColourBytes;
  const std::uintptr_t number = whole_slots(address - kOrigin);
  const std::uintptr_t colour = (number - kBefore) % kColourCount * kColourBytes;
  std::uintptr_t slot_bytes = kStackSlotBytesMin;
  asm("" : "+r"(slot_bytes));  // One multiplication: the compiler would take four steps.
  const std::uintptr_t descriptor = kOrigin + number * slot_bytes + (kFirst + colour);
  if (descriptor == 0) {
    __builtin_unreachable();  // So nobody asks.
  }
  return descriptor;
}
/// The same for a larger class, some steps less than by slot_at(). The colours of stacks are
/// counted down, not up: then the address is a sum.
[[nodiscard]] constexpr std::uintptr_t other_class_descriptor(std::uintptr_t address) noexcept {
  static_assert(kIsoBase % kClassAreaBytes == 0);
  constexpr std::uintptr_t kBelowFirst = kDescriptorBytes + (kColourCount - 1) * kColourBytes;
  const std::uintptr_t stack_class = (address - kIsoBase) >> kClassAreaShift;
  const std::uintptr_t offset = address % kClassAreaBytes;
  const std::uintptr_t number = whole_slots(offset >> stack_class);
  const std::uintptr_t colour = (number + kColourStep * stack_class) % kColourCount * kColourBytes;
  return address - offset + (((number + 1) * kStackSlotBytesMin) << stack_class) + colour -
         kBelowFirst;
}
}  // namespace detail

/// descriptor_address() of an address in a stack slot; 0: in none.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t stack_descriptor_address(
    std::uintptr_t address) noexcept {
  // This is how most calls of the runtime begin: so stacks of the first class, which the usual ones
  // have, are looked at on their own, without a step that is not needed.
  if (address - kIsoBase < kClassAreaBytes) [[likely]] {
    return detail::first_class_descriptor(address);
  }
  return is_stack_address(address) ? detail::other_class_descriptor(address) : 0;
}

/// Where the descriptor of the slot's thread lies, given any address in the slot, e.g. a stack
/// pointer; 0: not iso. For a rank's slot: of the rank's main thread. kDescriptorBytes long,
/// aligned to 64; the stack starts below it. Inline always: threads::self() is in every wait.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t descriptor_address(
    std::uintptr_t address) noexcept {
  if (const std::uintptr_t found = stack_descriptor_address(address); found != 0) [[likely]] {
    return found;
  }
  if (!is_rank_address(address)) {
    return 0;
  }
  const SlotRange slot = slot_at(address);
  return slot.base + rank_head_offset(slot.bytes) - kDescriptorBytes - colour_offset(slot.number);
}

}  // namespace sterna::memory
