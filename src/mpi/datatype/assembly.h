// How plans are put together: a type under construction is its shape (sizes and bounds) and the row
// of loops of its data, and every constructor of MPI is made of three moves: repeat, shift, join.
//
// An Assembly allocates in the heap it is given and frees what is left at its end. Out of memory
// and overflow are remembered and asked for once, at the end.
#pragma once

#include <cstdint>

#include "memory/heap.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/loop.h"

namespace sterna::mpi {

/// A growing array of loops.
class LoopArray {
 public:
  explicit LoopArray(memory::Heap& heap) noexcept : heap_{&heap} {}
  ~LoopArray() { heap_->deallocate(loops_); }
  LoopArray(const LoopArray&) = delete;
  LoopArray& operator=(const LoopArray&) = delete;

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] Loop& operator[](std::uint32_t index) noexcept { return loops_[index]; }
  [[nodiscard]] Loop& back() noexcept { return loops_[size_ - 1]; }
  void clear() noexcept { size_ = 0; }
  /// False: no memory; nothing was added.
  [[nodiscard]] bool push(const Loop& loop) noexcept;
  /// The loops in a block of their exact size, which the caller owns; the array is empty then.
  [[nodiscard]] Loop* take() noexcept;

 private:
  memory::Heap* heap_;
  Loop* loops_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

/// Sizes and bounds, as the standard's type map gives them. Empty: no entry in the map.
struct Shape {
  std::int64_t bytes = 0;
  std::uint64_t element_count = 0;
  std::int64_t lb = 0;
  std::int64_t ub = 0;
  std::int64_t true_lb = 0;
  std::int64_t true_ub = 0;
  std::uint32_t alignment = 1;
  Basic basic = Basic::none;
  bool has_markers = false;
  bool is_empty = true;
  bool is_overflown = false;

  [[nodiscard]] static Shape of(const Datatype& type) noexcept;
  void repeat(std::uint64_t count, std::int64_t stride) noexcept;
  void shift(std::int64_t displacement) noexcept;
  void join(const Shape& other) noexcept;
};

class Assembly {
 public:
  explicit Assembly(memory::Heap& heap) noexcept
      : heap_{&heap}, pool_{heap}, unit_{heap}, row_{heap} {}

  /// Starts a unit: one instance of `type`, alone.
  void take_unit(const Datatype& type) noexcept;
  /// The unit becomes `count` of itself, `stride` bytes apart. 0 repetitions: an empty unit.
  void repeat_unit(std::uint64_t count, std::int64_t stride) noexcept;
  void shift_unit(std::int64_t displacement) noexcept;
  /// Adds `count` copies of the unit, `stride` apart, at the displacement, after what was joined
  /// before. The unit stays as it is.
  void join(std::uint64_t count, std::int64_t stride, std::int64_t displacement) noexcept;
  /// Joins `whole` blocks, `period` apart, of `length` copies of the unit, `stride` apart.
  void join_blocks(std::uint64_t whole, std::uint64_t length, std::int64_t stride,
                   std::int64_t period) noexcept;
  /// Everything joined becomes the unit; nothing is joined.
  void joined_to_unit() noexcept;

  [[nodiscard]] Shape& shape() noexcept { return joined_; }
  /// Gives what was joined to a new type: sizes, bounds, plans, flags; not the recipe. An error
  /// class.
  [[nodiscard]] int finish(Datatype& type) noexcept;

 private:
  struct Memo;

  /// The unit as one loop, which may have an inner row (in the pool, made once).
  [[nodiscard]] Loop boxed_unit() noexcept;
  [[nodiscard]] Loop repeated(Loop loop, std::uint64_t count, std::int64_t stride) noexcept;
  void push_merged(LoopArray& row, const Loop& loop) noexcept;
  std::uint32_t push_row(LoopArray& row) noexcept;
  [[nodiscard]] bool make_plan(Plan& plan, std::int64_t bytes) noexcept;
  void strip_row(const Plan& plan, std::uint32_t first, std::uint32_t count, LoopArray& into,
                 Memo* memo) noexcept;
  [[nodiscard]] bool make_copy_plan(const Datatype& type, Plan& plan) noexcept;

  memory::Heap* heap_;
  LoopArray pool_;  // Inner rows.
  LoopArray unit_;
  LoopArray row_;  // What was joined.
  Shape unit_shape_;
  Shape joined_;
  bool is_boxed_ = false;  // box_ is the unit.
  Loop box_{};
  bool is_out_of_memory_ = false;
};

/// Frees the loops of both plans.
void free_plans(memory::Heap& heap, Datatype& type) noexcept;

}  // namespace sterna::mpi
