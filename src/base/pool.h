// Objects of one type that are used again: no allocation after the pool has grown.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sterna {

/// Not thread-safe: whoever owns the pool states what guards it. Objects do not move. All must have
/// come back when the pool is destroyed.
template <typename T>
class Pool {
 public:
  /// Grows by blocks of `block_count` objects, up to `count_max` objects.
  struct Options {
    std::size_t block_count = 64;
    std::size_t count_max = ~std::size_t{0};
  };
  explicit Pool(Options options = Options{}) noexcept : options_{options} {}
  ~Pool() { check(used_count_ == 0, "a pool outlives its objects"); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A new object, or null: at the bound, or out of memory.
  template <typename... Args>
  [[nodiscard]] T* create(Args&&... args) noexcept {
    if (free_ == nullptr && !grow()) {
      return nullptr;
    }
    Cell* cell = free_;
    free_ = cell->next;
    ++used_count_;
    return ::new (cell->memory) T(std::forward<Args>(args)...);
  }

  void destroy(T* object) noexcept {
    object->~T();
    Cell* cell = reinterpret_cast<Cell*>(object);
    cell->next = free_;
    free_ = cell;
    --used_count_;
  }

  [[nodiscard]] std::size_t used_count() const noexcept { return used_count_; }

 private:
  union Cell {
    Cell* next;
    alignas(T) std::byte memory[sizeof(T)];
  };

  bool grow() noexcept {
    if (cell_count_ >= options_.count_max) {
      return false;
    }
    const std::size_t room = options_.count_max - cell_count_;
    const std::size_t count = options_.block_count < room ? options_.block_count : room;
    std::unique_ptr<Cell[]> block{new (std::nothrow) Cell[count]};
    if (block == nullptr) {
      return false;
    }
    for (std::size_t i = count; i > 0; --i) {
      block[i - 1].next = free_;
      free_ = &block[i - 1];
    }
    cell_count_ += count;
    blocks_.push_back(std::move(block));
    return true;
  }

  const Options options_;
  Cell* free_ = nullptr;
  std::size_t used_count_ = 0;
  std::size_t cell_count_ = 0;
  std::vector<std::unique_ptr<Cell[]>> blocks_;
};

}  // namespace sterna
