// Who makes objects in the system heap of a rank, or of a process.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "memory/heap.h"

namespace sterna::mpi {

class HeapUser {
 public:
  explicit HeapUser(memory::Heap& heap) noexcept : heap_{&heap} {}

  [[nodiscard]] memory::Heap& heap() const noexcept { return *heap_; }

  /// A new object; null: no memory.
  template <typename T, typename... Args>
  [[nodiscard]] T* create(Args&&... args) noexcept {
    void* place = allocate(sizeof(T));
    return place == nullptr ? nullptr : ::new (place) T(std::forward<Args>(args)...);
  }
  template <typename T>
  void destroy(T* object) noexcept {
    object->~T();
    deallocate(object);
  }
  /// `count` uninitialised elements; null: no memory (never for a count of 0).
  template <typename T>
  [[nodiscard]] T* allocate_array(std::size_t count) noexcept {
    return static_cast<T*>(allocate(count * sizeof(T)));
  }
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept {
    return heap_->allocate(bytes == 0 ? 1 : bytes);
  }
  void deallocate(void* block) noexcept { heap_->deallocate(block); }

 private:
  memory::Heap* heap_;  // Constant; of a rank: in its slot.
};

}  // namespace sterna::mpi
