// The slot of a rank: everything that moves when the rank moves, at one place, at the same address
// in every node. This header of it says where the parts are and carries what the floors hang there.
//
//   offset (slot of S bytes, H = S/8 + 512 KiB)
//   64 KiB .. H               stack, growing down from H; at its top the descriptor of the main
//                             thread; what is not mapped below it guards it
//   H  .. H + 4 KiB           RankSlot, at a coloured offset: use rank_slot_of()
//   H + 4 KiB .. H + 512 KiB  thread-local block of the rank (a larger one: in images)
//   H + 512 KiB .. S/4        system heap: what the runtime keeps for this rank
//   S/4 .. S/2                images: private data of the program, and text mapped from files
//   S/2 .. S                  user heap: malloc of the program
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/heap.h"
#include "memory/layout.h"

namespace sterna::threads {
struct Thread;
}

namespace sterna::memory {

inline constexpr std::uint32_t kRefusalKindCount = 32;  // migration/refusal.h names them.

/// A part of a slot. `bytes` are mapped, `bytes_max` are set aside.
struct Region {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_max = 0;

  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept {
    return address - base < bytes_max;
  }
};

struct Extent {
  std::uintptr_t base = 0;
  std::uint64_t bytes = 0;
};

struct RankOptions {
  std::size_t stack_bytes = std::size_t{8} << 20;
  bool is_heap_locked = false;  // Kernel threads other than the rank's worker use its heaps.
};

/// What another node must know to prepare the slot. Goes over the wire as these numbers.
struct RankShape {
  std::uint32_t rank = 0;
  std::uint64_t stack_bytes = 0;
  std::uint64_t images_bytes = 0;
  std::uint64_t system_heap_bytes = 0;
  std::uint64_t user_heap_bytes = 0;

  bool operator==(const RankShape&) const = default;
};

/// Moves as bytes: pointers in it are into this slot, or to text and tables that are at the same
/// address in every node.
struct RankSlot {
  static constexpr std::uint64_t kMagic = 0x6b6e6172'6e726574;  // "ternrank"
  static constexpr std::uint32_t kLayoutVersion = 4;

  std::uint64_t magic = kMagic;
  std::uint32_t layout_version = kLayoutVersion;
  std::uint32_t rank = 0;

  // Written by the loader before the rank runs, then constant.
  std::uintptr_t thread_pointer = 0;  // What %fs (or tpidr_el0) is while user code runs.
  threads::Thread* thread = nullptr;  // The rank's main thread; its descriptor is in the slot.
  std::uint64_t tls_bytes_used = 0;   // From the start of the tls region.

  // Roots of the floors above. Each is written by its floor only, in the rank's own context.
  void* mpi = nullptr;       // mpi::RankState, while direct messages may be made; else null.
  void* endpoint = nullptr;  // net::Endpoint, in the system heap; guard: its RankEntry's lock.
  void* program = nullptr;   // program's record of images and descriptors, in the system heap.
  void* context = nullptr;   // runtime::RankContext, in the system heap.
  // Of the node that it is on: written at MPI_Init and at each arrival. See net/matching/direct.h.
  void* direct_way = nullptr;    // net::DirectWay.
  void* rank_entries = nullptr;  // net::RankEntry, one a rank of the job.

  // Constant after creation, but for `bytes` of images (the loader) and of the heaps, which is
  // theirs to know: see shape_of().
  Region stack;
  Region tls;
  Region images;
  Region system_heap_region;
  Region user_heap_region;
  Heap* system_heap = nullptr;
  Heap* user_heap = nullptr;

  // Node that the rank shall move to, or -1. Set by anyone (release), taken by the rank at a safe
  // point (exchange, acquire).
  std::atomic<std::int32_t> move_request{-1};
  // Whose the rank is while it goes from one node to another: migration/custody.h.
  std::atomic<std::uint64_t> custody{0};
  // How many reasons of each kind hold the rank here. Relaxed: read by the rank itself to decide,
  // by others to report.
  std::atomic<std::uint32_t> refusals[kRefusalKindCount] = {};

  // Load since the last measure; relaxed, they order nothing. Written by the rank's side only.
  std::atomic<std::uint64_t> cpu_ns{0};
  std::atomic<std::uint64_t> messages{0};
  std::atomic<std::uint64_t> message_bytes{0};
  std::atomic<std::uint64_t> moves{0};

  [[nodiscard]] bool has_refusal() const noexcept;
};

// Page and colours: the header never leaves its page.
static_assert(sizeof(RankSlot) + (kColourCount - 1) * kColourBytes <= kPageBytes);

/// Where the header of a rank is, mapped or not.
[[nodiscard]] inline RankSlot* rank_slot_address(std::uint32_t rank) noexcept {
  return reinterpret_cast<RankSlot*>(kRankBase + (std::uintptr_t{rank} << rank_slot_shift()) +
                                     rank_head_offset(std::size_t{1} << rank_slot_shift()) +
                                     colour_offset(rank));
}

/// The slot that an address is in, null when outside all rank slots. Arithmetic only: does not say
/// whether that rank is mapped here.
[[nodiscard]] inline RankSlot* rank_slot_of(std::uintptr_t address) noexcept {
  if (!is_rank_address(address)) {
    return nullptr;
  }
  return rank_slot_address(static_cast<std::uint32_t>((address - kRankBase) >> rank_slot_shift()));
}
[[nodiscard]] inline RankSlot* rank_slot_of(const void* address) noexcept {
  return rank_slot_of(reinterpret_cast<std::uintptr_t>(address));
}

/// The regions of a slot, with nothing mapped.
struct RankRegions {
  Region stack, head, tls, system_heap, images, user_heap;  // head: the page of the header
};
[[nodiscard]] RankRegions rank_regions(std::uint32_t rank) noexcept;

[[nodiscard]] RankShape shape_of(const RankSlot& slot) noexcept;

/// The bytes that must be copied to move the rank, in ascending order, without overlap: header,
/// tls, stack from `stack_pointer` (minus the red zone) up to and with the descriptor, live parts
/// of both heaps. What of the images must, the loader knows. The rank does not run meanwhile.
void for_each_live_extent(RankSlot& slot, std::uintptr_t stack_pointer,
                          FunctionRef<void(std::span<std::byte>)> extent) noexcept;

}  // namespace sterna::memory
