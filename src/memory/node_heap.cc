// See node_heap.h.
#include "memory/node_heap.h"

#include <array>
#include <new>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna::memory {
namespace {

// Addresses, not memory: pages come when they are touched. Less where addresses are limited.
constexpr std::size_t kRegionBytesMax = std::size_t{1} << 38;
constexpr std::size_t kRegionBytesMin = std::size_t{1} << 26;
constexpr std::uint32_t kNodesMax = 1024;

// Of the system's interface (numaif.h is not everywhere).
constexpr int kPreferred = 1;   // MPOL_PREFERRED
constexpr int kInterleave = 3;  // MPOL_INTERLEAVE

bool bind(std::byte* base, std::size_t bytes, std::span<const std::uint32_t> nodes) noexcept {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kNodesMax / kBits> mask{};
  for (const std::uint32_t node : nodes) {
    if (node >= kNodesMax) {
      return false;
    }
    mask[node / kBits] |= 1UL << (node % kBits);
  }
  // The system counts one bit less than it is told.
  return !nodes.empty() &&
         system_call([&] {
           return ::syscall(SYS_mbind, base, bytes, nodes.size() == 1 ? kPreferred : kInterleave,
                            mask.data(), kNodesMax + 1, 0);
         }) == 0;
}

}  // namespace

Result<std::unique_ptr<NodeHeap>> NodeHeap::open(std::span<const std::uint32_t> nodes) noexcept {
  std::unique_ptr<NodeHeap> made{new (std::nothrow) NodeHeap};
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  for (std::size_t bytes = kRegionBytesMax; bytes >= kRegionBytesMin; bytes /= 2) {
    void* const got = ::mmap(nullptr, bytes + kHeapChunkBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) {
      continue;
    }
    made->mapping_ = got;
    made->mapping_bytes_ = bytes + kHeapChunkBytes;
    const auto address = reinterpret_cast<std::uintptr_t>(got);
    auto* const base = reinterpret_cast<std::byte*>((address + kHeapChunkBytes - 1) &
                                                    ~(std::uintptr_t{kHeapChunkBytes} - 1));
    made->is_bound_ = bind(base, bytes, nodes);
    made->heap_ =
        Heap::create_in({.base = base, .bytes = bytes, .bytes_max = bytes, .is_locked = true});
    return made;
  }
  return Error{Errc::out_of_memory,
               "memory: no 64 MiB of addresses are left for the memory of a place (ulimit -v?)"};
}

NodeHeap::~NodeHeap() {
  if (mapping_ != nullptr) {
    ::munmap(mapping_, mapping_bytes_);
  }
}

}  // namespace sterna::memory
