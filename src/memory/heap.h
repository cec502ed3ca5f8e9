// The heap of a rank: an allocator whose whole state lies in the region it manages, so that the
// bytes can be copied to the same addresses of another process and go on. No thread-local state, no
// call of libc's allocator. Small blocks come from 64 KiB spans of one size class, large ones from
// runs of 64 KiB chunks.
//
// In process mode (a rank is a whole process) the same type forwards to libc: Heap::process().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/annotate.h"
#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "memory/heap_layout.h"

namespace sterna::memory {

enum class HeapBacking : std::uint8_t {
  private_pages,  // Anonymous memory: MADV_DONTNEED gives pages back.
  shared_file,    // A mapping of a memfd: MADV_REMOVE does.
};

/// Memory for a heap: `base` is aligned to kHeapChunkBytes; `bytes` are mapped and zero; up to
/// `bytes_max` the heap may extend the mapping in place (mremap). Equal numbers: it stays.
struct HeapRegion {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::size_t bytes_max = 0;
  HeapBacking backing = HeapBacking::private_pages;
  bool is_locked = false;  // Several kernel threads use it at once.
  // Small blocks begin that much later in their chunks, a multiple of 64 below 4096: heaps at
  // equal offsets of aligned slots would share cache sets, block by block.
  std::uint32_t colour_bytes = 0;
};

struct HeapCounters {
  std::uint64_t live_bytes = 0;    // In blocks handed out, rounded to their classes.
  std::uint64_t live_count = 0;    // Blocks handed out.
  std::uint64_t extent_bytes = 0;  // From the base to the highest run ever used.
  std::uint64_t mapped_bytes = 0;
};

/// One kernel thread at a time, unless it is locked; a user thread does not switch inside. A broken
/// rule of the user (double free, foreign pointer, overrun of a block into a header) is found where
/// it is cheap, and stops the process with a sentence.
class Heap {
 public:
  /// The heap lies at the start of its region. Bytes needed: one chunk at least.
  [[nodiscard]] static Heap* create_in(const HeapRegion& region) noexcept;
  /// The heap that forwards to libc's malloc. No state: one for the process.
  [[nodiscard]] static Heap* process() noexcept;

  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Null: no memory (never because of 0 bytes: that gives a block of its own). `alignment` is a
  /// power of two.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 16) noexcept {
    if (bytes - 1 < kSmallBytesMax && alignment <= 16 && is_plain_) [[likely]] {
      return allocate_small(class_of(bytes));
    }
    return allocate_slow(bytes, alignment);
  }
  /// As calloc, but never clears memory that is still zero.
  [[nodiscard]] void* allocate_zeroed(std::size_t bytes) noexcept;
  /// Null is allowed.
  void deallocate(void* block) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    // Less one, as no block starts where the heap does: the chunk before is not ours to read.
    if (is_plain_ && address - 1 - reinterpret_cast<std::uintptr_t>(this) < extent_bytes_)
        [[likely]] {
      Span* span = run_of<Span>(address);
      if (span->magic == kSpanMagic) [[likely]] {
        deallocate_small(span, address);
        return;
      }
    }
    deallocate_slow(block);
  }
  /// As realloc; in place where it can. Null: no memory, the old block stays. 0 bytes: a block.
  [[nodiscard]] void* reallocate(void* block, std::size_t bytes) noexcept;
  /// What may be written, at least what was asked for.
  [[nodiscard]] std::size_t usable(void* block) noexcept;

  /// Says whether the address lies in this heap's region (false for the process heap).
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(this) <
           region_bytes_max_;
  }
  [[nodiscard]] std::size_t live_bytes() noexcept;
  [[nodiscard]] HeapCounters counters() noexcept;
  [[nodiscard]] std::size_t mapped_bytes() const noexcept {
    // Relaxed: others read it while the rank grows its heap; a number of before is as good.
    return __atomic_load_n(&mapped_bytes_, __ATOMIC_RELAXED);
  }
  [[nodiscard]] bool is_process() const noexcept { return is_process_; }
  /// The pages that carry the heap's contents, ascending, adjacent ones joined: the heap itself,
  /// blocks once handed out, headers. All others may be lost (read as zero). None for the process
  /// heap. The heap must not change meanwhile.
  /// Takes no lock: nobody else uses the heap meanwhile, so the callback may copy the bytes.
  void for_each_live_extent(FunctionRef<void(std::span<std::byte>)> extent) noexcept;
  /// Gives free pages back to the system now.
  void trim() noexcept;
  /// Reads all of the heap; a broken rule stops the process. For tests and debug builds.
  void check_invariants() noexcept;

 private:
  // Holds lock_ if the heap is locked.
  class Guard {
   public:
    explicit Guard(Heap& heap) noexcept STERNA_LOCKS_UNCHECKED : heap_{heap} {
      if (heap_.is_locked_) {
        heap_.lock_.lock();
      }
    }
    ~Guard() STERNA_LOCKS_UNCHECKED {
      if (heap_.is_locked_) {
        heap_.lock_.unlock();
      }
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Heap& heap_;
  };

  constexpr explicit Heap(bool is_process) noexcept : is_process_{is_process} {}

  void* allocate_small(std::uint32_t size_class) noexcept {
    Span* span = current_[size_class];
    FreeBlock* block = span->free;
    if (block == nullptr) [[unlikely]] {
      return carve(size_class);
    }
    span->free = block->next;
    ++span->used_count;
    block->key = 0;
    return block;
  }
  void deallocate_small(Span* span, std::uintptr_t address) noexcept {
    auto* block = reinterpret_cast<FreeBlock*>(address);
    if (span->block(span->index_of(address)) != address || block->key == span->key()) [[unlikely]] {
      block = examine(span, address);
    }
    block->next = span->free;
    block->key = span->key();
    span->free = block;
    --span->used_count;
    if (!span->is_listed || (span->used_count == 0 && current_[span->size_class] != span))
        [[unlikely]] {
      relist(span);
    }
  }

  // Small blocks (heap.cc).
  void* allocate_slow(std::size_t bytes, std::size_t alignment) noexcept;
  void deallocate_slow(void* block) noexcept;
  void* allocate_here(std::size_t bytes, std::size_t alignment) noexcept;
  void deallocate_here(std::uintptr_t address) noexcept;
  void* carve(std::uint32_t size_class) noexcept;
  FreeBlock* examine(Span* span, std::uintptr_t address) noexcept;
  void relist(Span* span) noexcept;
  void list_span(Span* span) noexcept;
  void unlist_span(Span* span) noexcept;
  std::size_t usable_here(std::uintptr_t address) noexcept;
  Run* checked_run(std::uintptr_t address) noexcept;

  // Runs of chunks (heap_runs.cc).
  Run* take_run(std::uint32_t chunk_count, bool* is_zero) noexcept;
  Run* extend(std::uint32_t chunk_count, bool* is_zero) noexcept;
  void give_run(Run* run) noexcept;
  void split(Run* run, std::uint32_t chunk_count) noexcept;
  void* allocate_large(std::size_t bytes, std::size_t alignment, bool* is_zero) noexcept;
  bool resize_large(LargeRun* run, std::size_t bytes) noexcept;
  FreeRun* best_fit(std::uint32_t chunk_count) noexcept;
  void bin_run(Run* run, bool is_dirty) noexcept;
  void unbin_run(FreeRun* run) noexcept;
  bool purge(std::uintptr_t from, std::uintptr_t to) noexcept;
  void purge_run(FreeRun* run) noexcept;
  void purge_above() noexcept;
  void retain_or_purge(FreeRun* run) noexcept;
  bool map_up_to(std::uint64_t bytes) noexcept;
  Run* next_run(Run* run) noexcept;
  std::uintptr_t runs_begin() const noexcept;
  std::uintptr_t extent_end() const noexcept;
  void check_span(const Span& span) const noexcept;
  void check_bins() const noexcept;

  // Guard of all: the caller (one kernel thread), or lock_ when the heap is locked.
  Span* current_[kSizeClassCount] = {};  // Head of the class's spans with room, or &no_span_.
  std::uint64_t extent_bytes_ = 0;       // From this to the end of the last run.
  std::uint64_t region_bytes_max_ = 0;   // Constant after creation.
  bool is_plain_ = false;                // Neither process nor locked: the fast path. Constant.
  const bool is_process_;                // Constant.
  bool is_locked_ = false;               // Constant.
  HeapBacking backing_ = HeapBacking::private_pages;  // Constant.
  std::uint32_t colour_bytes_ = 0;                    // Constant.
  SpinLock lock_;
  std::uint64_t mapped_bytes_ = 0;
  std::uint64_t touched_bytes_ = 0;  // Beyond this the region is still zero.
  std::uint64_t dirty_bytes_ = 0;    // In free runs and above the extent: not given back.
  std::uint32_t last_count_ = 0;     // Chunks of the last run; 0: there is none.
  std::uint64_t bins_filled_ = 0;    // Bit i: bins_[i] is not empty.
  FreeRun* bins_[kRunBinCount] = {};
  Span no_span_ = {};  // Full for ever: ends the fast path without a test.
};

static_assert(sizeof(Heap) <= 2048, "a heap's state and its first blocks share few pages");

}  // namespace sterna::memory
