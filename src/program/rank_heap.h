// The user heap of a rank, for malloc and for what the loader keeps in it.
#pragma once

#include "program/rank_data.h"

namespace sterna::program {

/// Holds the lock of a rank's user heap, if other kernel threads may be in it.
class RankHeapGuard {
 public:
  explicit RankHeapGuard(const memory::RankSlot& slot) noexcept
      : lock_{slot.program != nullptr && data_of(slot).has_threads ? &data_of(slot).heap_lock
                                                                   : nullptr} {
    if (lock_ != nullptr) [[unlikely]] {
      lock_->lock();
    }
  }
  ~RankHeapGuard() {
    if (lock_ != nullptr) [[unlikely]] {
      lock_->unlock();
    }
  }
  RankHeapGuard(const RankHeapGuard&) = delete;
  RankHeapGuard& operator=(const RankHeapGuard&) = delete;

 private:
  SpinLock* const lock_;
};

[[nodiscard]] inline void* rank_allocate(memory::RankSlot& slot, std::size_t bytes,
                                         std::size_t alignment = 16) noexcept {
  const RankHeapGuard guard{slot};
  return slot.user_heap->allocate(bytes, alignment);
}

[[nodiscard]] inline void* rank_allocate_zeroed(memory::RankSlot& slot,
                                                std::size_t bytes) noexcept {
  const RankHeapGuard guard{slot};
  return slot.user_heap->allocate_zeroed(bytes);
}

[[nodiscard]] inline void* rank_reallocate(memory::RankSlot& slot, void* block,
                                           std::size_t bytes) noexcept {
  const RankHeapGuard guard{slot};
  return slot.user_heap->reallocate(block, bytes);
}

[[nodiscard]] inline std::size_t rank_usable(memory::RankSlot& slot, void* block) noexcept {
  const RankHeapGuard guard{slot};
  return slot.user_heap->usable(block);
}

inline void rank_free(memory::RankSlot& slot, void* block) noexcept {
  const RankHeapGuard guard{slot};
  slot.user_heap->deallocate(block);
}

}  // namespace sterna::program
