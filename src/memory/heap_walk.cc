// The heap of a rank: reads all of it, to measure, to copy or to check it.
#include <malloc.h>

#include "base/check.h"
#include "memory/heap.h"

namespace sterna::memory {

namespace {

constexpr std::uintptr_t kPageMask = kPageBytesOfHeap - 1;

// Joins ranges that come in ascending order into whole pages.
class PageJoiner {
 public:
  explicit PageJoiner(FunctionRef<void(std::span<std::byte>)> extent) noexcept : extent_{extent} {}

  void add(std::uintptr_t from, std::uintptr_t to) noexcept {
    from &= ~kPageMask;
    to = (to + kPageMask) & ~kPageMask;
    if (from > to_) {
      flush();
      from_ = from;
    }
    to_ = to > to_ ? to : to_;
  }
  void flush() noexcept {
    if (to_ > from_) {
      extent_(std::span{reinterpret_cast<std::byte*>(from_), to_ - from_});
    }
    from_ = to_ = 0;
  }

 private:
  FunctionRef<void(std::span<std::byte>)> extent_;
  std::uintptr_t from_ = 0;
  std::uintptr_t to_ = 0;
};

std::uintptr_t live_end(const Run& run) noexcept {
  if (run.magic == kSpanMagic) {
    const auto& span = static_cast<const Span&>(run);
    return span.block(span.carved_count);
  }
  if (run.magic == kLargeMagic) {
    const auto& large = static_cast<const LargeRun&>(run);
    return large.block + large.bytes;
  }
  return run.base() + kRunHeaderBytes;
}

}  // namespace

void Heap::for_each_live_extent(FunctionRef<void(std::span<std::byte>)> extent) noexcept {
  if (is_process_) {
    return;
  }
  // Without the lock: nobody uses the heap of a rank that moves, and a lock held while the callback
  // copies would be copied held.
  check(!lock_.is_locked(), "nobody uses a heap whose bytes are copied");
  PageJoiner joiner{extent};
  joiner.add(reinterpret_cast<std::uintptr_t>(this),
             reinterpret_cast<std::uintptr_t>(this) + sizeof(Heap));
  for (auto* run = reinterpret_cast<Run*>(runs_begin()); run->base() < extent_end();
       run = reinterpret_cast<Run*>(run->end())) {
    joiner.add(run->base(), live_end(*run));
  }
  joiner.flush();
}

HeapCounters Heap::counters() noexcept {
  if (is_process_) {
    const struct mallinfo2 info = mallinfo2();
    return {info.uordblks + info.hblkhd, 0, info.arena + info.hblkhd, info.arena + info.hblkhd};
  }
  const Guard guard{*this};
  HeapCounters counters{.extent_bytes = extent_bytes_, .mapped_bytes = mapped_bytes_};
  for (auto* run = reinterpret_cast<Run*>(runs_begin()); run->base() < extent_end();
       run = reinterpret_cast<Run*>(run->end())) {
    if (run->magic == kSpanMagic) {
      const auto& span = static_cast<const Span&>(*run);
      counters.live_count += span.used_count;
      counters.live_bytes += std::uint64_t{span.used_count} * span.block_bytes;
    } else if (run->magic == kLargeMagic) {
      ++counters.live_count;
      counters.live_bytes += static_cast<const LargeRun&>(*run).bytes;
    }
  }
  return counters;
}

std::size_t Heap::live_bytes() noexcept {
  return counters().live_bytes;
}

void Heap::check_span(const Span& span) const noexcept {
  check(span.chunk_count == 1 && span.size_class < kSizeClassCount &&
            span.block_bytes == class_bytes(span.size_class),
        "a span is one chunk of blocks of its class");
  check(span.used_count <= span.carved_count && span.carved_count <= span.capacity,
        "a span hands out blocks that it has carved");
  std::uint32_t free_count = 0;
  for (const FreeBlock* block = span.free; block != nullptr; block = block->next) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    check(address >= span.first_block() && span.index_of(address) < span.carved_count &&
              span.block(span.index_of(address)) == address && block->key == span.key(),
          "free blocks are blocks of the span, and nobody writes to them");
    check(++free_count <= span.capacity, "the list of free blocks ends");
  }
  check(free_count + span.used_count == span.carved_count, "each block is free or in use");
  check(span.is_listed || span.used_count == span.capacity, "a span with room is in its list");
  bool is_found = false;
  for (const Span* other = current_[span.size_class]; other != nullptr; other = other->next) {
    is_found |= other == &span;
  }
  check(is_found == span.is_listed, "a span is in the list of its class when it says so");
}

void Heap::check_bins() const noexcept {
  for (std::uint32_t bin = 0; bin < kRunBinCount; ++bin) {
    check((bins_[bin] != nullptr) == ((bins_filled_ >> bin & 1) != 0),
          "the bits say which bins are filled");
    const FreeRun* previous = nullptr;
    for (const FreeRun* run = bins_[bin]; run != nullptr; run = run->next) {
      check(run->magic == kFreeMagic && run->previous == previous, "bins hold free runs");
      previous = run;
    }
  }
}

void Heap::check_invariants() noexcept {
  if (is_process_) {
    return;
  }
  const Guard guard{*this};
  check(extent_bytes_ <= touched_bytes_ && touched_bytes_ <= mapped_bytes_ &&
            mapped_bytes_ <= region_bytes_max_,
        "the extent lies in what was touched, that in what is mapped, that in the region");
  std::uint32_t previous_count = 0;
  std::uint64_t dirty_bytes = touched_bytes_ - extent_bytes_;
  bool was_free = false;
  auto* run = reinterpret_cast<Run*>(runs_begin());
  for (; run->base() < extent_end(); run = reinterpret_cast<Run*>(run->end())) {
    check(run->chunk_count != 0 && run->previous_count == previous_count,
          "neighbouring runs know each other");
    previous_count = run->chunk_count;
    const bool is_free = run->magic == kFreeMagic;
    check(!(is_free && was_free), "free neighbours are joined");
    was_free = is_free;
    if (run->magic == kSpanMagic) {
      check_span(static_cast<const Span&>(*run));
    } else if (run->magic == kLargeMagic) {
      const auto& large = static_cast<const LargeRun&>(*run);
      check(run_of(large.block) == run && large.block + large.bytes <= run->end(),
            "a large block lies in its run");
    } else {
      check(is_free, "a run is a span, a large block or free");
      const auto& free = static_cast<const FreeRun&>(*run);
      dirty_bytes += free.is_dirty ? free.chunk_count * kHeapChunkBytes : 0;
    }
  }
  check(run->base() == extent_end() && last_count_ == previous_count && !was_free,
        "the last run ends the extent and is not free");
  check(dirty_bytes == dirty_bytes_, "what is kept from the system is counted");
  check_bins();
}

}  // namespace sterna::memory
