// Ranks that are mapped here before they come: their memory file is open, and they still run
// elsewhere.
#include <algorithm>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/iso_ranks.h"
#include "memory/iso_space.h"

namespace sterna::memory {
namespace {

constexpr int kAdvisePopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14.

}  // namespace

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
  std::byte* const first = next_of_rank(rank, cursor, bytes);
  // The pages stay in the file.
  return first != nullptr && (::madvise(first, bytes, MADV_DONTNEED), true);
}

}  // namespace sterna::memory
