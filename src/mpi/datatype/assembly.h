// How plans are put together: a type under construction is its shape (sizes and bounds) and the row
// of loops of its data, and every constructor of MPI is made of three moves: repeat, shift, join.
//
// An Assembly allocates in the heap it is given and frees what is left at its end. Out of memory
// and overflow are remembered and asked for once, at the end.
#pragma once

#include <cstdint>
#include <span>

#include "memory/heap.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/loop.h"

namespace sterna::mpi {

/// A growing array.
template <typename Entry>
class Array {
 public:
  explicit Array(memory::Heap& heap) noexcept : heap_{&heap} {}
  ~Array() { heap_->deallocate(entries_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] Entry& operator[](std::uint32_t index) noexcept { return entries_[index]; }
  [[nodiscard]] Entry& back() noexcept { return entries_[size_ - 1]; }
  [[nodiscard]] const Entry* data() const noexcept { return entries_; }
  void clear() noexcept { size_ = 0; }
  /// The last ones go.
  void shrink(std::uint32_t count) noexcept { size_ -= count; }
  /// False: no memory; nothing was added.
  [[nodiscard]] bool push(const Entry& entry) noexcept {
    Entry* const room = extend(1);
    if (room == nullptr) {
      return false;
    }
    *room = entry;
    return true;
  }
  /// Room for so many more, which the caller fills in. Null: no memory; nothing was added.
  [[nodiscard]] Entry* extend(std::uint32_t count) noexcept {
    if (count > capacity_ - size_ && !grow(count)) {
      return nullptr;
    }
    size_ += count;
    return entries_ + (size_ - count);
  }

 private:
  [[nodiscard]] bool grow(std::uint32_t count) noexcept;

  memory::Heap* heap_;
  Entry* entries_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

using LoopArray = Array<Loop>;

/// From so many irregular loops on they are kept as places.
inline constexpr std::uint32_t kManyLoops = 8;

/// Whether `step` times `count` is `target`, without overflow.
[[nodiscard]] bool reaches(std::int64_t step, std::uint64_t count, std::int64_t target) noexcept;
/// A loop over adjacent blocks is one block.
void fuse_blocks(Loop& loop) noexcept;

[[nodiscard]] inline bool is_single_block(const Loop& loop) noexcept {
  return loop.inner_count == 0 && loop.count == 1;
}

/// A row of loops under construction. The last ones wait until there are many, or the row ends:
/// then it is seen which of them are regular, and which are better kept as places.
struct Row {
  /// The figure, there; where that is one block, of so many bytes.
  struct Waiting {
    std::int64_t displacement;
    std::uint64_t block_bytes;
  };

  // Enough that a loop for each such piece of a list is nothing, few enough to stay in the nearest
  // cache.
  static constexpr std::uint32_t kWaitingMax = 512;

  explicit Row(memory::Heap& heap) noexcept : settled{heap}, waiting{heap} {}

  LoopArray settled;
  Array<Waiting> waiting;
  Loop figure{};  // What waits, if anything does.
};

/// Whether a block that begins there goes on where `last` ends.
template <typename Block>
[[nodiscard]] bool is_adjacent(const Block& last, std::int64_t displacement) noexcept {
  std::int64_t end = 0;
  return !__builtin_add_overflow(last.displacement, last.block_bytes, &end) && end == displacement;
}

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
      : heap_{&heap}, pool_{heap}, places_{heap}, unit_{heap}, row_{heap} {}

  /// Starts a unit: one instance of `type`, alone.
  void take_unit(const Datatype& type) noexcept;
  /// The unit becomes `count` of itself, `stride` bytes apart. 0 repetitions: an empty unit.
  void repeat_unit(std::uint64_t count, std::int64_t stride) noexcept;
  void shift_unit(std::int64_t displacement) noexcept;
  /// The unit becomes one loop: it will be joined `count` times, and shall not be as many rows.
  void prepare_unit(std::uint64_t count) noexcept;
  /// Adds `count` copies of the unit, `stride` apart, at the displacement, after what was joined
  /// before. The unit stays as it is.
  void join(std::uint64_t count, std::int64_t stride, std::int64_t displacement) noexcept;
  /// Joins `whole` blocks, `period` apart, of `length` copies of the unit, `stride` apart.
  void join_blocks(std::uint64_t whole, std::uint64_t length, std::int64_t stride,
                   std::int64_t period) noexcept;
  /// join(), for each of the displacements, which count in `step` bytes: as many copies as its
  /// length says, `stride` apart; without lengths, one.
  void join_many(std::span<const std::int64_t> lengths, std::span<const std::int64_t> displacements,
                 std::int64_t step, std::int64_t stride) noexcept;
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
  /// `body`, one of a row alone, in the places of `outer`'s repetitions.
  [[nodiscard]] Loop placed(Loop body, const Loop& outer) noexcept;
  [[nodiscard]] Loop boxed(const Loop& loop) noexcept;
  [[nodiscard]] Loop moved(Loop loop, std::uint32_t loops_by, std::uint32_t places_by) noexcept;
  void add(Row& row, const Loop& loop) noexcept;
  std::uint32_t push_row(LoopArray& row) noexcept;
  [[nodiscard]] bool make_plan(Plan& plan, std::int64_t bytes) noexcept;
  void strip_row(const Plan& plan, std::uint32_t first, std::uint32_t count, Row& into,
                 Memo* memo) noexcept;
  [[nodiscard]] std::uint32_t copy_places(const Plan& plan, std::uint32_t first,
                                          std::uint64_t count) noexcept;
  [[nodiscard]] bool make_copy_plan(const Datatype& type, Plan& plan) noexcept;

  // join_many.cc and irregular.cc
  void add(Row& row, std::int64_t displacement, std::uint64_t block_bytes) noexcept;
  void prepare(Row& row, const Loop& figure) noexcept;
  void settle(Row& row) noexcept;
  void settle_uneven(Row& row, std::uint32_t first, std::uint32_t end) noexcept;
  void push_merged(LoopArray& row, const Loop& loop) noexcept;
  void push_listed(Row& row, std::uint32_t first, std::uint32_t end) noexcept;
  void push_blocks(Row& row, std::uint32_t first, std::uint32_t end) noexcept;
  [[nodiscard]] bool is_list_of(const Loop& list, const Loop& loop) noexcept;
  [[nodiscard]] bool join_fast(std::span<const std::int64_t> lengths,
                               std::span<const std::int64_t> displacements, std::int64_t step,
                               std::int64_t stride) noexcept;

  memory::Heap* heap_;
  LoopArray pool_;  // Inner rows.
  Array<std::int32_t> places_;
  LoopArray unit_;
  Row row_;  // What was joined.
  Shape unit_shape_;
  Shape joined_;
  bool is_boxed_ = false;  // box_ is the unit.
  Loop box_{};
  bool is_out_of_memory_ = false;
};

/// Frees the loops and places of both plans.
void free_plans(memory::Heap& heap, Datatype& type) noexcept;

}  // namespace sterna::mpi
