// mmap and its family: anonymous memory comes from the rank's heap, so that it moves; everything
// else is mapped as ever and holds the rank here.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

constexpr std::size_t kPage = memory::kPageBytes;

std::size_t to_pages(std::size_t bytes) noexcept {
  return (bytes + kPage - 1) / kPage * kPage;
}

bool is_page(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % kPage == 0;
}

bool is_in_heap(const RankData& data, const void* address) noexcept {
  return data.slot->user_heap_region.contains(reinterpret_cast<std::uintptr_t>(address));
}

void* failed(int number) noexcept {
  set_last_error_number(number);
  return MAP_FAILED;
}

void* map_from_heap(RankData& data, std::size_t bytes) noexcept {
  auto* mapping = static_cast<HeapMapping*>(rank_allocate(*data.slot, sizeof(HeapMapping)));
  // Not touched where it is zero: programs set aside much more than they use.
  void* block = mapping != nullptr && bytes <= data.slot->user_heap_region.bytes_max
                    ? rank_allocate_zeroed(*data.slot, bytes + kPage)
                    : nullptr;
  if (block == nullptr) {
    rank_free(*data.slot, mapping);
    return failed(ENOMEM);
  }
  const std::uintptr_t base = to_pages(reinterpret_cast<std::uintptr_t>(block));
  const SpinGuard guard{data.lock};
  *mapping = {base, bytes, bytes, block, data.heap_mappings};
  data.heap_mappings = mapping;
  return reinterpret_cast<void*>(base);
}

/// Whole pages of the heap: they read as zero from now on, and their memory goes back.
void discard(void* address, std::size_t bytes) noexcept {
  const auto advise = [&](int advice) {
    return raw_system_call(SYS_madvise, reinterpret_cast<long>(address), static_cast<long>(bytes),
                           advice);
  };
  // Of a file DONTNEED would give the old contents; private memory knows no REMOVE.
  const long removed = advise(MADV_REMOVE);
  if (removed != 0 && (removed != -EINVAL || advise(MADV_DONTNEED) != 0)) {
    std::memset(address, 0, bytes);
  }
}

/// munmap of [base, base + bytes), which may be a part of a mapping. Its pages go back at once, the
/// addresses when nothing is left of the mapping.
void unmap_from_heap(RankData& data, std::uintptr_t base, std::size_t bytes) noexcept {
  HeapMapping* done = nullptr;
  std::size_t unmapped = 0;
  {
    const SpinGuard guard{data.lock};
    for (HeapMapping** link = &data.heap_mappings; *link != nullptr; link = &(*link)->next) {
      HeapMapping& mapping = **link;
      if (base - mapping.base >= mapping.bytes) {
        continue;
      }
      const std::size_t room = mapping.bytes - (base - mapping.base);
      unmapped = std::min(bytes, room);
      mapping.live_bytes -= std::min(unmapped, mapping.live_bytes);
      if (mapping.live_bytes == 0) {
        done = *link;
        *link = done->next;
      }
      break;
    }
  }
  if (done != nullptr) {
    rank_free(*data.slot, done->block);
    rank_free(*data.slot, done);
  } else if (unmapped != 0) {
    discard(reinterpret_cast<void*>(base), unmapped);
  }
}

void* shim_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  RankData& data = calling_data();
  const bool is_anonymous = (flags & MAP_ANONYMOUS) != 0;
  const bool is_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (bytes == 0) {
    return failed(EINVAL);
  }
  if (is_anonymous && (protection & PROT_EXEC) == 0) {
    if (!is_fixed) {
      return map_from_heap(data, to_pages(bytes));
    }
    if (is_in_heap(data, address) && is_page(address) && (flags & MAP_FIXED_NOREPLACE) == 0) {
      // Over memory that it has: fresh zeroes.
      discard(address, to_pages(bytes));
      return address;
    }
  }
  if (is_fixed && is_in_heap(data, address)) {
    return failed(EINVAL);
  }
  void* memory = ::mmap(address, bytes, protection, flags, fd, offset);
  if (memory != MAP_FAILED) {
    add_blocker(
        data, BlockerKind::mapping, blocker_key(memory),
        is_anonymous ? "executable memory is mapped (%zu bytes)" : "a file is mapped (%zu bytes)",
        bytes);
  }
  return memory;
}

int shim_munmap(void* address, std::size_t bytes) {
  RankData& data = calling_data();
  if (is_in_heap(data, address)) {
    unmap_from_heap(data, reinterpret_cast<std::uintptr_t>(address), to_pages(bytes));
    return 0;
  }
  remove_blocker(data, BlockerKind::mapping, blocker_key(address));
  return ::munmap(address, bytes);
}

void* shim_mremap(void* address, std::size_t old_bytes, std::size_t new_bytes, int flags, ...) {
  RankData& data = calling_data();
  if (!is_in_heap(data, address)) {
    void* moved = ::mremap(address, old_bytes, new_bytes, flags & ~MREMAP_FIXED);
    if (moved != MAP_FAILED && moved != address) {
      remove_blocker(data, BlockerKind::mapping, blocker_key(address));
      add_blocker(data, BlockerKind::mapping, blocker_key(moved), "a file is mapped (%zu bytes)",
                  new_bytes);
    }
    return moved;
  }
  if (to_pages(new_bytes) <= to_pages(old_bytes)) {
    unmap_from_heap(data, reinterpret_cast<std::uintptr_t>(address) + to_pages(new_bytes),
                    to_pages(old_bytes) - to_pages(new_bytes));
    return address;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) {
    return failed(ENOMEM);
  }
  void* grown = map_from_heap(data, to_pages(new_bytes));
  if (grown != MAP_FAILED) {
    std::memcpy(grown, address, old_bytes);
    unmap_from_heap(data, reinterpret_cast<std::uintptr_t>(address), to_pages(old_bytes));
  }
  return grown;
}

/// Memory of the heap stays readable and writable: it is copied when the rank moves, and reused.
int shim_mprotect(void* address, std::size_t bytes, int protection) {
  RankData& data = calling_data();
  if (!is_in_heap(data, address)) {
    return ::mprotect(address, bytes, protection);
  }
  if ((protection & PROT_EXEC) == 0) {
    return 0;
  }
  const int result = ::mprotect(address, bytes, protection | PROT_READ | PROT_WRITE);
  if (result == 0) {
    add_blocker(data, BlockerKind::mapping, blocker_key(address),
                "memory is executable (%zu bytes)", bytes);
  }
  return result;
}

/// DONTNEED promises zeroes, which the kernel does not give for the heap's backing; the others are
/// advice.
int shim_madvise(void* address, std::size_t bytes, int advice) {
  RankData& data = calling_data();
  if (!is_in_heap(data, address)) {
    return ::madvise(address, bytes, advice);
  }
  if (!is_page(address)) {
    set_last_error_number(EINVAL);
    return -1;
  }
  if (advice == MADV_DONTNEED) {
    discard(address, to_pages(bytes));
  }
  return 0;
}

/// The end of the data segment is the process's: programs that move it get "no memory".
void* shim_sbrk(std::intptr_t) {
  return failed(ENOMEM);
}

}  // namespace

std::span<const Shim> memory_shims() {
  static const Shim shims[] = {
      function_shim("mmap", shim_mmap),
      function_shim("mmap64", shim_mmap),
      function_shim("munmap", shim_munmap),
      function_shim("mremap", shim_mremap),
      function_shim("mprotect", shim_mprotect),
      function_shim("madvise", shim_madvise),
      function_shim("sbrk", shim_sbrk),
      // libc's own definitions would be found in libc: the node's come first.
      function_shim("malloc", ::malloc),
      function_shim("free", ::free),
      function_shim("cfree", ::free),
      function_shim("calloc", ::calloc),
      function_shim("realloc", ::realloc),
      function_shim("reallocarray", ::reallocarray),
      function_shim("memalign", ::memalign),
      function_shim("aligned_alloc", ::aligned_alloc),
      function_shim("posix_memalign", ::posix_memalign),
      function_shim("valloc", ::valloc),
      function_shim("pvalloc", ::pvalloc),
      function_shim("malloc_usable_size", ::malloc_usable_size),
  };
  return shims;
}

}  // namespace sterna::program
