// Putting plans together: repetition and union of loops, with what can be merged merged at once.
#include "mpi/datatype/assembly.h"

#include <algorithm>
#include <limits>

namespace sterna::mpi {

bool reaches(std::int64_t step, std::uint64_t count, std::int64_t target) noexcept {
  std::int64_t reach = 0;
  return !__builtin_mul_overflow(count, step, &reach) && reach == target;
}

void fuse_blocks(Loop& loop) noexcept {
  if (loop.inner_count == 0 && loop.count > 1 &&
      loop.stride == static_cast<std::int64_t>(loop.block_bytes)) {
    loop.block_bytes *= loop.count;
    loop.count = 1;
    loop.stride = 0;
  }
}

template <typename Entry>
bool Array<Entry>::grow(std::uint32_t count) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max() / 2;
  const std::uint64_t wanted = std::uint64_t{size_} + count;
  if (wanted > kMax) {
    return false;
  }
  const auto capacity = static_cast<std::uint32_t>(
      std::max({wanted, 2 * std::uint64_t{capacity_}, std::uint64_t{4}}));
  void* grown = heap_->reallocate(entries_, std::size_t{capacity} * sizeof(Entry));
  if (grown == nullptr) {
    return false;
  }
  entries_ = static_cast<Entry*>(grown);
  capacity_ = capacity;
  return true;
}

template class Array<Loop>;
template class Array<Row::Waiting>;
template class Array<std::int32_t>;

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
  } else if (!loop.is_listed && reaches(loop.stride, loop.count, stride)) {
    loop.count *= count;
  } else {
    loop = boxed(loop);
    loop.count = count;
    loop.stride = stride;
  }
  fuse_blocks(loop);
  return loop;
}

/// One repetition of all that the loop repeats.
Loop Assembly::boxed(const Loop& loop) noexcept {
  Loop inner = loop;
  inner.displacement = 0;
  inner.start = 0;
  const std::uint32_t first = pool_.size();
  is_out_of_memory_ |= !pool_.push(inner);
  return {loop.displacement, 0, 1, inner.bytes(), 0, first, 1, inner.basic};
}

Loop Assembly::placed(Loop body, const Loop& outer) noexcept {
  body.displacement += outer.displacement;
  if (!outer.is_listed) {
    return repeated(body, outer.count, outer.stride);
  }
  Loop loop = body.count == 1 ? body : boxed(body);
  loop.count = outer.count;
  loop.is_listed = true;
  loop.places_first = outer.places_first;
  return loop;
}

/// A loop of another plan whose rows and places now begin so much farther.
Loop Assembly::moved(Loop loop, std::uint32_t loops_by, std::uint32_t places_by) noexcept {
  loop.inner_first += loop.inner_count == 0 ? 0 : loop.has_blocks ? places_by : loops_by;
  loop.places_first += loop.is_listed ? places_by : 0;
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
  const std::uint32_t loops_by = pool_.size();
  const std::uint32_t places_by = copy_places(plan, 0, plan.place_count);
  for (std::uint32_t i = 0; i < plan.top_first; ++i) {
    is_out_of_memory_ |= !pool_.push(moved(plan.loops[i], loops_by, places_by));
  }
  unit_.clear();
  for (std::uint32_t i = plan.top_first; i < plan.loop_count; ++i) {
    is_out_of_memory_ |= !unit_.push(moved(plan.loops[i], loops_by, places_by));
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

void Assembly::prepare_unit(std::uint64_t count) noexcept {
  if (count >= kManyLoops && unit_.size() > 1 && !unit_shape_.is_overflown) {
    const Loop loop = boxed_unit();
    unit_.clear();
    is_out_of_memory_ |= !unit_.push(loop);
  }
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
    add(row_, loop);
    return;
  }
  for (std::uint32_t i = 0; i < unit_.size(); ++i) {
    Loop loop = unit_[i];
    loop.displacement += displacement;
    add(row_, loop);
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
    add(row_, repeated(block, whole, period));
  }
}

void Assembly::joined_to_unit() noexcept {
  settle(row_);
  unit_.clear();
  for (std::uint32_t i = 0; i < row_.settled.size(); ++i) {
    is_out_of_memory_ |= !unit_.push(row_.settled[i]);
  }
  unit_shape_ = joined_;
  is_boxed_ = false;
  row_.settled.clear();
  joined_ = Shape{};
}

}  // namespace sterna::mpi
