// The malloc family of the executables that run ranks: it wins over libc's for the whole process.
//
// By thread pointer: a rank's code (and libc on its behalf) allocates in the rank's heap, all other
// code in libc's. By address: memory goes back to where it came from. What libc's heap keeps for a
// thread (its cache) belongs to the worker's thread pointer, so that is loaded to give memory back.
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <malloc.h>
#include <stdlib.h>

#include "base/syscall.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

using sterna::memory::rank_slot_of;
using sterna::memory::RankSlot;

constexpr std::size_t kPage = sterna::memory::kPageBytes;

/// The rank that allocates: its own thread by the thread pointer, or a kernel thread of it. Null:
/// the runtime, on whatever thread.
[[gnu::always_inline]] inline RankSlot* allocating_slot() noexcept {
  RankSlot* slot = rank_slot_of(sterna::thread_pointer());
  return slot != nullptr ? slot : sterna::program::allocating_foreign_slot();
}

template <typename Call>
auto in_libc(Call&& call) noexcept {
  RankSlot* slot = rank_slot_of(sterna::thread_pointer());
  if (slot == nullptr) {
    return call();
  }
  sterna::program::leave_user();
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    sterna::program::resume_user(*slot);
  } else {
    const auto result = call();
    sterna::program::resume_user(*slot);
    return result;
  }
}

void* or_no_memory(void* block) noexcept {
  if (block == nullptr) [[unlikely]] {
    sterna::set_last_error_number(ENOMEM);
  }
  return block;
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  if (RankSlot* slot = allocating_slot(); slot != nullptr) {
    alignment = std::bit_ceil(alignment < 16 ? std::size_t{16} : alignment);
    return or_no_memory(sterna::program::rank_allocate(*slot, bytes, alignment));
  }
  return __libc_memalign(alignment, bytes);
}

/// libc's own malloc_usable_size is shadowed by ours; its blocks have their size before them.
std::size_t usable_in_libc(void* block) noexcept {
  std::size_t size;
  std::memcpy(&size, static_cast<const char*>(block) - sizeof size, sizeof size);
  constexpr std::size_t kIsMapped = 2;
  const std::size_t overhead = (size & kIsMapped) != 0 ? 2 * sizeof size : sizeof size;
  return (size & ~std::size_t{7}) - overhead;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  if (RankSlot* slot = allocating_slot(); slot != nullptr) {
    return or_no_memory(sterna::program::rank_allocate(*slot, bytes));
  }
  return __libc_malloc(bytes);
}

void free(void* block) {
  if (block == nullptr) {
    return;
  }
  if (RankSlot* slot = rank_slot_of(block); slot != nullptr) {
    sterna::program::rank_free(*slot, block);
    return;
  }
  in_libc([&] { __libc_free(block); });
}

void* calloc(std::size_t count, std::size_t bytes) {
  RankSlot* slot = allocating_slot();
  if (slot == nullptr) {
    return __libc_calloc(count, bytes);
  }
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    return or_no_memory(nullptr);
  }
  return or_no_memory(sterna::program::rank_allocate_zeroed(*slot, total));
}

void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) {
    return malloc(bytes);
  }
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  if (RankSlot* slot = rank_slot_of(block); slot != nullptr) {
    return or_no_memory(sterna::program::rank_reallocate(*slot, block, bytes));
  }
  return in_libc([&] { return __libc_realloc(block, bytes); });
}

void* reallocarray(void* block, std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    return or_no_memory(nullptr);
  }
  return realloc(block, total);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  return allocate_aligned(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return allocate_aligned(alignment, bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) {
    return EINVAL;
  }
  const int number = sterna::last_error_number();
  void* allocated = allocate_aligned(alignment, bytes);
  sterna::set_last_error_number(number);
  if (allocated == nullptr) {
    return ENOMEM;
  }
  *block = allocated;
  return 0;
}

void* valloc(std::size_t bytes) {
  return allocate_aligned(kPage, bytes);
}

void* pvalloc(std::size_t bytes) {
  return allocate_aligned(kPage, (bytes + kPage - 1) / kPage * kPage);
}

std::size_t malloc_usable_size(void* block) {
  if (block == nullptr) {
    return 0;
  }
  if (RankSlot* slot = rank_slot_of(block); slot != nullptr) {
    return sterna::program::rank_usable(*slot, block);
  }
  return usable_in_libc(block);
}
}
