// Ranks that are mapped here before they come: their memory file is open, and they still run
// elsewhere; or their bytes are about to come.
#include <algorithm>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/iso_ranks.h"
#include "memory/iso_space.h"

namespace sterna::memory {
namespace {

constexpr int kAdvisePopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14.
constexpr std::uintptr_t kLargePageBytes = 2 << 20;

/// Large pages for [from, to). A hint: it may fail, as where only a part is mapped, or where the
/// system has none.
void advise_large_pages(std::uintptr_t from, std::uintptr_t to) noexcept {
  if (from < to) {
    ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
  }
}

/// The next step of a walk over the memory of a rank that is of this process alone. The header and
/// the stack stay, which say where the rest is; a heap is asked for its size before its turn.
std::byte* next_of_private(std::uint32_t rank, PopulateCursor& cursor,
                           std::size_t& bytes) noexcept {
  const RankSlot& slot = *rank_slot_address(rank);
  const auto begin_part = [&](std::uintptr_t from, auto size) {
    const std::uint64_t offset = from - slot_base(rank);
    if (cursor.next >= cursor.data_end && offset >= cursor.data_end) {
      cursor = {offset, offset + size()};
    }
  };
  begin_part(slot.system_heap_region.base, [&] { return slot.system_heap->mapped_bytes(); });
  begin_part(slot.images.base, [&] { return slot.images.bytes; });
  begin_part(slot.user_heap_region.base, [&] { return slot.user_heap->mapped_bytes(); });
  if (cursor.next >= cursor.data_end) {
    return nullptr;
  }
  bytes = std::min<std::uint64_t>(cursor.data_end - cursor.next, kPopulateStepBytes);
  auto* const first = reinterpret_cast<std::byte*>(slot_base(rank) + cursor.next);
  cursor.next += bytes;
  return first;
}

}  // namespace

void IsoSpace::expect_contents(std::span<const Extent> live) noexcept {
  std::uintptr_t chosen_from = 0, chosen_to = 0;  // Neighbours go in one call.
  std::uintptr_t page = 0;
  std::uint64_t covered_bytes = 0;  // Of `page`.
  const auto end_page = [&] {
    if (covered_bytes < kLargePageBytes / 2) {
      return;
    }
    if (page != chosen_to) {
      advise_large_pages(chosen_from, chosen_to);
      chosen_from = page;
    }
    chosen_to = page + kLargePageBytes;
  };
  for (const Extent& extent : live) {
    const std::uintptr_t end = extent.base + extent.bytes;
    for (std::uintptr_t next = extent.base; next < end;) {
      const std::uintptr_t page_of_next = next & ~(kLargePageBytes - 1);
      if (page_of_next != page) {
        end_page();
        page = page_of_next;
        covered_bytes = 0;
      }
      const std::uintptr_t part_end = std::min(end, page + kLargePageBytes);
      covered_bytes += part_end - next;
      next = part_end;
    }
  }
  end_page();
  advise_large_pages(chosen_from, chosen_to);
}

Result<> IsoSpace::grow_adopted(const RankShape& before, const RankShape& now) {
  if (now.rank != before.rank || now.stack_bytes != before.stack_bytes ||
      now.images_bytes != before.images_bytes || now.system_heap_bytes < before.system_heap_bytes ||
      now.user_heap_bytes < before.user_heap_bytes) {
    return Error{Errc::invalid_argument,
                 fmt::format("rank {} is not as it was when its slot was prepared", now.rank)};
  }
  if (Result<> good = check_shape(now); !good) {
    return good;
  }
  const RankRegions regions = rank_regions(now.rank);
  const int fd = rank_memory_fd(now.rank);
  if (Result<> mapped = map_part(now.rank, fd, regions.system_heap.base + before.system_heap_bytes,
                                 now.system_heap_bytes - before.system_heap_bytes);
      !mapped) {
    return mapped;
  }
  return map_part(now.rank, fd, regions.user_heap.base + before.user_heap_bytes,
                  now.user_heap_bytes - before.user_heap_bytes);
}

std::byte* IsoSpace::next_of_rank(std::uint32_t rank, PopulateCursor& cursor,
                                  std::size_t& bytes) noexcept {
  const int fd = rank_memory_fd(rank);
  if (fd < 0) {
    return nullptr;
  }
  if (cursor.next >= cursor.data_end) {
    // The file is sparse: its holes are memory that the rank has not touched.
    const off_t data = ::lseek(fd, static_cast<off_t>(cursor.next), SEEK_DATA);
    const off_t end = data < 0 ? -1 : ::lseek(fd, data, SEEK_HOLE);
    if (end < 0) {
      return nullptr;
    }
    cursor = {static_cast<std::uint64_t>(data), static_cast<std::uint64_t>(end)};
  }
  bytes = std::min<std::uint64_t>(cursor.data_end - cursor.next, kPopulateStepBytes);
  auto* const first = reinterpret_cast<std::byte*>(slot_base(rank) + cursor.next);
  cursor.next += bytes;
  return first;
}

bool IsoSpace::populate_rank(std::uint32_t rank, PopulateCursor& cursor) noexcept {
  std::size_t bytes = 0;
  std::byte* const first = next_of_rank(rank, cursor, bytes);
  // Fails where the file has more than is mapped here, as when a heap grows just now: those pages
  // fault one by one.
  return first != nullptr && (::madvise(first, bytes, kAdvisePopulateRead), true);
}

bool IsoSpace::depopulate_rank(std::uint32_t rank, PopulateCursor& cursor) noexcept {
  std::size_t bytes = 0;
  std::byte* const first = rank_memory_fd(rank) < 0 ? next_of_private(rank, cursor, bytes)
                                                    : next_of_rank(rank, cursor, bytes);
  // The pages stay in the file, if there is one.
  return first != nullptr && (::madvise(first, bytes, MADV_DONTNEED), true);
}

}  // namespace sterna::memory
