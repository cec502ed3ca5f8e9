// Putting plans together: repetition and union of loops, with what can be merged merged at once.
#include "mpi/datatype/assembly.h"

#include <cstring>
#include <limits>

namespace sterna::mpi {
namespace {

bool is_block(const Loop& loop) noexcept {
  return loop.inner_count == 0;
}

/// Whether both repeat the same thing.
bool is_same_body(const Loop& a, const Loop& b) noexcept {
  return a.block_bytes == b.block_bytes && a.inner_count == b.inner_count &&
         a.inner_first == b.inner_first && a.basic == b.basic;
}

/// Whether `step` times `count` is `target`, without overflow.
bool reaches(std::int64_t step, std::uint64_t count, std::int64_t target) noexcept {
  std::int64_t reach = 0;
  return !__builtin_mul_overflow(count, step, &reach) && reach == target;
}

/// A loop over adjacent blocks is one block.
void fuse_blocks(Loop& loop) noexcept {
  if (is_block(loop) && loop.count > 1 &&
      loop.stride == static_cast<std::int64_t>(loop.block_bytes)) {
    loop.block_bytes *= loop.count;
    loop.count = 1;
    loop.stride = 0;
  }
}

/// Makes `last` say what `last` then `next` say, if one loop can.
bool try_merge(Loop& last, const Loop& next) noexcept {
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(next.displacement, last.displacement, &distance)) {
    return false;
  }
  const bool both_single = last.count == 1 && next.count == 1;
  if (both_single && is_block(last) && is_block(next) && last.basic == next.basic &&
      distance == static_cast<std::int64_t>(last.block_bytes)) {
    last.block_bytes += next.block_bytes;
    return true;
  }
  if (!is_same_body(last, next)) {
    return false;
  }
  if (last.count == 1) {
    if (next.count > 1 && next.stride != distance) {
      return false;
    }
    last.stride = distance;
  } else if (!reaches(last.stride, last.count, distance) ||
             (next.count > 1 && next.stride != last.stride)) {
    return false;
  }
  last.count += next.count;
  fuse_blocks(last);
  return true;
}

}  // namespace

bool LoopArray::push(const Loop& loop) noexcept {
  if (size_ == capacity_) {
    if (capacity_ > std::numeric_limits<std::uint32_t>::max() / 2) {
      return false;
    }
    const std::uint32_t capacity = capacity_ == 0 ? 4 : capacity_ * 2;
    void* grown = heap_->reallocate(loops_, std::size_t{capacity} * sizeof(Loop));
    if (grown == nullptr) {
      return false;
    }
    loops_ = static_cast<Loop*>(grown);
    capacity_ = capacity;
  }
  loops_[size_] = loop;
  ++size_;
  return true;
}

Loop* LoopArray::take() noexcept {
  Loop* loops = loops_;
  if (size_ < capacity_) {
    void* fitted = heap_->reallocate(loops_, std::size_t{size_} * sizeof(Loop));
    loops = fitted == nullptr ? loops : static_cast<Loop*>(fitted);
  }
  loops_ = nullptr;
  size_ = 0;
  capacity_ = 0;
  return loops;
}

void Assembly::push_merged(LoopArray& row, const Loop& loop) noexcept {
  if (row.size() == 0 || !try_merge(row.back(), loop)) {
    is_out_of_memory_ |= !row.push(loop);
  }
}

std::uint32_t Assembly::push_row(LoopArray& row) noexcept {
  const std::uint32_t first = pool_.size();
  std::uint64_t start = 0;
  for (std::uint32_t i = 0; i < row.size(); ++i) {
    Loop loop = row[i];
    loop.start = start;
    start += loop.bytes();
    is_out_of_memory_ |= !pool_.push(loop);
  }
  return first;
}

Loop Assembly::repeated(Loop loop, std::uint64_t count, std::int64_t stride) noexcept {
  if (count == 1) {
    return loop;
  }
  if (loop.count == 1) {
    loop.count = count;
    loop.stride = stride;
  } else if (reaches(loop.stride, loop.count, stride)) {
    loop.count *= count;
  } else {
    Loop inner = loop;
    inner.displacement = 0;
    inner.start = 0;
    const std::uint32_t first = pool_.size();
    is_out_of_memory_ |= !pool_.push(inner);
    loop = {loop.displacement, stride, count, inner.bytes(), 0, first, 1, inner.basic};
  }
  fuse_blocks(loop);
  return loop;
}

Loop Assembly::boxed_unit() noexcept {
  if (unit_.size() == 1) {
    return unit_[0];
  }
  if (!is_boxed_) {
    const std::uint32_t count = unit_.size();
    const std::uint32_t first = push_row(unit_);
    box_ = {0, 0, 1, static_cast<std::uint64_t>(unit_shape_.bytes), 0, first, count, Basic::none};
    is_boxed_ = true;
  }
  return box_;
}

void Assembly::take_unit(const Datatype& type) noexcept {
  const Plan& plan = type.elements;
  const std::uint32_t moved_by = pool_.size();
  for (std::uint32_t i = 0; i < plan.top_first; ++i) {
    Loop loop = plan.loops[i];
    loop.inner_first += loop.inner_count == 0 ? 0 : moved_by;
    is_out_of_memory_ |= !pool_.push(loop);
  }
  unit_.clear();
  for (std::uint32_t i = plan.top_first; i < plan.loop_count; ++i) {
    Loop loop = plan.loops[i];
    loop.inner_first += loop.inner_count == 0 ? 0 : moved_by;
    is_out_of_memory_ |= !unit_.push(loop);
  }
  unit_shape_ = Shape::of(type);
  is_boxed_ = false;
}

void Assembly::repeat_unit(std::uint64_t count, std::int64_t stride) noexcept {
  unit_shape_.repeat(count, stride);
  if (count == 0) {
    unit_.clear();
  } else if (count > 1 && unit_.size() > 0 && !unit_shape_.is_overflown) {
    // The box wants the bytes of one repetition, which the shape has forgotten.
    unit_shape_.bytes /= static_cast<std::int64_t>(count);
    const Loop loop = boxed_unit();
    unit_shape_.bytes *= static_cast<std::int64_t>(count);
    unit_.clear();
    is_out_of_memory_ |= !unit_.push(repeated(loop, count, stride));
  }
  is_boxed_ = false;
}

void Assembly::shift_unit(std::int64_t displacement) noexcept {
  unit_shape_.shift(displacement);
  for (std::uint32_t i = 0; i < unit_.size() && !unit_shape_.is_overflown; ++i) {
    unit_[i].displacement += displacement;
  }
  is_boxed_ = false;
}

void Assembly::join(std::uint64_t count, std::int64_t stride, std::int64_t displacement) noexcept {
  Shape shape = unit_shape_;
  shape.repeat(count, stride);
  shape.shift(displacement);
  joined_.join(shape);
  if (count == 0 || unit_.size() == 0 || joined_.is_overflown || is_out_of_memory_) {
    return;
  }
  if (count > 1) {
    Loop loop = repeated(boxed_unit(), count, stride);
    loop.displacement += displacement;
    push_merged(row_, loop);
    return;
  }
  for (std::uint32_t i = 0; i < unit_.size(); ++i) {
    Loop loop = unit_[i];
    loop.displacement += displacement;
    push_merged(row_, loop);
  }
}

void Assembly::join_blocks(std::uint64_t whole, std::uint64_t length, std::int64_t stride,
                           std::int64_t period) noexcept {
  Shape shape = unit_shape_;
  shape.repeat(length, stride);
  shape.repeat(whole, period);
  joined_.join(shape);
  if (unit_.size() != 0 && !joined_.is_overflown && !is_out_of_memory_) {
    const Loop block = repeated(boxed_unit(), length, stride);
    push_merged(row_, repeated(block, whole, period));
  }
}

void Assembly::joined_to_unit() noexcept {
  unit_.clear();
  for (std::uint32_t i = 0; i < row_.size(); ++i) {
    is_out_of_memory_ |= !unit_.push(row_[i]);
  }
  unit_shape_ = joined_;
  is_boxed_ = false;
  row_.clear();
  joined_ = Shape{};
}

}  // namespace sterna::mpi
