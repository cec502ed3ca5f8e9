// Maps the segments of the nodes of one host.
#include "net/drivers/shm/segment.h"

#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/syscall.h"

namespace sterna::net::shm {
namespace {

constexpr std::uintptr_t kPageBytes = 4096;  // Or a part of one: a hint.

/// Before Linux 5.14: they are made when they are touched.
void make_pages(std::uintptr_t begin, std::uint64_t bytes) noexcept {
#ifndef MADV_POPULATE_WRITE
  constexpr int MADV_POPULATE_WRITE = 23;
#endif
  const std::uintptr_t page = begin / kPageBytes * kPageBytes;
  raw_system_call(SYS_madvise, static_cast<long>(page), static_cast<long>(begin + bytes - page),
                  MADV_POPULATE_WRITE);
}

}  // namespace

SegmentMapping::SegmentMapping(SegmentMapping&& other) noexcept
    : segment_{std::exchange(other.segment_, nullptr)}, bytes_{other.bytes_} {}

SegmentMapping& SegmentMapping::operator=(SegmentMapping&& other) noexcept {
  std::swap(segment_, other.segment_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SegmentMapping::~SegmentMapping() {
  if (segment_ != nullptr) {
    ::munmap(segment_, bytes_);
  }
}

Result<SegmentMapping> SegmentMapping::map(int fd, std::uint32_t local_index,
                                           std::uint64_t segment_bytes) noexcept {
  struct stat status {};
  const long stated = system_call([&] { return ::fstat(fd, &status); });
  if (stated < 0) {
    return system_error("cannot look at the shared memory of this host's nodes",
                        static_cast<int>(-stated));
  }
  const std::uint64_t end = (std::uint64_t{local_index} + 1) * segment_bytes;
  // A mapping beyond the end of the file would map, and kill us at the first touch.
  if (segment_bytes < sizeof(Segment) || static_cast<std::uint64_t>(status.st_size) < end) {
    return Error{Errc::malformed, "the shared memory of this host's nodes is too small (" +
                                      std::to_string(status.st_size) + " bytes): node " +
                                      std::to_string(local_index) + " of the host ends at " +
                                      std::to_string(end)};
  }
  void* address = ::mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                         static_cast<off_t>(local_index * segment_bytes));
  if (address == MAP_FAILED) {
    return system_error("cannot map the shared memory of this host's nodes", last_error_number());
  }
  SegmentMapping mapping;
  mapping.segment_ = static_cast<Segment*>(address);
  mapping.bytes_ = segment_bytes;
  return mapping;
}

void SegmentMapping::populate() const noexcept {
  make_pages(reinterpret_cast<std::uintptr_t>(segment_), sizeof(Segment));
}

void Segment::populate(ChunkHead& first, std::uint32_t count, std::uint32_t bytes) noexcept {
  make_pages(reinterpret_cast<std::uintptr_t>(&first), count * chunk_stride(bytes));
}

}  // namespace sterna::net::shm
