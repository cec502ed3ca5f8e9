// What lies in the memory of a heap: runs of chunks, each with a header at its start, one after the
// other from the first chunk to the end of the extent. Private to the heap; here for its fast path.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace sterna::memory {

inline constexpr std::size_t kHeapChunkBytes = 64 << 10;
inline constexpr std::size_t kRunHeaderBytes = 64;
inline constexpr std::size_t kPageBytesOfHeap = 4096;
inline constexpr std::size_t kSmallBytesMax = 28672;  // Two blocks of it fit in a span.
inline constexpr std::uint32_t kSizeClassCount = 39;
inline constexpr std::uint32_t kRunBinCount = 64;

/// 16, 32, ... 128, then four sizes a doubling: a block wastes at most a fifth. 0 bytes and more
/// than kSmallBytesMax are not asked.
[[nodiscard]] constexpr std::uint32_t class_of(std::size_t bytes) noexcept {
  const std::size_t last = bytes - 1;
  if (last < 128) {
    return static_cast<std::uint32_t>(last >> 4);
  }
  const auto log = static_cast<std::uint32_t>(std::bit_width(last) - 1);
  return 8 + (log - 7) * 4 + static_cast<std::uint32_t>(last >> (log - 2)) - 4;
}

[[nodiscard]] constexpr std::size_t class_bytes(std::uint32_t size_class) noexcept {
  if (size_class < 8) {
    return (size_class + 1) * std::size_t{16};
  }
  const std::uint32_t log = 7 + (size_class - 8) / 4;
  return std::size_t{5 + (size_class - 8) % 4} << (log - 2);
}
static_assert(class_bytes(kSizeClassCount - 1) == kSmallBytesMax);

/// A free block of a span. `key` tells a block that is freed twice from a living one.
struct FreeBlock {
  FreeBlock* next;
  std::uint64_t key;
};

inline constexpr std::uint64_t kSpanMagic = 0x6e617073'6e726574;   // "ternspan"
inline constexpr std::uint64_t kLargeMagic = 0x6772616c'6e726574;  // "ternlarg"
inline constexpr std::uint64_t kFreeMagic = 0x65657266'6e726574;   // "ternfree"

/// What all runs begin with. Runs have no gaps: the neighbours are found by the counts.
struct Run {
  std::uint64_t magic;
  std::uint32_t chunk_count;
  std::uint32_t previous_count;  // Chunks of the run before; 0: the first run.

  [[nodiscard]] std::uintptr_t base() const noexcept {
    return reinterpret_cast<std::uintptr_t>(this);
  }
  [[nodiscard]] std::uintptr_t end() const noexcept {
    return base() + chunk_count * kHeapChunkBytes;
  }
};

/// One chunk of blocks of one size.
struct Span : Run {
  FreeBlock* free;  // Blocks given back; those never used start at carved_count.
  std::uint16_t used_count;
  std::uint16_t carved_count;
  std::uint16_t capacity;
  std::uint8_t size_class;
  bool is_listed : 1;    // In the list of its class; else it is full.
  bool has_aligned : 1;  // Addresses inside its blocks were handed out.
  std::uint32_t block_bytes;
  std::uint32_t reciprocal;    // ceil(2^32 / block_bytes): divides any offset in a chunk.
  std::uint32_t first_offset;  // Of the first block: behind the header and the heap's colour.
  Span* previous;              // In the list of the class.
  Span* next;

  [[nodiscard]] std::uintptr_t first_block() const noexcept { return base() + first_offset; }
  [[nodiscard]] std::uint32_t index_of(std::uintptr_t address) const noexcept {
    return static_cast<std::uint32_t>(((address - first_block()) * reciprocal) >> 32);
  }
  [[nodiscard]] std::uintptr_t block(std::uint32_t index) const noexcept {
    return first_block() + std::uintptr_t{index} * block_bytes;
  }
  [[nodiscard]] std::uint64_t key() const noexcept { return base() ^ 0xd15ea5ed'f4eeb10c; }
};

/// One block handed out, of any size.
struct LargeRun : Run {
  std::uintptr_t block;  // Its address, in (base, base + chunk].
  std::uint64_t bytes;   // Those that may be written.
};

struct FreeRun : Run {
  FreeRun* previous;
  FreeRun* next;
  bool is_dirty;  // Beyond the header some bytes may not be zero.
};

static_assert(sizeof(Span) <= kRunHeaderBytes && sizeof(LargeRun) <= kRunHeaderBytes &&
              sizeof(FreeRun) <= kRunHeaderBytes);

/// The run whose block starts at `address`. No block starts at a chunk's first byte but those that
/// belong to the chunk before.
template <typename T = Run>
[[nodiscard]] T* run_of(std::uintptr_t address) noexcept {
  return reinterpret_cast<T*>((address - 1) & ~(kHeapChunkBytes - 1));
}

}  // namespace sterna::memory
