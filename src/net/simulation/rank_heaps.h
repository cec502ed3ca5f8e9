// A heap for each rank of a simulated job: what its endpoint takes is counted there, to the byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <sys/mman.h>

#include "base/check.h"
#include "memory/heap.h"

namespace sterna::net {

class RankHeaps {
 public:
  RankHeaps(std::uint32_t count, std::size_t bytes_each)
      : bytes_{count * bytes_each + memory::kHeapChunkBytes},
        pages_{::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)} {
    check(pages_ != MAP_FAILED, "the test has memory");
    void* base = pages_;
    std::size_t room = bytes_;
    base = std::align(memory::kHeapChunkBytes, count * bytes_each, base, room);
    for (std::uint32_t i = 0; i < count; ++i) {
      heaps_.push_back(
          memory::Heap::create_in({.base = static_cast<std::byte*>(base) + i * bytes_each,
                                   .bytes = bytes_each,
                                   .bytes_max = bytes_each}));
    }
  }
  ~RankHeaps() { (void)::munmap(pages_, bytes_); }
  RankHeaps(const RankHeaps&) = delete;
  RankHeaps& operator=(const RankHeaps&) = delete;

  [[nodiscard]] std::span<memory::Heap* const> all() const noexcept { return heaps_; }
  [[nodiscard]] std::uint64_t live_bytes(std::uint32_t rank) const {
    return heaps_[rank]->live_bytes();
  }

 private:
  const std::size_t bytes_;
  void* const pages_;
  std::vector<memory::Heap*> heaps_;
};

}  // namespace sterna::net
