// The heap of a rank: runs of chunks, best fit, and their return to the system.
#include <algorithm>
#include <bit>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/check.h"
#include "base/syscall.h"
#include "memory/heap.h"

namespace sterna::memory {

namespace {

// Freed memory that a heap keeps for its next blocks: a program that frees and allocates the same
// large blocks in a loop pays no page faults. Beyond it goes back to the system.
constexpr std::uint64_t kRetainedBytesMin = 16 << 20;
constexpr std::uint64_t kRetainedShare = 8;  // And one eighth of the heap.
// The mapping grows by half of itself, within these: few system calls, few pages for a core dump.
constexpr std::uint64_t kGrowthBytesMin = 1 << 20;
constexpr std::uint64_t kGrowthBytesMax = 256 << 20;
constexpr int kFitSteps = 32;  // Bound of the search in a bin: the best of these.

// Exact bins for small runs, one a power of two above.
std::uint32_t bin_of(std::uint32_t chunk_count) noexcept {
  return chunk_count <= 32 ? chunk_count - 1
                           : 26 + static_cast<std::uint32_t>(std::bit_width(chunk_count));
}

}  // namespace

std::uintptr_t Heap::runs_begin() const noexcept {
  return reinterpret_cast<std::uintptr_t>(this) + kHeapChunkBytes;
}

std::uintptr_t Heap::extent_end() const noexcept {
  return reinterpret_cast<std::uintptr_t>(this) + extent_bytes_;
}

Run* Heap::next_run(Run* run) noexcept {
  return run->end() == extent_end() ? nullptr : reinterpret_cast<Run*>(run->end());
}

FreeRun* Heap::best_fit(std::uint32_t chunk_count) noexcept {
  std::uint64_t candidates = bins_filled_ >> bin_of(chunk_count) << bin_of(chunk_count);
  while (candidates != 0) {
    FreeRun* best = nullptr;
    FreeRun* run = bins_[std::countr_zero(candidates)];
    for (int steps = 0; run != nullptr && steps < kFitSteps; ++steps, run = run->next) {
      if (run->chunk_count >= chunk_count &&
          (best == nullptr || run->chunk_count < best->chunk_count)) {
        best = run;
      }
    }
    if (best != nullptr) {
      return best;
    }
    candidates &= candidates - 1;
  }
  return nullptr;
}

// A run of exactly this many chunks, in no bin, with its counts set. Null: no memory.
Run* Heap::take_run(std::uint32_t chunk_count, bool* is_zero) noexcept {
  FreeRun* run = best_fit(chunk_count);
  if (run == nullptr) {
    return extend(chunk_count, is_zero);
  }
  *is_zero = !run->is_dirty;
  unbin_run(run);
  const bool is_dirty = run->is_dirty;
  if (run->chunk_count > chunk_count) {
    split(run, chunk_count);
    bin_run(next_run(run), is_dirty);
  }
  return run;
}

// Cuts a run in two; the second has counts only, and is not yet in a bin.
void Heap::split(Run* run, std::uint32_t chunk_count) noexcept {
  const std::uint32_t rest_count = run->chunk_count - chunk_count;
  Run* after = next_run(run);
  run->chunk_count = chunk_count;
  auto* rest = reinterpret_cast<Run*>(run->end());
  rest->magic = kFreeMagic;
  rest->chunk_count = rest_count;
  rest->previous_count = chunk_count;
  if (after != nullptr) {
    after->previous_count = rest_count;
  } else {
    last_count_ = rest_count;
  }
}

// A run from above the extent.
Run* Heap::extend(std::uint32_t chunk_count, bool* is_zero) noexcept {
  const std::uint64_t bytes = chunk_count * kHeapChunkBytes;
  if (bytes > region_bytes_max_ - extent_bytes_ || !map_up_to(extent_bytes_ + bytes)) {
    return nullptr;
  }
  auto* run = reinterpret_cast<Run*>(extent_end());
  *is_zero = extent_bytes_ >= touched_bytes_;
  run->chunk_count = chunk_count;
  run->previous_count = last_count_;
  last_count_ = chunk_count;
  const std::uint64_t old_touched = touched_bytes_;
  extent_bytes_ += bytes;
  touched_bytes_ = std::max(touched_bytes_, extent_bytes_);
  // What was above the extent and not given back is in use again.
  dirty_bytes_ -= std::min(old_touched - std::min(old_touched, extent_bytes_ - bytes), bytes);
  return run;
}

bool Heap::map_up_to(std::uint64_t bytes) noexcept {
  if (bytes <= mapped_bytes_) {
    return true;
  }
  const std::uint64_t step =
      std::clamp(mapped_bytes_ / 2, kGrowthBytesMin, kGrowthBytesMax) & ~(kHeapChunkBytes - 1);
  const std::uint64_t target = std::min(std::max(bytes, mapped_bytes_ + step), region_bytes_max_);
  // In place: without MREMAP_MAYMOVE the last mapped page grows or nothing happens. (A page, not a
  // chunk: mbind or madvise of the program may have cut the mapping inside a chunk.) Needs no file
  // descriptor, and the raw call no errno: user code may be on any thread pointer.
  const auto last = reinterpret_cast<long>(this) + static_cast<long>(mapped_bytes_) -
                    static_cast<long>(kPageBytesOfHeap);
  const long result =
      raw_system_call(SYS_mremap, last, static_cast<long>(kPageBytesOfHeap),
                      static_cast<long>(target - mapped_bytes_ + kPageBytesOfHeap), 0);
  if (result != last) {
    return false;
  }
  __atomic_store_n(&mapped_bytes_, target, __ATOMIC_RELAXED);  // See mapped_bytes().
  return true;
}

// A run is free: joins its free neighbours, then goes into a bin, or lowers the extent.
void Heap::give_run(Run* run) noexcept {
  Run* after = next_run(run);
  if (after != nullptr && after->magic == kFreeMagic) {
    unbin_run(static_cast<FreeRun*>(after));
    run->chunk_count += after->chunk_count;
    // No stale header stays: memory that is called zero must be, and a late free must be noticed.
    std::memset(static_cast<void*>(after), 0, kRunHeaderBytes);
  }
  if (run->previous_count != 0) {
    auto* before = reinterpret_cast<Run*>(run->base() - run->previous_count * kHeapChunkBytes);
    if (before->magic == kFreeMagic) {
      unbin_run(static_cast<FreeRun*>(before));
      before->chunk_count += run->chunk_count;
      std::memset(static_cast<void*>(run), 0, kRunHeaderBytes);
      run = before;
    }
  }
  after = next_run(run);
  if (after == nullptr) {
    const std::uint64_t bytes = run->chunk_count * kHeapChunkBytes;
    extent_bytes_ -= bytes;
    last_count_ = run->previous_count;
    dirty_bytes_ += bytes;
    run->magic = kFreeMagic;
    retain_or_purge(nullptr);
    return;
  }
  after->previous_count = run->chunk_count;
  bin_run(run, true);
  retain_or_purge(static_cast<FreeRun*>(run));
}

void Heap::bin_run(Run* run, bool is_dirty) noexcept {
  auto* free = static_cast<FreeRun*>(run);
  const std::uint32_t bin = bin_of(free->chunk_count);
  free->magic = kFreeMagic;
  free->is_dirty = is_dirty;
  free->previous = nullptr;
  free->next = bins_[bin];
  if (free->next != nullptr) {
    free->next->previous = free;
  }
  bins_[bin] = free;
  bins_filled_ |= std::uint64_t{1} << bin;
  dirty_bytes_ += is_dirty ? free->chunk_count * kHeapChunkBytes : 0;
}

void Heap::unbin_run(FreeRun* run) noexcept {
  const std::uint32_t bin = bin_of(run->chunk_count);
  if (run->previous != nullptr) {
    run->previous->next = run->next;
  } else {
    bins_[bin] = run->next;
  }
  if (run->next != nullptr) {
    run->next->previous = run->previous;
  }
  if (bins_[bin] == nullptr) {
    bins_filled_ &= ~(std::uint64_t{1} << bin);
  }
  dirty_bytes_ -= run->is_dirty ? run->chunk_count * kHeapChunkBytes : 0;
}

// Whole pages; they are zero afterwards.
bool Heap::purge(std::uintptr_t from, std::uintptr_t to) noexcept {
  const int advice = backing_ == HeapBacking::shared_file ? MADV_REMOVE : MADV_DONTNEED;
  return to <= from || raw_system_call(SYS_madvise, static_cast<long>(from),
                                       static_cast<long>(to - from), advice) == 0;
}

void Heap::purge_run(FreeRun* run) noexcept {
  const std::uintptr_t second_page = run->base() + kPageBytesOfHeap;
  if (!run->is_dirty || !purge(second_page, run->end())) {
    return;
  }
  std::memset(reinterpret_cast<void*>(run->base() + kRunHeaderBytes), 0,
              kPageBytesOfHeap - kRunHeaderBytes);
  run->is_dirty = false;
  dirty_bytes_ -= run->chunk_count * kHeapChunkBytes;
}

void Heap::purge_above() noexcept {
  const std::uintptr_t touched = reinterpret_cast<std::uintptr_t>(this) + touched_bytes_;
  if (purge(extent_end(), touched)) {
    dirty_bytes_ -= touched_bytes_ - extent_bytes_;
    touched_bytes_ = extent_bytes_;
  }
}

// `run` was freed just now; null: it went above the extent.
void Heap::retain_or_purge(FreeRun* run) noexcept {
  if (dirty_bytes_ <= kRetainedBytesMin + extent_bytes_ / kRetainedShare) {
    return;
  }
  if (run != nullptr) {
    purge_run(run);
  } else {
    purge_above();
  }
}

void Heap::trim() noexcept {
  if (is_process_) {
    return;
  }
  const Guard guard{*this};
  for (FreeRun* run : bins_) {
    for (; run != nullptr; run = run->next) {
      purge_run(run);
    }
  }
  purge_above();
}

void* Heap::allocate_large(std::size_t bytes, std::size_t alignment, bool* is_zero) noexcept {
  // The block starts in (base, base + chunk]: up to a chunk's alignment by an offset, above it by
  // choosing the base.
  const std::size_t offset =
      alignment <= kRunHeaderBytes ? kRunHeaderBytes : std::min(alignment, kHeapChunkBytes);
  if (bytes > region_bytes_max_ || alignment > region_bytes_max_) {
    return nullptr;
  }
  const auto chunk_count =
      static_cast<std::uint32_t>((bytes + offset + kHeapChunkBytes - 1) / kHeapChunkBytes);
  const auto slack =
      static_cast<std::uint32_t>(alignment > kHeapChunkBytes ? alignment / kHeapChunkBytes : 0);
  Run* run = take_run(chunk_count + slack, is_zero);
  if (run == nullptr) {
    return nullptr;
  }
  run->magic = kLargeMagic;  // Not free, while its parts below join others.
  if (slack != 0) {
    const std::uintptr_t block = (run->base() + offset + alignment - 1) & ~(alignment - 1);
    const auto skip_count =
        static_cast<std::uint32_t>((block - offset - run->base()) / kHeapChunkBytes);
    if (skip_count != 0) {
      Run* front = run;
      split(front, skip_count);
      run = next_run(front);
      run->magic = kLargeMagic;
      give_run(front);
    }
  }
  if (run->chunk_count > chunk_count) {
    split(run, chunk_count);
    give_run(next_run(run));
  }
  auto* large = static_cast<LargeRun*>(run);
  large->block = large->base() + offset;
  large->bytes = bytes;
  return reinterpret_cast<void*>(large->block);
}

bool Heap::resize_large(LargeRun* run, std::size_t bytes) noexcept {
  const std::size_t offset = run->block - run->base();
  if (bytes > region_bytes_max_) {
    return false;
  }
  const auto chunk_count =
      static_cast<std::uint32_t>((bytes + offset + kHeapChunkBytes - 1) / kHeapChunkBytes);
  if (chunk_count > run->chunk_count) {
    const std::uint32_t missing = chunk_count - run->chunk_count;
    Run* after = next_run(run);
    bool is_zero = false;
    if (after == nullptr) {
      Run* more = extend(missing, &is_zero);
      if (more == nullptr) {
        return false;
      }
      last_count_ = chunk_count;
    } else if (after->magic == kFreeMagic && after->chunk_count >= missing) {
      auto* free = static_cast<FreeRun*>(after);
      const bool is_dirty = free->is_dirty;
      unbin_run(free);
      if (free->chunk_count > missing) {
        split(free, missing);
        bin_run(next_run(free), is_dirty);
      }
      after = next_run(free);
      if (after != nullptr) {
        after->previous_count = chunk_count;
      } else {
        last_count_ = chunk_count;
      }
      std::memset(static_cast<void*>(free), 0, kRunHeaderBytes);
    } else {
      return false;
    }
    run->chunk_count = chunk_count;
  } else if (chunk_count < run->chunk_count) {
    split(run, chunk_count);
    give_run(next_run(run));
  }
  run->bytes = bytes;
  return true;
}

}  // namespace sterna::memory
