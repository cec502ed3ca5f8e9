// The heap of a rank: small blocks, and the choice between small and large.
#include "memory/heap.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <malloc.h>

#include "base/check.h"

namespace sterna::memory {

namespace {

constexpr std::size_t kPlainAlignment = 16;

}  // namespace

Heap* Heap::create_in(const HeapRegion& region) noexcept {
  check(reinterpret_cast<std::uintptr_t>(region.base) % kHeapChunkBytes == 0,
        "the region of a heap is aligned to its chunks");
  check(region.bytes >= kHeapChunkBytes && region.bytes <= region.bytes_max,
        "a heap begins with one mapped chunk at least");
  check(region.bytes % kHeapChunkBytes == 0 && region.bytes_max % kHeapChunkBytes == 0,
        "a heap has whole chunks");
  Heap* heap = ::new (region.base) Heap{false};
  heap->region_bytes_max_ = region.bytes_max;
  heap->mapped_bytes_ = region.bytes;
  heap->extent_bytes_ = kHeapChunkBytes;
  heap->touched_bytes_ = kHeapChunkBytes;
  heap->backing_ = region.backing;
  heap->is_locked_ = region.is_locked;
  heap->colour_bytes_ = region.colour_bytes;
  heap->is_plain_ = !region.is_locked;
  std::fill(std::begin(heap->current_), std::end(heap->current_), &heap->no_span_);
  return heap;
}

Heap* Heap::process() noexcept {
  static constinit Heap heap{true};  // Never changes: being one for the process shares nothing.
  return &heap;
}

void* Heap::allocate_slow(std::size_t bytes, std::size_t alignment) noexcept {
  check(std::has_single_bit(alignment), "an alignment is a power of two");
  bytes = std::max<std::size_t>(bytes, 1);
  if (is_process_) {
    return alignment <= kPlainAlignment
               ? std::malloc(bytes)
               : std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
  }
  const Guard guard{*this};
  return allocate_here(bytes, alignment);
}

void* Heap::allocate_here(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= kPlainAlignment && bytes <= kSmallBytesMax) {
    return allocate_small(class_of(bytes));
  }
  const std::size_t padded = bytes + alignment - kPlainAlignment;
  if (alignment <= kPageBytesOfHeap && padded <= kSmallBytesMax && padded > bytes) {
    auto* block = static_cast<std::byte*>(allocate_small(class_of(padded)));
    if (block == nullptr) {
      return nullptr;
    }
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::size_t skip = (alignment - address % alignment) % alignment;
    run_of<Span>(address)->has_aligned |= skip != 0;
    return block + skip;
  }
  bool is_zero = false;
  return allocate_large(bytes, alignment, &is_zero);
}

void* Heap::allocate_zeroed(std::size_t bytes) noexcept {
  bytes = std::max<std::size_t>(bytes, 1);
  if (is_process_) {
    return std::calloc(1, bytes);
  }
  bool is_zero = false;
  void* block = nullptr;
  if (bytes <= kSmallBytesMax) {
    block = allocate(bytes);
  } else {
    const Guard guard{*this};
    block = allocate_large(bytes, kPlainAlignment, &is_zero);
  }
  if (block != nullptr && !is_zero) {
    std::memset(block, 0, bytes);
  }
  return block;
}

void Heap::deallocate_slow(void* block) noexcept {
  if (block == nullptr) {
    return;
  }
  if (is_process_) {
    std::free(block);
    return;
  }
  const Guard guard{*this};
  deallocate_here(reinterpret_cast<std::uintptr_t>(block));
}

void Heap::deallocate_here(std::uintptr_t address) noexcept {
  Run* run = checked_run(address);
  if (run->magic == kSpanMagic) {
    deallocate_small(static_cast<Span*>(run), address);
    return;
  }
  give_run(run);
}

// The living run that `address` is a block of, or the end of the process.
Run* Heap::checked_run(std::uintptr_t address) noexcept {
  check(address > runs_begin() && address < extent_end(),
        "a block goes back once, to the heap it came from (this address is not of this heap)");
  Run* run = run_of(address);
  check(run->base() >= runs_begin(), "a block goes back to the heap it came from");
  check(run->magic != kFreeMagic, "a block is freed once (this one is free already)");
  if (run->magic == kLargeMagic) {
    check(static_cast<LargeRun*>(run)->block == address,
          "a block is freed by the address that the heap gave");
  } else {
    check(run->magic == kSpanMagic,
          "a freed address is a block of the heap, and nothing was written beyond blocks");
  }
  return run;
}

// The fast path of free met an address that is no block's start, or a block that looks free.
FreeBlock* Heap::examine(Span* span, std::uintptr_t address) noexcept {
  check(address >= span->first_block(), "a freed address is a block of the heap");
  const std::uint32_t index = span->index_of(address);
  const std::uintptr_t start = span->block(index);
  check(index < span->carved_count, "a freed address is a block that was handed out");
  check(start == address || (span->has_aligned && address % (2 * kPlainAlignment) == 0),
        "a block is freed by the address that the heap gave");
  auto* block = reinterpret_cast<FreeBlock*>(start);
  if (block->key == span->key()) {
    // By chance the program wrote our key, or the block is free: the list knows.
    for (const FreeBlock* free = span->free; free != nullptr; free = free->next) {
      check(free != block, "a block is freed once (this one is free already)");
    }
  }
  return block;
}

// No free block in the class's current span: hands out one that was never used, or finds or makes
// another span.
void* Heap::carve(std::uint32_t size_class) noexcept {
  for (;;) {
    Span* span = current_[size_class];
    if (span == &no_span_) {
      break;
    }
    if (FreeBlock* block = span->free; block != nullptr) {
      span->free = block->next;
      ++span->used_count;
      block->key = 0;
      return block;
    }
    if (span->carved_count < span->capacity) {
      ++span->used_count;
      return reinterpret_cast<void*>(span->block(span->carved_count++));
    }
    unlist_span(span);
  }
  bool is_zero = false;
  Run* run = take_run(1, &is_zero);
  if (run == nullptr) {
    return nullptr;
  }
  auto* span = static_cast<Span*>(run);
  span->magic = kSpanMagic;
  span->free = nullptr;
  span->used_count = 1;
  span->carved_count = 1;
  span->size_class = static_cast<std::uint8_t>(size_class);
  span->has_aligned = false;
  span->block_bytes = static_cast<std::uint32_t>(class_bytes(size_class));
  span->first_offset = static_cast<std::uint32_t>(kRunHeaderBytes) + colour_bytes_;
  span->capacity =
      static_cast<std::uint16_t>((kHeapChunkBytes - span->first_offset) / span->block_bytes);
  span->reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + span->block_bytes - 1) /
                                                span->block_bytes);
  list_span(span);
  return reinterpret_cast<void*>(span->first_block());
}

// After a block came back: a full span has room again, an empty one that is not current goes.
void Heap::relist(Span* span) noexcept {
  if (!span->is_listed) {
    list_span(span);
  }
  if (span->used_count == 0 && current_[span->size_class] != span) {
    unlist_span(span);
    give_run(span);
  }
}

void Heap::list_span(Span* span) noexcept {
  Span*& head = current_[span->size_class];
  span->is_listed = true;
  span->previous = nullptr;
  span->next = nullptr;
  if (head == &no_span_) {
    head = span;
    return;
  }
  // Behind the current one, so that a span fills up before the next is touched.
  span->previous = head;
  span->next = head->next;
  if (head->next != nullptr) {
    head->next->previous = span;
  }
  head->next = span;
}

void Heap::unlist_span(Span* span) noexcept {
  Span*& head = current_[span->size_class];
  span->is_listed = false;
  if (span->previous != nullptr) {
    span->previous->next = span->next;
  } else {
    head = span->next != nullptr ? span->next : &no_span_;
  }
  if (span->next != nullptr) {
    span->next->previous = span->previous;
  }
}

std::size_t Heap::usable(void* block) noexcept {
  if (block == nullptr) {
    return 0;
  }
  if (is_process_) {
    return malloc_usable_size(block);
  }
  const Guard guard{*this};
  return usable_here(reinterpret_cast<std::uintptr_t>(block));
}

std::size_t Heap::usable_here(std::uintptr_t address) noexcept {
  Run* run = checked_run(address);
  if (run->magic == kLargeMagic) {
    return static_cast<LargeRun*>(run)->bytes;
  }
  const auto* span = static_cast<Span*>(run);
  check(address >= span->first_block() && span->index_of(address) < span->carved_count,
        "the address is a block of the heap");
  return span->block(span->index_of(address)) + span->block_bytes - address;
}

void* Heap::reallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) {
    return allocate(bytes);
  }
  bytes = std::max<std::size_t>(bytes, 1);
  if (is_process_) {
    return std::realloc(block, bytes);
  }
  std::size_t old_bytes = 0;
  {
    const Guard guard{*this};
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    old_bytes = usable_here(address);
    Run* run = run_of(address);
    const bool stays =
        run->magic == kLargeMagic
            ? bytes > kSmallBytesMax && resize_large(static_cast<LargeRun*>(run), bytes)
            : bytes <= old_bytes && bytes > old_bytes / 2;
    if (stays) {
      return block;
    }
  }
  // Not under the lock: copying may take long.
  void* fresh = allocate(bytes);
  if (fresh != nullptr) {
    std::memcpy(fresh, block, std::min(old_bytes, bytes));
    deallocate(block);
  }
  return fresh;
}

}  // namespace sterna::memory
